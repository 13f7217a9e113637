package remote_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func TestClient_CarriesWhatTheServiceAnswers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		service := newTeams()
		client := connectTo(t, service, protocol)
		ctx := t.Context()
		// both returns the answer of the client, which has to be that of the service.
		check := func(what string, got, want any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-service +client):\n%s", what, diff)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}

		described, err := client.Describe(ctx)
		must(err)
		want, _ := service.Describe(ctx)
		check("Describe", described, want)

		start, err := client.Changes(ctx, "", 0)
		must(err)
		spec := `{"members":[{"name":"<ann> & \"bob\"","since":1.5}],"none":null,"open":true,"size":9007199254740992}`
		write := owner.Write{IfAbsent: true, Resource: owner.Resource{
			Key:         team("blue"),
			WriteID:     "w1",
			Labels:      map[string]string{"tier": "gold"},
			Annotations: map[string]string{"note": "ä\nb"},
			Description: "Zeile 1\nZeile 2",
			Spec:        []byte(spec),
		}}
		made, err := client.Write(ctx, write)
		must(err)
		stored, _ := service.Show(team("blue"))
		check("Write", made, owner.Answer{Outcome: owner.Done, Resource: &stored})
		if string(stored.Spec) != spec || stored.WriteID != "w1" || stored.CreatedAt.IsZero() || stored.Tag == "" {
			t.Errorf("the service has stored %+v", stored)
		}
		again, err := client.Write(ctx, write)
		must(err)
		check("Write of what exists", again, owner.Answer{Outcome: owner.Exists, Resource: &stored})
		write.IfAbsent = false
		write.IfTag = "stale"
		conflict, err := client.Write(ctx, write)
		must(err)
		check("Write with a stale tag", conflict, owner.Answer{Outcome: owner.Conflict, Resource: &stored})
		write.IfTag = stored.Tag
		write.IfUID = "another"
		conflict, err = client.Write(ctx, write)
		must(err)
		check("Write with another uid", conflict.Outcome, owner.Conflict)

		stored = service.Put(owner.Resource{
			Key:                 team("blue"),
			Spec:                []byte(`{}`),
			Status:              []byte(`{"members":2}`),
			DeletionRequestedAt: time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC),
			Generation:          7,
		})
		service.MakeUnreadable(team("grey"), "its row is damaged")
		keys := []backend.Key{team("grey"), team("none"), team("blue")}
		got, err := client.Get(ctx, keys)
		must(err)
		check("Get", got, []owner.Got{{Unreadable: "its row is damaged"}, {}, {Resource: &stored}})

		changes, err := client.Changes(ctx, start.Position, time.Hour)
		must(err)
		if len(changes.Keys) != 3 || changes.Keys[0] != team("blue") || changes.Position == start.Position {
			t.Errorf("Changes: %+v", changes)
		}
		expired, err := client.Changes(ctx, "of another time", time.Hour)
		must(err)
		if !expired.Expired {
			t.Errorf("Changes at an unknown position: %+v", expired)
		}

		gone, err := client.Delete(ctx, owner.Delete{Key: team("blue"), DryRun: true})
		must(err)
		check("Delete, dry run", gone, owner.Answer{Outcome: owner.Done, Resource: &stored})
		gone, err = client.Delete(ctx, owner.Delete{Key: team("blue"), IfTag: stored.Tag, IfUID: stored.UID})
		must(err)
		check("Delete", gone, owner.Answer{Outcome: owner.Done, Resource: &stored})
		gone, err = client.Delete(ctx, owner.Delete{Key: team("blue")})
		must(err)
		check("Delete of what is not there", gone, owner.Answer{Outcome: owner.Absent})
	})
}

func TestClient_CarriesDecisionsAndRefusals(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		service := newTeams()
		want := owner.Answer{
			Outcome:    owner.Invalid,
			Message:    "two things are wrong",
			Violations: []owner.Violation{{Path: "spec.size", Rule: "max", Message: "too large"}},
			Warnings:   []owner.Violation{{Path: "spec.old", Rule: "deprecated", Message: "use new"}},
		}
		service.SetHooks(ownertest.Hooks{Write: func(owner.Write) *owner.Answer { return &want }})
		client := connectTo(t, service, protocol)
		write := owner.Write{Resource: owner.Resource{Key: team("a"), Spec: []byte(`{}`)}}
		for outcome := owner.Done; outcome <= owner.Refused; outcome++ {
			want.Outcome = outcome
			got, err := client.Write(t.Context(), write)
			if outcome == owner.Waits {
				if err == nil {
					t.Errorf("a write waits: %+v", got)
				}
				continue
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v", outcome, got, err)
			}
		}
	})
}

func TestClient_ListsPageByPage(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		service := newTeams()
		for i := range 25 {
			service.Put(owner.Resource{Key: team(fmt.Sprintf("t%02d", i)), Spec: []byte(`{"n":1}`)})
		}
		service.MakeUnreadable(team("t07"), "its row is damaged")
		client := connectTo(t, service, protocol)
		var readable, unreadable, pages int
		for token := ""; ; pages++ {
			page, err := client.List(t.Context(), "Team", token, 10)
			if err != nil {
				t.Fatal(err)
			}
			readable += len(page.Resources)
			unreadable += len(page.Unreadable)
			if token = page.Next; token == "" {
				break
			}
		}
		if readable != 24 || unreadable != 1 || pages != 2 {
			t.Errorf("%d resources and %d that are unreadable, in %d pages and one more", readable, unreadable, pages)
		}
	})
}

func TestClient_ReportsCallsThatTheServiceDoesNotHave(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		service := ownertest.New("teams", owner.Kind{Name: "Team"})
		client := connectTo(t, service, protocol)
		_, changes := client.Changes(t.Context(), "", 0)
		_, write := client.Write(t.Context(), owner.Write{Resource: owner.Resource{Key: team("a"), Spec: []byte(`{}`)}})
		_, remove := client.Delete(t.Context(), owner.Delete{Key: team("a")})
		for _, err := range []error{changes, write, remove} {
			if !errors.Is(err, owner.ErrUnimplemented) || errors.Is(err, owner.ErrNotSent) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestClient_ChangesIsNotHeldBackByOtherCalls(t *testing.T) {
	service := newTeams()
	entered := make(chan struct{})
	leave := make(chan struct{})
	service.SetHooks(ownertest.Hooks{Before: func(ctx context.Context, c ownertest.Call) error {
		if c.Method == "Describe" {
			close(entered)
			<-leave
		}
		return nil
	}})
	client := connect(t, remote.Config{Address: serve(t, remote.Handler(service)), InFlight: 1, SlotWait: time.Nanosecond})
	done := make(chan error)
	go func() {
		_, err := client.Describe(t.Context())
		done <- err
	}()
	<-entered
	if _, err := client.Changes(t.Context(), "", 0); err != nil {
		t.Error(err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestClient_AsksForNoMoreThanTheContractAllows(t *testing.T) {
	client := connectTo(t, newTeams(), remote.ConnectJSON)
	if got, err := client.Get(t.Context(), nil); err != nil || len(got) > 0 {
		t.Errorf("no keys: %v, %v", got, err)
	}
	_, err := client.Get(t.Context(), make([]backend.Key, owner.MaxKeys+1))
	if !errors.Is(err, owner.ErrNotSent) {
		t.Errorf("101 keys: %v", err)
	}
}

package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/wait"
)

// stateOf returns what a gateway knows of the service.
func (w *teamWorld) stateOf(i int) service.OwnerState {
	w.t.Helper()
	all := w.gateways[i].Owners()
	if len(all) != 1 {
		w.t.Fatalf("%+v", all)
	}
	return all[0]
}

func TestOwnedMirror_EverythingIsMirroredThatCanBe(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		for n := range 1200 {
			w.teams.Put(ownedTeam(fmt.Sprint("t", n), n))
		}
		w.teams.MakeUnreadable(teamKey("damaged"), "it is damaged")
		w.teams.Put(ownedTeam("Not A Name", 1))
		bad := ownedTeam("nonsense", 1)
		bad.Spec = []byte(`{"size":`)
		w.teams.Put(bad)
		for range 2 {
			w.begin(w.teams)
		}
		w.settle()
		for i := range 2 {
			st := w.stateOf(i)
			if st.State != service.OwnerFollowed || st.Lag != 0 || st.Unreadable != 2 || st.Unnamed != 1 || !st.Kinds[0].Followed {
				t.Errorf("%+v", st)
			}
		}
		w.teams.Remove(bad.Key)
		w.teams.Remove(teamKey("Not A Name"))
		w.settle()
		w.mirrored()
		if n := w.stateOf(0).Unreadable; n != 1 {
			t.Errorf("%d are unreadable", n)
		}
	})
}

func TestOwnedMirror_ChangesAreFollowedAndKeepWhatTheSDLCannotName(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		r := ownedTeam("a", 1)
		r.Spec = []byte(`{"email":"a@b","size":1,"secretField":{"x":[1,2]}}`)
		r.Labels = map[string]string{"tier": "gold"}
		w.teams.Put(r)
		time.Sleep(100 * time.Millisecond)
		b := bodyOf(t, w.stored("Team", "a"))
		if b.Metadata.UpdatedBy != "service:teams" || b.Metadata.Labels["tier"] != "gold" {
			t.Errorf("%+v", b)
		}
		if _, err := w.resize(t.Context(), 0, "a", w.stored("Team", "a").Revision.String(), 2); err != nil {
			t.Fatal(err)
		}
		if is, _ := w.teams.Show(r.Key); !strings.Contains(string(is.Spec), "secretField") || is.Labels["tier"] != "gold" {
			t.Errorf("%s %v", is.Spec, is.Labels)
		}
		w.settle()
		at := w.position()
		w.teams.Remove(r.Key)
		w.teams.Put(ownedTeam("a", 7)) // another resource of that name
		time.Sleep(100 * time.Millisecond)
		if story := w.storyAfter(at); story != "DELETED Team/a; ADDED Team/a; " {
			t.Error(story)
		}
		w.mirrored()
		page, err := w.gateways[1].Reader.List(t.Context(), query.ListRequest{Kind: "Team", First: new(10)})
		if err != nil || len(page.Edges) != 1 {
			t.Errorf("%+v %v", page, err)
		}
	})
}

func TestOwnedMirror_WhatIsEqualIsNotWritten(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		for n := range 50 {
			r := ownedTeam(fmt.Sprint("t", n), n)
			r.Status = []byte(`{"members":2}`)
			r.Annotations = map[string]string{"a": "b"}
			w.teams.Put(r)
		}
		w.mustCreate(0, "Team", "mine", `{"email":"A@B","size":1}`)
		w.settle()
		at := w.position()
		w.teams.Expire()
		time.Sleep(30 * time.Minute)
		if story := w.storyAfter(at); story != "" {
			t.Error(story)
		}
	})
}

func TestOwnedMirror_ARestoredServiceIsCompared(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.teams.Put(ownedTeam("kept", 1))
		w.teams.Put(ownedTeam("removed", 1))
		old := w.teams.Backup()
		w.teams.Put(ownedTeam("kept", 2))
		w.teams.Remove(teamKey("removed"))
		w.teams.Put(ownedTeam("new", 1))
		w.settle()
		w.mirrored()
		w.teams.Restore(old)
		w.settle()
		w.mirrored()
	})
}

func TestOwnedMirror_AServiceWithoutChangesIsComparedEvery30Seconds(t *testing.T) {
	plain := ownertest.Full("Team")
	plain.Changes = false
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.teams.Put(ownedTeam("a", 1))
		time.Sleep(35 * time.Second)
		w.mirrored()
		if st := w.stateOf(0); st.Kinds[0].Followed || st.Lag > 35*time.Second || st.State != service.OwnerFollowed {
			t.Errorf("%+v", st)
		}
	}, plain)
}

func TestOwnedMirror_ItIsFilledAlthoughSomethingAlwaysChanges(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		w.teams.SetHooks(slow("Get", 300*time.Millisecond))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for n := 0; wait.For(ctx, 50*time.Millisecond); n++ {
				w.teams.Put(ownedTeam(fmt.Sprint("t", n%50), n))
			}
		}()
		w.begin(w.teams)
		time.Sleep(20 * time.Second)
		if st := w.stateOf(0); st.State != service.OwnerFollowed || st.Lag == 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_AServiceWhoseChangesAlwaysFailIsAskedLessAndLess(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		calls := 0
		w.teams.SetHooks(ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Changes" {
				calls++
				return errLost
			}
			return nil
		}})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if calls == 0 || calls > 500 { // pauses are 2.5 s in the mean
			t.Errorf("it was asked %d times", calls)
		}
	})
}

// TestOwnedMirror_WhatCannotBeMirroredIsListed: the gateway lists the resources that it cannot mirror, with and without
// a record, as far as they are in the namespace, and no longer once they can be mirrored.
func TestOwnedMirror_WhatCannotBeMirroredIsListed(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		w.teams.Put(ownedTeam("readable", 1))
		w.teams.Put(ownedTeam("mirrored", 1))
		w.teams.MakeUnreadable(teamKey("damaged"), "it is damaged")
		svc := w.begin(w.teams)
		w.settle()
		bad := ownedTeam("mirrored", 2)
		bad.Spec = []byte(`{"size":`)
		w.teams.Put(bad)
		elsewhere := backend.Key{Kind: "Team", Namespace: "a", Name: "elsewhere"}
		w.teams.MakeUnreadable(elsewhere, "its disk is full")
		w.settle()
		listed := func(namespace *string) (out []string) {
			found, err := svc.Reader.Unreadables(t.Context(), "Team", namespace)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range found {
				out = append(out, u.Key.Namespace+"/"+u.Key.Name+": "+u.Reason)
			}
			return out
		}
		const cannot = "it is not what the kind can have: the service cannot show it: "
		want := []string{"a/elsewhere: " + cannot + "its disk is full", "n/damaged: " + cannot + "it is damaged", "n/mirrored: spec: "}
		got := listed(nil)
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || !strings.HasPrefix(got[2], want[2]) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := listed(&elsewhere.Namespace); !slices.Equal(got, want[:1]) {
			t.Errorf("%q, want %q", got, want[:1])
		}
		w.teams.Put(ownedTeam("mirrored", 2))
		w.teams.Put(ownedTeam("damaged", 1))
		w.teams.Remove(elsewhere)
		w.settle()
		if got := listed(nil); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
}

func TestOwnedMirror_WhatCannotBeMirroredIsForgottenOnceItIsGone(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		w.teams.MakeUnreadable(teamKey("damaged"), "it is damaged")
		w.teams.MakeUnreadable(teamKey("Still No Name"), "it is damaged")
		w.teams.MakeUnreadable(teamKey("damaged-too"), "it is damaged")
		w.teams.Put(ownedTeam("Not A Name", 1))
		w.begin(&silent{Service: w.teams})
		w.settle()
		if st := w.stateOf(0); st.Unreadable != 2 || st.Unnamed != 2 {
			t.Errorf("%+v", st)
		}
		w.teams.Remove(teamKey("damaged"))
		w.teams.Remove(teamKey("Not A Name"))
		time.Sleep(time.Hour) // comparisons
		if st := w.stateOf(0); st.Unreadable != 1 || st.Unnamed != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// circling is a service whose lists do not end, unless ends is set.
type circling struct {
	owner.Service
	calls atomic.Int64
	ends  atomic.Bool
}

func (c *circling) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	c.calls.Add(1)
	if c.ends.Load() {
		return c.Service.List(ctx, kind, token, size)
	}
	if token == "a" {
		return owner.Page{Next: "b"}, nil
	}
	return owner.Page{Next: "a"}, nil
}

func TestOwnedMirror_AListThatCirclesIsLeft(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		lists := &circling{Service: w.teams}
		w.begin(lists)
		time.Sleep(time.Minute)
		if n := lists.calls.Load(); n == 0 || n > 60 {
			t.Errorf("%d pages were asked for", n)
		}
		st := w.stateOf(0)
		if st.State != service.OwnerFilling || !strings.Contains(st.Problem, "the list of the service does not end") {
			t.Errorf("%+v", st)
		}
	})
}

// failingCalls makes the calls of a method fail.
func failingCalls(method string) ownertest.Hooks {
	return ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
		if c.Method == method {
			return errLost
		}
		return nil
	}}
}

func TestOwnedMirror_TheStateOfAServiceThatAnswersOnlySomeCallsDoesNotFlip(t *testing.T) {
	for _, method := range []string{"List", "Changes"} {
		t.Run(method, func(t *testing.T) {
			inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
				w.teams.SetHooks(failingCalls(method))
				w.teams.Expire() // everything is compared
				w.teams.Put(ownedTeam("a", 1))
				time.Sleep(40 * time.Second) // a call for changes waits for 20 s
				for range 1200 {
					time.Sleep(100 * time.Millisecond)
					if st := w.stateOf(0); st.State != service.OwnerUnavailable {
						t.Fatalf("%+v", st)
					}
				}
				w.teams.SetHooks(ownertest.Hooks{})
				time.Sleep(15 * time.Second)
				if st := w.stateOf(0); st.State != service.OwnerFollowed || st.Problem != "" {
					t.Errorf("%+v", st)
				}
				w.mirrored()
			})
		})
	}
}

func TestOwnedMirror_AnEndlessListOfAFollowedServiceIsAProblem(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		lists := &circling{Service: w.teams}
		lists.ends.Store(true)
		w.begin(lists)
		w.settle()
		if st := w.stateOf(0); st.State != service.OwnerFollowed || st.Problem != "" {
			t.Fatalf("%+v", st)
		}
		lists.ends.Store(false)
		w.teams.Expire()
		time.Sleep(time.Second)
		w.teams.Put(ownedTeam("a", 1))
		time.Sleep(time.Minute)
		st := w.stateOf(0)
		if st.State != service.OwnerFollowed || !strings.Contains(st.Problem, "kind Team: the list of the service does not end") {
			t.Errorf("%+v", st)
		}
		w.mirrored() // changes are followed
		lists.ends.Store(true)
		time.Sleep(time.Minute)
		if st := w.stateOf(0); st.Problem != "" {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_TheIntervalOfComparisonsIsASetting(t *testing.T) {
	plain := ownertest.Full("Team")
	plain.Changes = false
	for _, kind := range []owner.Kind{plain, ownertest.Full("Team")} {
		inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
			lists := &circling{Service: w.teams}
			lists.ends.Store(true)
			w.beginWith(service.Config{
				Owners:           map[string]owner.Service{"teams": lists},
				CompareIntervals: map[string]time.Duration{"teams": 2 * time.Minute, "other": time.Second},
			})
			time.Sleep(time.Hour)
			if n := lists.calls.Load(); n < 26 || n > 32 { // intervals are up to a tenth longer
				t.Errorf("changes %v: it was compared %d times", kind.Changes, n)
			}
		}, kind)
	}
}

func TestOwnedMirror_ComparisonsAreCounted(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		for n := range 7 {
			w.teams.Put(ownedTeam(fmt.Sprint("t", n), n))
		}
		w.begin(&silent{Service: w.teams})
		w.settle()
		if st := w.stateOf(0); st.Compared != 7 || st.Different != 7 {
			t.Errorf("%+v", st)
		}
		w.teams.Put(ownedTeam("t3", 30)) // of which the service does not tell
		time.Sleep(12 * time.Minute)
		if st := w.stateOf(0); st.Compared != 14 || st.Different != 8 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_AFillOfMoreThanHalfOfTheLogIsWarnedOf(t *testing.T) {
	for resources, warnings := range map[int]int{10: 0, 11: 1} {
		inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
			for n := range resources {
				w.teams.Put(ownedTeam(fmt.Sprint("t", n), n))
			}
			core, log := observer.New(zap.WarnLevel)
			w.beginWith(service.Config{RetainEntries: 20, Logger: zap.New(core)})
			w.settle()
			w.mirrored()
			w.teams.Expire() // nothing differs now
			w.settle()
			found := log.FilterMessageSnippet("raise retain-entries").All()
			if len(found) != warnings || warnings > 0 && found[0].ContextMap()["kind"] != "Team" {
				t.Errorf("%d resources: %+v", resources, found)
			}
		})
	}
}

func TestOwnedMirror_AnOldListChangesNothing(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.teams.Put(ownedTeam("old", 1))
		w.teams.Put(ownedTeam("kept", 1))
		w.teams.FreezeList()
		w.teams.Remove(teamKey("old"))
		w.teams.Put(ownedTeam("kept", 2))
		w.teams.Put(ownedTeam("new", 1))
		w.settle()
		at := w.position()
		w.begin(w.teams) // compares with the old list
		w.settle()
		w.mirrored()
		if story := w.storyAfter(at); story != "" {
			t.Error(story)
		}
	})
}

func TestOwnedMirror_WhatVanishesAtOnceIsKeptForAWhile(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		empty := w.teams.Backup()
		for n := range 150 {
			w.teams.Put(ownedTeam(fmt.Sprint("t", n), n))
		}
		w.settle()
		w.mirrored()
		w.teams.Restore(empty)
		time.Sleep(9 * time.Minute)
		if st := w.stateOf(0); st.Held != 150 || w.stored("Team", "t7") == nil {
			t.Errorf("%+v", st)
		}
		time.Sleep(3 * time.Minute)
		w.mirrored()
		if st := w.stateOf(0); st.Held != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_WhatIsAddedAndGoneAlreadyIsLookedAtOnceMore(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.teams.SetHooks(ownertest.Hooks{After: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Write" {
				w.teams.Remove(c.Keys[0])
				time.Sleep(time.Second) // the mirror looks, and finds nothing on both sides
			}
			return nil
		}})
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		time.Sleep(time.Second)
		w.mirrored()
	})
}

func TestOwnedMirror_AWriterWhoseRecordIsMirroredByAnotherGatewayStaysTheOneWhoUpdated(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.settle()
		w.teams.SetHooks(ownertest.Hooks{After: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Write" {
				time.Sleep(time.Second) // the other gateway is first
			}
			return nil
		}})
		if _, err := w.resize(t.Context(), 0, "a", w.stored("Team", "a").Revision.String(), 2); err != nil {
			t.Fatal(err)
		}
		if b := bodyOf(t, w.stored("Team", "a")); b.Metadata.UpdatedBy != "token:alice" || b.Spec.Size != 2 {
			t.Errorf("%+v", b)
		}
		w.mirrored()
	})
}

func TestOwnedMirror_ReadsGoOnWithoutTheService(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.settle()
		w.teams.SetHooks(ownertest.Hooks{Before: func(context.Context, ownertest.Call) error { return owner.ErrNotSent }})
		time.Sleep(5 * time.Minute)
		page, err := w.gateways[0].Reader.List(t.Context(), query.ListRequest{Kind: "Team", First: new(10)})
		if err != nil || len(page.Edges) != 1 {
			t.Errorf("%+v %v", page, err)
		}
		st := w.stateOf(0)
		if st.State != service.OwnerUnavailable || st.Lag < 4*time.Minute || st.Problem == "" {
			t.Errorf("%+v", st)
		}
		w.teams.SetHooks(ownertest.Hooks{})
		w.teams.Put(ownedTeam("b", 1))
		time.Sleep(30 * time.Second)
		w.mirrored()
		if st := w.stateOf(0); st.State != service.OwnerFollowed || st.Lag != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_AnUnknownServiceLeavesItsKindsReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openTeamWorld(t, ownertest.Full("Team"))
		w.begin(w.teams)
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		other, err := service.New(service.Config{Kinds: teamKinds(), Store: w.store.Handle()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.Writer.Create(t.Context(), service.CreateRequest{Identity: in("Team", "b"), Spec: json.RawMessage(`{}`)})
		failureOf(t, err, failure.CodeUnavailable, "")
		_, err = other.Writer.Delete(t.Context(), service.DeleteRequest{Identity: in("Team", "a")})
		failureOf(t, err, failure.CodeUnavailable, "")
		if got, err := other.Reader.Get(t.Context(), in("Team", "a")); err != nil || got == nil {
			t.Error(got, err)
		}
		if st := other.Owners(); len(st) != 1 || st[0].State != service.OwnerUnknown {
			t.Errorf("%+v", st)
		}
	})
}

func TestOwnedMirror_ADamagedRecordIsReplaced(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		out := w.mustCreate(0, "Team", "a", `{"size":1}`)
		_, err := w.store.Apply(t.Context(), backend.Batch{
			RequestID: "damage", Deadline: time.Now().Add(time.Minute),
			Actions: []backend.Action{{
				Key: teamKey("a"), Op: backend.OpPut, Put: backend.Put{UID: out.Resource.Stored.UID, Body: []byte("nonsense")},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if out, err = w.upsert(0, "a", 2); err != nil || out.Outcome != service.Updated {
			t.Errorf("%+v %v", out, err)
		}
		w.mirrored()
	})
}

func TestOwnedMirror_GatewaysOfDifferentCataloguesDoNotUndoEachOther(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		older := teamKinds()
		older[0].Spec.Fields = older[0].Spec.Fields[:1] // without size
		older[0].FilterableFields = nil
		other, err := service.New(service.Config{
			Kinds: older, Store: w.store.Handle(), Owners: map[string]owner.Service{"teams": w.teams},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.run(other)
		w.teams.Put(ownedTeam("a", 1))
		w.settle()
		at := w.position()
		if _, err := other.Writer.Upsert(t.Context(), service.UpsertRequest{
			Identity: in("Team", "a"), Spec: map[string]any{"email": "c@d"},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		w.checkEdit(at)
		if b := bodyOf(t, w.stored("Team", "a")); b.Spec.Size != 1 || b.Spec.Email != "c@d" {
			t.Errorf("%+v", b)
		}
		w.mirrored()
	})
}

func TestOwnedMirror_AReplacedCatalogueGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openTeamWorld(t, ownertest.Full("Team"))
		first, err := service.New(service.Config{
			Kinds: teamKinds(), Store: w.store.Handle(), Owners: map[string]owner.Service{"teams": w.teams},
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := w.run(first)
		w.teams.Put(ownedTeam("a", 1))
		w.settle()
		w.begin(w.teams) // both mirror for a while
		w.teams.Put(ownedTeam("b", 1))
		stop()
		w.teams.Put(ownedTeam("c", 1))
		w.settle()
		w.mirrored()
	})
}

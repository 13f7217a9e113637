package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

func TestOwned_AWriteIsMadeByTheServiceAndMirroredAsTheCaller(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		var who []string
		w.teams.SetHooks(ownertest.Hooks{
			Before: func(ctx context.Context, c ownertest.Call) error {
				if c.Method == "Write" {
					who = append(who, access.CallerFrom(ctx).UpdatedBy())
				}
				return nil
			},
			Admit: func(r *owner.Resource) { r.Status = []byte(`{"members":3}`) },
		})
		out := w.mustCreate(0, "Team", "a", `{"email":"a@b","size":1}`)
		if out.Outcome != service.Created {
			t.Error(out.Outcome)
		}
		w.settle()
		b := bodyOf(t, w.stored("Team", "a"))
		if b.Metadata.UpdatedBy != "token:alice" || b.Status.Members != 3 || b.Metadata.Generation != 1 {
			t.Errorf("%+v", b)
		}
		out, err := w.resize(t.Context(), 1, "a", out.Resource.Stored.Revision.String(), 2)
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		b = bodyOf(t, w.stored("Team", "a"))
		if out.Outcome != service.Updated || b.Spec.Size != 2 || b.Metadata.Generation != 2 || b.Metadata.UpdatedBy != "token:alice" {
			t.Errorf("%v %+v", out.Outcome, b)
		}
		if !slices.Equal(who, []string{"token:alice", "token:alice"}) {
			t.Errorf("the service was asked by %q", who)
		}
		w.mirrored()
	})
}

func TestOwned_AnExpectedRevisionIsJudgedAgainByWhatTheServiceHas(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		quiet := &silent{Service: w.teams}
		w.begin(quiet)
		w.settle()
		out := w.mustCreate(0, "Team", "a", `{"size":1}`)
		revision := out.Resource.Stored.Revision.String()
		w.teams.Put(ownedTeam("a", 5)) // of which no gateway is told
		_, err := w.resize(t.Context(), 0, "a", revision, 2)
		failureOf(t, err, failure.CodeConflict, "")
		if b := bodyOf(t, w.stored("Team", "a")); b.Spec.Size != 5 || b.Metadata.UpdatedBy != "service:teams" {
			t.Errorf("%+v", b)
		}
		revision = w.stored("Team", "a").Revision.String()
		w.teams.Put(ownedTeam("b", 1))
		if _, err = w.create(0, "Team", "b", `{"size":9}`); err == nil {
			t.Fatal("it was created twice")
		}
		e := failureOf(t, err, failure.CodeAlreadyExists, "")
		if e.CurrentRevision != w.stored("Team", "b").Revision.String() {
			t.Errorf("%+v", e)
		}
		status := ownedTeam("a", 5)
		status.Status = []byte(`{"members":9}`)
		w.teams.Put(status) // a change of the status is no conflict
		if _, err = w.resize(t.Context(), 0, "a", revision, 6); err != nil {
			t.Error(err)
		}
		if out, err := w.upsert(0, "c", 1); err != nil || out.Outcome != service.Created {
			t.Error(out, err)
		}
		w.teams.Put(ownedTeam("c", 7))
		if out, err := w.upsert(0, "c", 1); err != nil || out.Outcome != service.Updated {
			t.Errorf("the record seems to be equal, and is behind: %+v %v", out, err)
		}
		w.settle()
		w.mirrored()
	})
}

// silent is a service that tells of no change.
type silent struct{ owner.Service }

func (s *silent) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	if position == "" {
		return owner.Changes{Position: "p"}, nil
	}
	<-ctx.Done()
	return owner.Changes{}, ctx.Err()
}

func TestOwned_WhatTheServiceRefusesHasItsReasons(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		answer := owner.Answer{Outcome: owner.Invalid, Violations: []owner.Violation{
			{Path: "spec.email", Rule: "domain", Message: "must be ours"},
		}}
		w.teams.SetHooks(ownertest.Hooks{Write: func(owner.Write) *owner.Answer { return &answer }})
		_, err := w.create(0, "Team", "a", `{"email":"x@y"}`)
		e := failureOf(t, err, failure.CodeValidationFailed, "")
		if len(e.Violations) != 1 || e.Violations[0].Path != "spec.email" || e.Violations[0].Rule != "domain" {
			t.Errorf("%+v", e)
		}
		answer = owner.Answer{Outcome: owner.Forbidden, Message: "not you"}
		_, err = w.create(0, "Team", "a", `{}`)
		failureOf(t, err, failure.CodeForbidden, "")
		answer = owner.Answer{Outcome: owner.Refused, Message: "no more teams"}
		_, err = w.create(0, "Team", "a", `{}`)
		failureOf(t, err, failure.CodeForbidden, "")
		w.teams.SetHooks(ownertest.Hooks{})
		if _, err = w.create(0, "Team", "a", `{"size":"large"}`); err == nil {
			t.Error("the SDL does not judge")
		}
		if len(w.teams.All()) != 0 {
			t.Errorf("%v", w.teams.All())
		}
	})
}

var errLost = errors.New("the connection broke")

// lose makes the answers to so many writes get lost.
func lose(method string, times int) ownertest.Hooks {
	return ownertest.Hooks{After: func(_ context.Context, c ownertest.Call) error {
		if c.Method == method && times > 0 {
			times--
			return errLost
		}
		return nil
	}}
}

func TestOwned_ALostAnswerIsSettledByTheIDOfTheWrite(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.teams.SetHooks(lose("Write", 3))
		out, err := w.create(0, "Team", "a", `{"size":1}`)
		if err != nil || out.Outcome != service.Created {
			t.Fatal(out, err)
		}
		w.teams.SetHooks(lose("Write", 2))
		if _, err := w.resize(t.Context(), 0, "a", w.stored("Team", "a").Revision.String(), 2); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if b := bodyOf(t, w.stored("Team", "a")); b.Spec.Size != 2 || b.Metadata.UpdatedBy != "token:alice" {
			t.Errorf("%+v", b)
		}
		w.mirrored()
	})
}

func TestOwned_EqualContentIsNoProofThatAWriteWasMade(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"email":"a@b","size":1}`)
		revision := w.stored("Team", "a").Revision.String()
		first := true
		w.teams.SetHooks(ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Write" && first {
				first = false
				w.teams.Put(ownedTeam("a", 2)) // by another one, while ours is lost on its way there
				return errLost
			}
			return nil
		}})
		_, err := w.resize(t.Context(), 0, "a", revision, 2)
		failureOf(t, err, failure.CodeUnavailable, failure.OutcomeUnknown)
	})
}

func TestOwned_AServiceThatCannotBeReachedChangesNothing(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.teams.SetHooks(ownertest.Hooks{Before: func(context.Context, ownertest.Call) error { return owner.ErrNotSent }})
		_, err := w.create(0, "Team", "b", `{}`)
		if e := failureOf(t, err, failure.CodeUnavailable, ""); !e.Retryable || e.RetryAfter == 0 {
			t.Errorf("%+v", e)
		}
		_, err = w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeUnavailable, "")
		if w.stored("Team", "a").Deleting {
			t.Error("the deletion was not taken back")
		}
	})
}

func TestOwned_ADryRunIsTheServicesIfItCan(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.teams.SetHooks(ownertest.Hooks{Admit: func(r *owner.Resource) { r.Status = []byte(`{"members":4}`) }})
		ask := service.CreateRequest{Identity: in("Team", "a"), Spec: map[string]any{"size": 1}, DryRun: true}
		out, err := w.gateways[0].Writer.Create(t.Context(), ask)
		if err != nil || len(out.Warnings) > 0 || bodyOf(t, out.Resource.Stored).Status.Members != 4 {
			t.Fatal(out, err)
		}
		plain := ownertest.Full("Team")
		plain.DryRun = false
		w.teams.SetKinds(plain)
		w2 := w.begin(w.teams)
		out, err = w2.Writer.Create(t.Context(), ask)
		if err != nil || len(out.Warnings) != 1 || out.Warnings[0].Code != failure.WarningService {
			t.Fatal(out, err)
		}
		if len(w.teams.All()) != 0 || w.stored("Team", "a") != nil {
			t.Error("something was written")
		}
	})
}

func TestOwned_WhatTheServiceCannotShowIsUnreadable(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		w.begin(&silent{Service: w.teams})
		w.settle()
		out := w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.teams.SetHooks(ownertest.Hooks{Admit: func(r *owner.Resource) { r.Status = []byte(`{"members":`) }})
		_, err := w.gateways[0].Writer.Create(t.Context(), service.CreateRequest{
			Identity: in("Team", "b"), Spec: map[string]any{"size": 1}, DryRun: true,
		})
		if e := failureOf(t, err, failure.CodeUnreadable, ""); e.Name != "b" || !strings.Contains(e.Message, "service teams") {
			t.Errorf("%+v", e)
		}
		w.teams.MakeUnreadable(teamKey("a"), "its disk is damaged")
		_, err = w.resize(t.Context(), 0, "a", out.Resource.Stored.Revision.String(), 2)
		e := failureOf(t, err, failure.CodeUnreadable, "")
		if e.Name != "a" || !strings.Contains(e.Message, "service teams") || !strings.Contains(e.Message, "damaged") {
			t.Errorf("%+v", e)
		}
		_, err = w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeUnreadable, "")
	})
}

func TestOwned_AServiceThatContradictsTheSDLIsNotWritten(t *testing.T) {
	plain := ownertest.Full("Team")
	plain.Conditional = false
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		_, err := w.create(0, "Team", "a", `{}`)
		failureOf(t, err, failure.CodeUnavailable, "")
		w.teams.Put(ownedTeam("b", 1))
		w.settle()
		w.mirrored() // reads go on
	}, plain)
}

func TestOwned_AServiceThatContradictsItselfIsNotAskedOnAndOn(t *testing.T) {
	for _, outcome := range []owner.Outcome{owner.Conflict, owner.Absent} {
		t.Run(outcome.String(), func(t *testing.T) {
			inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
				w.mustCreate(0, "Team", "a", `{"size":1}`)
				calls := 0
				answer := func() *owner.Answer {
					calls++
					return &owner.Answer{Outcome: outcome}
				}
				w.teams.SetHooks(ownertest.Hooks{
					Write:  func(owner.Write) *owner.Answer { return answer() },
					Delete: func(owner.Delete) *owner.Answer { return answer() },
				})
				_, err := w.resize(t.Context(), 0, "a", w.stored("Team", "a").Revision.String(), 2)
				e := failureOf(t, err, failure.CodeUnavailable, "")
				if !strings.Contains(e.Message, "the service teams answers "+outcome.String()) || calls != 3 {
					t.Errorf("it was asked %d times: %s", calls, e.Message)
				}
				calls = 0
				_, err = w.upsert(0, "a", 3)
				failureOf(t, err, failure.CodeUnavailable, "")
				_, err = w.delete(0, "Team", "a")
				failureOf(t, err, failure.CodeUnavailable, "")
				if calls > 12 {
					t.Errorf("it was asked %d times", calls)
				}
				if r := w.stored("Team", "a"); r.Deleting {
					t.Error("the deletion was not taken back")
				}
				w.teams.SetHooks(ownertest.Hooks{})
				if _, err := w.resize(t.Context(), 0, "a", w.stored("Team", "a").Revision.String(), 4); err != nil {
					t.Error(err)
				}
				w.mirrored()
			})
		})
	}
}

package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

// slow makes calls of a method take a while.
func slow(method string, d time.Duration) ownertest.Hooks {
	return ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
		if c.Method == method {
			time.Sleep(d)
		}
		return nil
	}}
}

func TestDeleteOwned_EveryDeleteOfAGuardedResourceIsAnsweredDeleted(t *testing.T) {
	for _, took := range []time.Duration{0, 20 * time.Millisecond, 2 * time.Second} { // within 2 s the other gateway takes over
		t.Run(took.String(), func(t *testing.T) {
			inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
				w.teams.SetHooks(slow("Delete", took))
				for n := range 100 {
					name := fmt.Sprint("x", n)
					w.mustCreate(n%2, "Team", name, `{"size":1}`)
					out, err := w.delete(n%2, "Team", name)
					if err != nil || out.Deletion != service.Deleted {
						t.Fatalf("delete %d: %+v %v", n, out, err)
					}
				}
				w.settle()
				w.mirrored()
			})
		})
	}
}

func TestDeleteOwned_ABoundResourceWaitsAndThenTheServiceIsAsked(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.mustCreate(0, "App", "shop", `{"teamRef":"a"}`)
		out, err := w.delete(0, "Team", "a")
		if err != nil || out.Deletion != service.Pending {
			t.Fatal(out, err)
		}
		w.settle()
		if _, ok := w.teams.Show(teamKey("a")); !ok || !w.stored("Team", "a").Deleting {
			t.Error("the service was asked too early, or the deletion is forgotten")
		}
		other := w.mustCreate(0, "App", "late", `{"teamRef":"a"}`) // waits: the team is on its way out
		if len(other.Warnings) == 0 {
			t.Error("an app relies on a team that is being deleted")
		}
		if _, err := w.delete(1, "App", "shop"); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if _, ok := w.teams.Show(teamKey("a")); ok || w.stored("Team", "a") != nil {
			t.Error("the team is still there")
		}
	})
}

func TestDeleteOwned_ARefusalIsToldAndTheDeletionTakenBack(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "keep", `{"size":1}`)
		w.mustCreate(0, "Team", "later", `{"size":1}`)
		w.mustCreate(0, "App", "shop", `{"teamRef":"later"}`)
		if out, err := w.delete(0, "Team", "later"); err != nil || out.Deletion != service.Pending {
			t.Fatal(out, err)
		}
		w.teams.SetHooks(ownertest.Hooks{Delete: func(owner.Delete) *owner.Answer {
			return &owner.Answer{Outcome: owner.Refused, Message: "it has members"}
		}})
		_, err := w.delete(0, "Team", "keep")
		if e := failureOf(t, err, failure.CodeForbidden, ""); !strings.Contains(e.Message, "it has members") {
			t.Error(e.Message)
		}
		if r := w.stored("Team", "keep"); r.Deleting || bodyOf(t, r).Metadata.DeletionRequestedAt != "" {
			t.Error("the deletion was not taken back")
		}
		if _, err := w.delete(0, "App", "shop"); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if r := w.stored("Team", "later"); r.Deleting {
			t.Error("a deletion that had waited was not taken back")
		}
		w.mirrored()
	})
}

// refuse makes the service refuse all deletes.
func refuse(owner.Delete) *owner.Answer {
	return &owner.Answer{Outcome: owner.Refused, Message: "it has members"}
}

func TestDeleteOwned_WhatWasCreatedBeforeTheRefusalRelies(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		h := slow("Delete", 5*time.Second)
		h.Delete = refuse
		w.teams.SetHooks(h)
		ended := make(chan error, 1)
		go func() {
			_, err := w.delete(0, "Team", "a")
			ended <- err
		}()
		time.Sleep(time.Second)
		w.mustCreate(1, "App", "shop", `{"teamRef":"a"}`)
		w.settle()
		if b := bodyOf(t, w.stored("App", "shop")); len(b.Metadata.Waits) != 1 {
			t.Errorf("it relies on a team that may be gone: %+v", b)
		}
		failureOf(t, <-ended, failure.CodeForbidden, "")
		w.settle()
		if b := bodyOf(t, w.stored("App", "shop")); len(b.Metadata.Waits) > 0 || len(w.stored("App", "shop").Bound()) != 1 {
			t.Errorf("it still waits: %+v", b)
		}
	})
}

func TestDeleteOwned_ARefusedDeletionIsTakenBackAlthoughAnotherGatewayMirrorsAChange(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		h := slow("Delete", 5*time.Second)
		h.Delete = func(d owner.Delete) *owner.Answer {
			w.teams.Update(d.Key, func(is *owner.Resource) { is.Status = []byte(`{"members":2}`) })
			time.Sleep(time.Second)
			return refuse(d)
		}
		w.teams.SetHooks(h)
		_, err := w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeForbidden, "")
		if r := w.stored("Team", "a"); r.Deleting || bodyOf(t, r).Status.Members != 2 {
			t.Errorf("the deletion was not taken back: %+v", bodyOf(t, r))
		}
	})
}

func TestDeleteOwned_AServiceMayLetADeletionWait(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		calls := 0
		w.teams.SetHooks(ownertest.Hooks{Delete: func(owner.Delete) *owner.Answer {
			calls++
			return &owner.Answer{Outcome: owner.Waits}
		}})
		for range 2 {
			out, err := w.delete(0, "Team", "a")
			if err != nil || out.Deletion != service.Finalizing {
				t.Fatal(out, err)
			}
		}
		time.Sleep(2 * time.Minute) // sweeps
		if r := w.stored("Team", "a"); r == nil || !r.Deleting || calls != 1 {
			t.Errorf("asked %d times, %+v", calls, r)
		}
		w.mirrored()
		w.teams.Remove(teamKey("a"))
		w.settle()
		if w.stored("Team", "a") != nil {
			t.Error("it is still there")
		}
	})
}

func TestDeleteOwned_ALostAnswerIsNotGuessed(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.teams.SetHooks(lose("Delete", 1))
		_, err := w.delete(0, "Team", "a") // it is gone, and nobody knows by whom
		failureOf(t, err, failure.CodeUnavailable, failure.OutcomeUnknown)
		w.settle()
		w.mirrored()
		_, err = w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeNotFound, "")
	})
}

func TestDeleteOwned_ASlowServiceStopsNoReconciliation(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		for n := range 10 {
			name := fmt.Sprint("t", n)
			w.mustCreate(0, "Team", name, `{"size":1}`)
			w.mustCreate(0, "App", name, `{"teamRef":"`+name+`"}`)
			if _, err := w.delete(0, "Team", name); err != nil {
				t.Fatal(err)
			}
		}
		w.teams.SetHooks(ownertest.Hooks{Before: func(ctx context.Context, c ownertest.Call) error {
			if c.Method != "Delete" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		for n := range 10 {
			if _, err := w.delete(0, "App", fmt.Sprint("t", n)); err != nil {
				t.Fatal(err)
			}
		}
		w.settle()
		w.mustCreate(0, "App", "waits", `{"teamRef":"new"}`)
		w.teams.Put(ownedTeam("new", 1))
		time.Sleep(time.Second)
		if b := bodyOf(t, w.stored("App", "waits")); len(b.Metadata.Waits) > 0 {
			t.Errorf("%+v", b)
		}
	})
}

func TestDeleteOwned_ATargetThatVanishesIsWaitedForAgain(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.mustCreate(0, "App", "shop", `{"teamRef":"a"}`)
		w.settle()
		at := w.position()
		w.teams.Remove(teamKey("a"))
		w.settle()
		if story := w.storyAfter(at); story != "DELETED Team/a; MODIFIED App/shop; " {
			t.Error(story)
		}
		b := bodyOf(t, w.stored("App", "shop"))
		if len(b.Metadata.Waits) != 1 || len(b.Status.Conditions) == 0 || !strings.Contains(b.Status.Conditions[0].Message, "Waiting for Team/a") {
			t.Errorf("%+v", b)
		}
		if len(w.stored("App", "shop").Bound()) > 0 {
			t.Error("it is still bound")
		}
		w.teams.Put(ownedTeam("a", 2))
		w.settle()
		b = bodyOf(t, w.stored("App", "shop"))
		if len(b.Metadata.Waits) > 0 || len(w.stored("App", "shop").Bound()) != 1 {
			t.Errorf("%+v", b)
		}
	})
}

func TestDeleteOwned_NobodyDeletesWhatTheServiceForbidsTheCallerToDelete(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.mustCreate(0, "Team", "bound", `{"size":1}`)
		w.mustCreate(0, "App", "shop", `{"teamRef":"bound"}`)
		h := slow("Delete", 5*time.Second) // for longer than gateways leave changes to each other
		calls := 0
		h.Delete = func(owner.Delete) *owner.Answer {
			calls++
			if calls == 1 {
				return &owner.Answer{Outcome: owner.Forbidden, Message: "not you"}
			}
			return nil
		}
		w.teams.SetHooks(h)
		_, err := w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeForbidden, "")
		calls = 0
		_, err = w.delete(0, "Team", "bound") // by a dry run
		failureOf(t, err, failure.CodeForbidden, "")
		time.Sleep(5 * time.Minute)
		if calls != 1 || len(w.teams.All()) != 2 {
			t.Errorf("asked %d times, %d are left", calls, len(w.teams.All()))
		}
		w.mirrored()
	})
}

func TestDeleteOwned_ADeletionThatAGatewayNeverHeardOfIsTakenBack(t *testing.T) {
	inTeamWorld(t, 2, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		h := lose("Delete", 1000)
		h.Before = func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Delete" {
				return errLost
			}
			return nil
		}
		w.teams.SetHooks(h)
		_, err := w.delete(0, "Team", "a")
		failureOf(t, err, failure.CodeUnavailable, failure.OutcomeUnknown)
		if !w.stored("Team", "a").Deleting {
			t.Error("it may have been deleted, and others may rely on it")
		}
		w.teams.SetHooks(ownertest.Hooks{})
		time.Sleep(30 * time.Second) // it was asked for 30 s before
		w.mirrored()
		if len(w.teams.All()) != 1 {
			t.Error("it was deleted, although nobody was told so")
		}
	})
}

func TestDeleteOwned_ADeletionOfAGatewayThatWasKilledIsDecidedWithinAMinute(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.teams.SetHooks(ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Delete" {
				panic(errKilled)
			}
			return nil
		}})
		func() {
			defer func() {
				if ended := recover(); ended != errKilled {
					t.Fatal(ended)
				}
			}()
			_, _ = w.delete(0, "Team", "a")
		}()
		w.teams.SetHooks(ownertest.Hooks{})
		w.begin(w.teams)
		waits := w.mustCreate(1, "App", "shop", `{"teamRef":"a"}`)
		if len(waits.Warnings) == 0 {
			t.Error("an app relies on a team that may be gone")
		}
		time.Sleep(time.Minute)
		if b := bodyOf(t, w.stored("App", "shop")); len(b.Metadata.Waits) > 0 || len(w.stored("App", "shop").Bound()) != 1 {
			t.Errorf("it still waits: %+v", b)
		}
		w.mirrored()
	})
}

// errKilled ends a call of a gateway that is killed meanwhile: nothing after the call is done.
var errKilled = errors.New("killed")

func TestDeleteOwned_AGatewayAsksForADeletionOnceAtATime(t *testing.T) {
	inTeamWorld(t, 1, func(t *testing.T, w *teamWorld) {
		w.mustCreate(0, "Team", "a", `{"size":1}`)
		w.mustCreate(0, "App", "shop", `{"teamRef":"a"}`)
		if out, err := w.delete(0, "Team", "a"); err != nil || out.Deletion != service.Pending {
			t.Fatal(out, err)
		}
		var asking, most, calls atomic.Int64
		w.teams.SetHooks(ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Delete" {
				calls.Add(1)
				most.Store(max(most.Load(), asking.Add(1)))
				time.Sleep(5 * time.Second)
				asking.Add(-1)
			}
			return nil
		}})
		if _, err := w.delete(0, "App", "shop"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if calls.Load() != 1 {
			t.Fatalf("the service was asked %d times after nothing held the team", calls.Load())
		}
		_, err := w.delete(0, "Team", "a") // while the gateway itself asks
		if known, _ := errors.AsType[*failure.Error](err); err != nil && (known == nil || known.Code != failure.CodeNotFound) {
			t.Error(err)
		}
		w.settle()
		if most.Load() != 1 || len(w.teams.All()) > 0 || w.stored("Team", "a") != nil {
			t.Errorf("%d calls at a time; %d teams are left", most.Load(), len(w.teams.All()))
		}
	})
}

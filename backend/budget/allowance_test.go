package budget_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
)

func TestAllowance_EventsShareAnAllowanceBeyondWhatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := budget.NewAllowance(8000)
		event := func(a *budget.Allowance, steps int) error {
			b := budget.NewShared(budget.Limits{budget.Events: 8000}, budget.Shared{Events: a})
			return b.Spend(budget.Steps, steps)
		}
		one := all.Connection() // which has a quarter
		for range 100 {
			if err := event(one, budget.FreeSteps); err != nil {
				t.Fatal("what is free:", err)
			}
		}
		if err := event(one, budget.FreeSteps+2000); err != nil {
			t.Fatal(err)
		}
		var over *budget.ExceededError
		if err := event(one, budget.FreeSteps+1); !errors.As(err, &over) || over.Thing != budget.Events || over.Limit != 8000 {
			t.Errorf("more than a connection has: %v", err)
		}
		for range 3 {
			if err := event(all.Connection(), budget.FreeSteps+2000); err != nil {
				t.Fatal(err)
			}
		}
		if err := event(all.Connection(), budget.FreeSteps+1); !errors.As(err, &over) {
			t.Errorf("more than all have: %v", err)
		}
		if err := event(one, budget.FreeSteps); err != nil {
			t.Error("small events go on:", err)
		}
		time.Sleep(time.Second)
		if err := event(one, budget.FreeSteps+500); err != nil {
			t.Error("a quarter comes back in a second:", err)
		}
		if err := event(one, budget.FreeSteps+1); err == nil {
			t.Error("and no more")
		}
	})
}

func TestAllowance_AnOperationIsNoEvent(t *testing.T) {
	b := budget.NewShared(budget.Limits{}, budget.Shared{})
	if b.Spend(budget.Steps, 1<<30) != nil || b.Grow(t.Context(), 1<<30) != nil || b.Spent(budget.Events) != 0 {
		t.Error("it takes of the allowance of events")
	}
	b.End()
}

func TestAllowance_WhatIsHeldHasALimit(t *testing.T) {
	b := budget.New(budget.Limits{budget.Held: 100})
	if err := b.Hold(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	b.Release(60)
	if err := b.Hold(t.Context(), 60); err != nil || b.Spent(budget.Held) != 100 {
		t.Errorf("%v, %d are held", err, b.Spent(budget.Held))
	}
	var over *budget.ExceededError
	if err := b.Hold(t.Context(), 1); !errors.As(err, &over) || over.Thing != budget.Held {
		t.Error(err)
	}
}

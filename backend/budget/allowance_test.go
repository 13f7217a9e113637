package budget_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
)

func TestEventsShareAnAllowanceBeyondWhatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := budget.NewAllowance(8000)
		event := func(a *budget.Allowance, rows int) error {
			b := budget.NewShared(budget.Limits{budget.Work: 8000}, budget.Shared{Events: a})
			return b.Spend(budget.Rows, rows)
		}
		one := all.Connection() // which has a quarter
		for range 100 {
			if err := event(one, budget.FreeWork); err != nil {
				t.Fatal("what is free:", err)
			}
		}
		if err := event(one, budget.FreeWork+2000); err != nil {
			t.Fatal(err)
		}
		var over *budget.ExceededError
		if err := event(one, budget.FreeWork+1); !errors.As(err, &over) || over.Thing != budget.Work || over.Limit != 8000 {
			t.Errorf("more than a connection has: %v", err)
		}
		for range 3 {
			if err := event(all.Connection(), budget.FreeWork+2000); err != nil {
				t.Fatal(err)
			}
		}
		if err := event(all.Connection(), budget.FreeWork+1); !errors.As(err, &over) {
			t.Errorf("more than all have: %v", err)
		}
		if err := event(one, budget.FreeWork); err != nil {
			t.Error("small events go on:", err)
		}
		time.Sleep(time.Second)
		if err := event(one, budget.FreeWork+500); err != nil {
			t.Error("a quarter comes back in a second:", err)
		}
		if err := event(one, budget.FreeWork+1); err == nil {
			t.Error("and no more")
		}
	})
}

// TestRowsThatAreAskedForAreTakenBeforeTheyAreRead and given back if there were fewer.
func TestRowsThatAreAskedForAreTakenBeforeTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := budget.NewAllowance(1000)
		event := func() *budget.Budget { return budget.NewShared(budget.Limits{}, budget.Shared{Events: all}) }
		first := event()
		if err := first.Ask(budget.FreeWork + 1000); err != nil {
			t.Fatal(err)
		}
		if err := event().Ask(budget.FreeWork + 1); err == nil {
			t.Error("what is asked for is still there for others")
		}
		first.Answered(budget.FreeWork + 1000)
		if err := first.Spend(budget.Rows, 3); err != nil {
			t.Fatal(err)
		}
		if err := event().Ask(budget.FreeWork + 1000); err != nil {
			t.Error("what was not read is not given back:", err)
		}
	})
}

func TestAnOperationIsNoEvent(t *testing.T) {
	b := budget.NewShared(budget.Limits{}, budget.Shared{})
	if b.Spend(budget.Rows, 1<<30) != nil || b.Ask(1<<30) != nil || b.Grow(t.Context(), 1<<30) != nil || b.Spent(budget.Work) != 0 {
		t.Error("it takes of the allowance of events")
	}
	b.End()
}

func TestWhatIsHeldHasALimit(t *testing.T) {
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

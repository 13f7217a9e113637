package budget_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
)

// TestCPUSlot_LongOperationsTakeTurnsAndShortOnesPass in a bubble, where time passes only
// while all wait.
func TestCPUSlot_LongOperationsTakeTurnsAndShortOnesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := budget.NewCPUSlots(1)
		running := func(steps int) *budget.Budget {
			b := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
			_ = b.Spend(budget.Steps, steps)
			return b
		}
		const many = 50_000
		first, second, short, waited := running(many), running(many), running(many), running(50)
		short.Pace(t.Context())
		time.Sleep(10 * time.Millisecond)
		first.Pace(t.Context()) // it has run for long, and gets the turn
		first.Pace(t.Context()) // and keeps it
		var passed atomic.Bool
		go func() {
			second.Pace(t.Context())
			passed.Store(true)
		}()
		synctest.Wait()
		if passed.Load() || slots.Waiting() != 1 {
			t.Error("two run for long at once")
		}
		fresh := running(many)
		fresh.Pace(t.Context()) // or it would wait for ever
		fresh.End()
		waited.Pace(t.Context()) // it has only waited for a processor
		waited.End()
		first.End()
		synctest.Wait()
		if !passed.Load() {
			t.Error("the turn is not given on")
		}
		second.End()
	})
}

func TestCPUSlot_TheTurnOfAnOperationIsThatOfAllItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := budget.NewCPUSlots(1)
		first := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		second := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		first.Long(t.Context())
		const goroutines = 3
		var passed atomic.Int32
		for range goroutines {
			go func() {
				second.Long(t.Context())
				passed.Add(1)
			}()
		}
		synctest.Wait()
		if n := passed.Load(); n > 0 || slots.Waiting() != goroutines {
			t.Errorf("%d run beside an operation that has the turn", n)
		}
		first.End()
		synctest.Wait()
		if n := passed.Load(); n != goroutines || slots.Waiting() != 0 {
			t.Errorf("%d of %d go on", n, goroutines)
		}
		second.End()
	})
}

func TestCPUSlot_WhoWaitsForTheStoreLendsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := budget.NewCPUSlots(1)
		first := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		second := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		first.Long(t.Context())
		first.BeginWait()
		var passed, back atomic.Bool
		go func() {
			second.Long(t.Context())
			passed.Store(true)
		}()
		synctest.Wait()
		if passed.Load() {
			t.Error("the turn is given on at once: most calls of the store are short")
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if !passed.Load() {
			t.Error("the turn is kept while the store is slow")
		}
		go func() {
			first.EndWait(t.Context())
			back.Store(true)
		}()
		synctest.Wait()
		if back.Load() {
			t.Error("who comes back does not wait for its turn")
		}
		second.End()
		synctest.Wait()
		if !back.Load() {
			t.Error("who comes back gets no turn")
		}
		first.End()
	})
}

// TestCPUSlot_TheTimeAtTheStoreDoesNotCount as time for which an operation runs.
func TestCPUSlot_TheTimeAtTheStoreDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := budget.NewCPUSlots(1)
		holder := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		holder.Long(t.Context())
		b := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		b.BeginWait()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		b.EndWait(ctx)
		if time.Since(begin) > 0 {
			t.Error("it waits for a turn after a second at the store")
		}
		holder.End()
		b.End()
	})
}

func TestCPUSlot_WhoLeavesWaitsForNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := budget.NewCPUSlots(1)
		holder := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		holder.Long(t.Context())
		b := budget.NewShared(budget.Limits{}, budget.Shared{CPUSlots: slots})
		ctx, leave := context.WithCancel(t.Context())
		var left atomic.Bool
		go func() {
			b.Long(ctx)
			left.Store(true)
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !left.Load() {
			t.Error("it waits")
		}
		b.End()
		holder.End()
	})
}

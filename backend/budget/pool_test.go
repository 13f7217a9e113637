package budget_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
)

const mib = 1 << 20

// notes are numbers in the order in which they came.
type notes struct {
	mu   sync.Mutex
	list []int
}

func (n *notes) add(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, i)
}

func (n *notes) all() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}

// begun is an operation of a pool that has room for another.
func begun(t *testing.T, p *budget.Pool) *budget.Share {
	t.Helper()
	s, err := p.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// holds lets a share hold n bytes, which it gets at once.
func holds(t *testing.T, s *budget.Share, n int64) {
	t.Helper()
	if err := s.Hold(t.Context(), budget.Need{Bytes: n, Large: true}); err != nil {
		t.Fatal(err)
	}
}

func TestOperationsBeginWhileThereIsMemory(t *testing.T) {
	p := budget.NewPool(10 * budget.BeginBytes)
	var all []*budget.Share
	for range 10 {
		all = append(all, begun(t, p))
	}
	if _, err := p.Begin(); !errors.Is(err, budget.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	all[3].Close()
	all[3].Close() // which does nothing
	all = append(all, begun(t, p))
	if p.Take(1) {
		t.Error("a request found room, too")
	}
	for _, s := range all {
		s.Close()
	}
	if p.Used() != 0 {
		t.Errorf("%d bytes are taken when all have ended", p.Used())
	}
}

func TestWhoBeganFirstGetsMemoryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16 * mib) // of which operations have eight
		holder := begun(t, p)
		holds(t, holder, 7*mib)
		over := begun(t, p)
		holds(t, over, mib*5/2) // it goes on beyond the pool
		var shares []*budget.Share
		for range 3 {
			shares = append(shares, begun(t, p))
		}
		var order notes
		for _, i := range []int{2, 0, 1} {
			go func() {
				if err := shares[i].Hold(t.Context(), budget.Need{Bytes: 7 * mib, Large: true}); err != nil { // there is room for one
					t.Error(i, err)
				}
				order.add(i)
				time.Sleep(time.Millisecond)
				shares[i].Close()
			}()
			synctest.Wait()
		}
		holder.Close()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := order.all(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("in the order %v", got)
		}
		over.Close()
		if p.Used() != 0 {
			t.Errorf("%d bytes are taken when all have ended", p.Used())
		}
	})
}

// TestWhoComesTooLateIsRefusedAndWhoRunsIsNot although both wait for the same memory.
func TestWhoComesTooLateIsRefusedAndWhoRunsIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16 * mib)
		runs := begun(t, p)
		holds(t, runs, mib)
		holder := begun(t, p)
		holds(t, holder, 7*mib)
		over := begun(t, p)
		holds(t, over, 20*mib)
		late := begun(t, p)
		var lateErr, runsErr error
		var paused notes
		var lateAfter time.Duration
		lateDone, runsDone := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(runsDone)
			runsErr = runs.Hold(t.Context(), budget.Need{Bytes: 4 * mib, Large: true, Pause: func() { paused.add(1) }})
		}()
		go func() {
			defer close(lateDone)
			begin := time.Now()
			lateErr = late.Hold(t.Context(), budget.Need{Bytes: mib, Large: true, Pause: func() { paused.add(2) }})
			lateAfter = time.Since(begin)
		}()
		<-lateDone
		time.Sleep(10 * budget.Patience)
		select {
		case <-runsDone:
			t.Error("who runs waits no longer, and there is no memory")
		default:
		}
		if !errors.Is(lateErr, budget.ErrBusy) || lateAfter != budget.Patience || !late.Refused() {
			t.Errorf("who comes late: %v after %v", lateErr, lateAfter)
		}
		over.Close()
		holder.Close()
		if <-runsDone; runsErr != nil || runs.Refused() || len(paused.all()) != 2 {
			t.Errorf("who runs: %v", runsErr)
		}
		if used := p.Used(); used < 5*mib || used > 9*mib {
			t.Errorf("%d bytes are taken by who runs, who had to get them", used)
		}
		runs.Close()
		late.Close()
		if p.Used() != 0 {
			t.Errorf("%d bytes are taken", p.Used())
		}
	})
}

// TestThereIsAlwaysOneThatEnds though all want more than there is, and more again.
func TestThereIsAlwaysOneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16 * mib)
		var mu sync.Mutex
		ended, most := 0, int64(0)
		for range 20 {
			s := begun(t, p)
			go func() {
				defer s.Close()
				for range 10 {
					if err := s.Hold(t.Context(), budget.Need{Bytes: mib, Large: true}); err != nil {
						if !errors.Is(err, budget.ErrBusy) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					most = max(most, p.Used())
					mu.Unlock()
					time.Sleep(time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				ended++
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ended < 5 || p.Used() != 0 || most > 16*mib+16*mib {
			t.Errorf("%d ended, %d bytes are taken, at most %d were", ended, p.Used(), most)
		}
	})
}

func TestWhoLeavesWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(4 * mib)
		holder, over, s := begun(t, p), begun(t, p), begun(t, p)
		holds(t, holder, 2*mib-budget.BeginBytes)
		holds(t, over, 4*mib)
		ctx, leave := context.WithCancel(t.Context())
		var err error
		go func() { err = s.Hold(ctx, budget.Need{Bytes: mib, Large: true}) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || s.Refused() {
			t.Error(err)
		}
	})
}

func TestAnAnswerThatIsSentIsHeldAndTheRestIsGivenBack(t *testing.T) {
	p := budget.NewPool(16 * mib)
	s := begun(t, p)
	holds(t, s, 3*mib)
	s.Release(3 * mib)
	if p.Used() < 3*mib {
		t.Error("what is granted stays granted")
	}
	s.Keep(mib)
	if p.Used() != mib {
		t.Errorf("%d bytes are taken while the answer is sent", p.Used())
	}
	s.Keep(20 * mib)
	if p.Used() != 20*mib {
		t.Errorf("%d bytes are taken by a large answer", p.Used())
	}
	s.Close()
	if p.Used() != 0 {
		t.Errorf("%d bytes are taken", p.Used())
	}
}

func TestEventsTakeWhatIsBeyondALittle(t *testing.T) {
	p := budget.NewPool(16 * mib)
	s := p.BeginEvents()
	holds(t, s, budget.EventBytes)
	if p.Used() != 0 {
		t.Error("a small event is counted")
	}
	holds(t, s, mib)
	if p.Used() < mib {
		t.Error("a large event is not counted")
	}
	s.Reset()
	holds(t, s, budget.EventBytes)
	if p.Used() != 0 {
		t.Error("the event after it is counted")
	}
	s.Close()
}

func TestAPartIsBoundedAndWaitedForInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16 * mib)
		part := p.Part(2 * mib)
		if !part.Take(2*mib) || part.Take(1) || p.Used() != 2*mib {
			t.Fatal("the part has bytes too few or too many")
		}
		var order notes
		for i := range 3 {
			go func() {
				if err := part.Await(t.Context(), mib); err != nil {
					t.Error(i, err)
				}
				order.add(i)
			}()
			synctest.Wait()
		}
		for range 3 {
			part.Give(mib)
			synctest.Wait()
		}
		if got := order.all(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("in the order %v", got)
		}
		begin := time.Now()
		if err := part.Await(t.Context(), mib); !errors.Is(err, budget.ErrBusy) || time.Since(begin) != budget.Patience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		part.Hold(5 * mib) // in use already
		part.Give(7 * mib)
		if p.Used() != 0 || !part.Take(2*mib) {
			t.Errorf("%d bytes are taken", p.Used())
		}
	})
}

func TestNoPoolBoundsNothing(t *testing.T) {
	var p *budget.Pool
	s, err := p.Begin()
	if err != nil || s.Hold(t.Context(), budget.Need{Bytes: 1 << 40, Large: true}) != nil || !p.Take(1<<40) || !p.Part(1).Take(1<<40) || s.Refused() {
		t.Error("a nil pool bounds something")
	}
	s.Keep(1)
	s.Close()
	p.BeginEvents().Reset()
	p.Give(1)
}

// TestWhatMostOperationsNeedIsWaitedForLonger: a gateway under load serves them late
// rather than not at all.
func TestWhatMostOperationsNeedIsWaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(16 * mib)
		over, holder := begun(t, p), begun(t, p)
		holds(t, holder, 7*mib)
		holds(t, over, 20*mib)
		var ordinary, large, late error
		ordinaryDone, largeDone := make(chan struct{}), make(chan struct{})
		first, second := begun(t, p), begun(t, p)
		go func() {
			defer close(ordinaryDone)
			ordinary = first.Hold(t.Context(), budget.Need{Bytes: 2 * mib})
		}()
		go func() {
			defer close(largeDone)
			large = second.Hold(t.Context(), budget.Need{Bytes: 2 * mib, Large: true})
		}()
		time.Sleep(budget.LongPatience - budget.Patience)
		if <-largeDone; !errors.Is(large, budget.ErrBusy) {
			t.Errorf("the large need: %v", large)
		}
		third := begun(t, p)
		begin := time.Now()
		holder.Close()
		if <-ordinaryDone; ordinary != nil {
			t.Errorf("the ordinary need: %v", ordinary)
		}
		blocker := begun(t, p)
		holds(t, blocker, 6*mib)
		if late = third.Hold(t.Context(), budget.Need{Bytes: 2 * mib}); !errors.Is(late, budget.ErrBusy) || time.Since(begin) != budget.LongPatience {
			t.Errorf("who waits in vain: %v after %v", late, time.Since(begin))
		}
	})
}

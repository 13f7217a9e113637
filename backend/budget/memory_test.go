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

const (
	mib = 1 << 20
	// largest is what one operation may hold by its own limits.
	largest = 20 * mib
)

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
	return slices.Clone(n.list)
}

// begun is an operation of a memory that has room for another.
func begun(t *testing.T, m *budget.Memory) *budget.Share {
	t.Helper()
	s, err := m.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nothing is done before a wait.
func nothing() {}

// mustHold makes a share hold n more bytes. It fails if the share has to wait for them.
func mustHold(t *testing.T, s *budget.Share, n int64) {
	t.Helper()
	if err := s.Hold(t.Context(), n, func() { t.Errorf("%d bytes are waited for", n) }); err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, m *budget.Memory) {
	t.Helper()
	if used, waiting := m.Used(), m.Waiting(); used != 0 || waiting != 0 {
		t.Errorf("%d bytes are taken and %d wait when all have ended", used, waiting)
	}
}

func TestMemory_OperationsWaitAMomentToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(64*budget.BeginBytes, largest) // three sixteenths to begin with
		var all []*budget.Share
		for range 12 {
			all = append(all, begun(t, m))
		}
		before := time.Now()
		if _, err := m.Begin(t.Context()); !errors.Is(err, budget.ErrBusy) || time.Since(before) != budget.Patience {
			t.Errorf("one more: %v after %v", err, time.Since(before))
		}
		if !m.Requests().Take(10 * budget.BeginBytes) {
			t.Error("requests find no room for operations")
		}
		m.Requests().Give(10 * budget.BeginBytes)
		time.AfterFunc(time.Second, all[3].Close)
		begun(t, m).Close()
		all[3].Close() // which does nothing
		for _, s := range all {
			s.Close()
		}
		empty(t, m)
	})
}

// TestMemory_WhoWaitsForALevelKeepsNobodyFromBeginning in a memory where 16 may wait.
func TestMemory_WhoWaitsForALevelKeepsNobodyFromBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest)
		all := begun(t, m)
		mustHold(t, all, 10*mib)
		var waiting sync.WaitGroup
		refused := 0
		var mu sync.Mutex
		for range 100 {
			waiting.Go(func() {
				s, err := m.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Hold(t.Context(), 10*mib, nothing); errors.Is(err, budget.ErrBusy) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		if n := m.Waiting(); n != 16 || refused != 84 {
			t.Errorf("%d wait, %d were refused", n, refused)
		}
		before := time.Now()
		begun(t, m).Close()
		if took := time.Since(before); took != 0 {
			t.Errorf("another one began after %v", took)
		}
		all.Close()
		waiting.Wait()
		if refused != 84 {
			t.Errorf("%d were refused", refused)
		}
		empty(t, m)
	})
}

// TestMemory_WhoReadsSlowlyIsCutOffForOthers and nobody else is.
func TestMemory_WhoReadsSlowlyIsCutOffForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest) // answers have three
		var slow []*budget.Share
		var cut notes
		answer := func(i int, n int64) *budget.Share {
			s := begun(t, m)
			mustHold(t, s, n)
			s.Keep(n, func() {
				cut.add(i)
				slow[i].Close()
			})
			return s
		}
		for i := range 3 {
			slow = append(slow, answer(i, mib))
			time.Sleep(time.Second)
		}
		time.Sleep(budget.SlowAfter)
		before := time.Now()
		quick := answer(3, mib)
		if got := cut.all(); !slices.Equal(got, []int{0}) || time.Since(before) != 0 {
			t.Errorf("%v were cut off after %v", got, time.Since(before))
		}
		quick.Close()
		for _, s := range slow {
			s.Close()
		}
		empty(t, m)
	})
}

// TestMemory_ALevelHasRoomForAFewAndWhoCameFirstGoesOnFirst in a memory whose first level has
// room for four.
func TestMemory_ALevelHasRoomForAFewAndWhoCameFirstGoesOnFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest)
		var there []*budget.Share
		for range 4 {
			s := begun(t, m)
			mustHold(t, s, 200<<10)
			there = append(there, s)
		}
		var order, paused notes
		for i := range 3 {
			s := begun(t, m)
			go func() {
				if err := s.Hold(t.Context(), 200<<10, func() { paused.add(i) }); err != nil {
					t.Error(i, err)
				}
				order.add(i)
				time.Sleep(time.Millisecond)
				s.Close()
			}()
			synctest.Wait()
		}
		if m.Waiting() != 3 {
			t.Errorf("%d wait", m.Waiting())
		}
		large := begun(t, m)
		mustHold(t, large, 2*mib) // what others wait for does not hold it up
		large.Close()
		there[0].Close()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := order.all(); !slices.Equal(got, []int{0, 1, 2}) || !slices.Equal(paused.all(), []int{0, 1, 2}) {
			t.Errorf("in the order %v", got)
		}
		for _, s := range there[1:] {
			s.Close()
		}
		empty(t, m)
	})
}

// TestMemory_WhoHoldsNextToNothingIsRefusedAndWhoRunsIsNot although both wait.
func TestMemory_WhoHoldsNextToNothingIsRefusedAndWhoRunsIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest)
		all := begun(t, m)
		mustHold(t, all, 10*mib) // on the last level there is one
		runs, late := begun(t, m), begun(t, m)
		mustHold(t, runs, mib)
		var runsErr, lateErr error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runsErr = runs.Hold(t.Context(), 10*mib, nothing)
		}()
		before := time.Now()
		lateErr = late.Hold(t.Context(), 10*mib, nothing)
		if !errors.Is(lateErr, budget.ErrBusy) || time.Since(before) != budget.Patience || !late.Refused() {
			t.Errorf("who came late: %v after %v", lateErr, time.Since(before))
		}
		if err := late.Hold(t.Context(), 10*mib, func() { t.Error("it waits once more") }); !errors.Is(err, budget.ErrBusy) {
			t.Errorf("once more: %v", err)
		}
		time.Sleep(time.Minute)
		all.Close()
		if <-done; runsErr != nil || runs.Refused() {
			t.Errorf("who runs: %v", runsErr)
		}
		runs.Close()
		late.Close()
		empty(t, m)
	})
}

// TestMemory_ThereIsAlwaysOneThatEnds though all want more than there is, and more again.
func TestMemory_ThereIsAlwaysOneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest)
		var ended notes
		most := int64(0)
		for i := range 20 {
			s := begun(t, m)
			go func() {
				defer s.Close()
				for range 10 {
					if err := s.Hold(t.Context(), mib, nothing); err != nil {
						if !errors.Is(err, budget.ErrBusy) {
							t.Error(err)
						}
						return
					}
					time.Sleep(time.Millisecond)
				}
				ended.add(i)
			}()
		}
		for range 1000 {
			most = max(most, m.Used())
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(ended.all()); n < 15 || most > 16*mib+largest {
			t.Errorf("%d ended, at most %d bytes were taken", n, most)
		}
		empty(t, m)
	})
}

func TestMemory_WhoLeavesWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(4*mib, largest)
		holder, s := begun(t, m), begun(t, m)
		mustHold(t, holder, 10*mib)
		ctx, leave := context.WithCancel(t.Context())
		var err error
		go func() { err = s.Hold(ctx, 10*mib, nothing) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || s.Refused() {
			t.Error(err)
		}
		holder.Close()
		s.Close()
		empty(t, m)
	})
}

func TestMemory_AnAnswerThatIsSentIsHeldAndTheRestIsGivenBack(t *testing.T) {
	m := budget.NewMemory(16*mib, largest) // answers have three
	s, slow := begun(t, m), begun(t, m)
	mustHold(t, s, 3*mib)
	s.Release(3 * mib)
	if m.Used() < 3*mib {
		t.Error("what was taken is given back before the end")
	}
	s.Keep(mib, nothing)
	if used := m.Used(); used != mib+budget.BeginBytes {
		t.Errorf("%d bytes are taken while the answer is sent", used)
	}
	mustHold(t, slow, 3*mib)
	if used := m.Used(); used != mib+4*mib {
		t.Errorf("%d bytes are taken", used)
	}
	small := begun(t, m)
	small.Keep(1000, nothing)
	if used := m.Used(); used != mib+4*mib+budget.BeginBytes {
		t.Errorf("%d bytes are taken with a small answer", used)
	}
	small.Close()
	s.Close()
	slow.Close()
	empty(t, m)
}

func TestMemory_EventsTakeWhatIsBeyondALittle(t *testing.T) {
	m := budget.NewMemory(16*mib, largest)
	s := m.BeginEvents()
	mustHold(t, s, budget.EventBytes)
	if m.Used() != 0 {
		t.Error("a small event is counted")
	}
	mustHold(t, s, mib)
	if m.Used() < mib {
		t.Error("a large event is not counted")
	}
	s.Reset()
	mustHold(t, s, budget.EventBytes)
	if m.Used() != 0 {
		t.Error("the event after it is counted")
	}
	s.Close()
}

func TestMemory_AnEventThatIsSentTakesNoLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(16*mib, largest)
		ctx := t.Context()
		paused := 0
		pause := func() { paused++ }
		keeps := func(s *budget.Share, n, used int64) {
			t.Helper()
			if err := s.KeepEvent(ctx, n, pause); err != nil || m.Used() != used {
				t.Errorf("%d bytes are used: %v", m.Used(), err)
			}
		}
		s := m.BeginEvents()
		mustHold(t, s, mib)
		keeps(s, budget.EventBytes, 0)
		keeps(s, mib/2, mib/2)
		keeps(s, mib/4, mib/2)
		keeps(s, 3*mib, mib) // the room has one
		other := m.BeginEvents()
		if err := other.KeepEvent(ctx, mib, pause); !errors.Is(err, budget.ErrBusy) || paused != 1 {
			t.Error(err, paused)
		}
		operation, err := m.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustHold(t, operation, mib)
		operation.Close()
		s.Reset()
		keeps(other, mib, mib)
		other.Close()
		s.Close()
		empty(t, m)
	})
}

func TestMemory_ARoomIsBoundedAndWaitedForInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := budget.NewMemory(32*mib, largest)
		room := m.Events()
		if !room.Take(2*mib) || room.Take(1) || m.Used() != 2*mib {
			t.Fatal("the room has bytes too few or too many")
		}
		var order notes
		for i := range 3 {
			go func() {
				if err := room.Await(t.Context(), mib); err != nil {
					t.Error(i, err)
				}
				order.add(i)
			}()
			synctest.Wait()
		}
		for range 3 {
			room.Give(mib)
			synctest.Wait()
		}
		if got := order.all(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("in the order %v", got)
		}
		before := time.Now()
		if err := room.AwaitPatiently(t.Context(), mib); !errors.Is(err, budget.ErrBusy) || time.Since(before) != budget.Patience {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		room.Give(2 * mib)
		if !room.Take(5*mib) || room.Take(1) { // it has all
			t.Error("what is larger than the room finds none")
		}
		room.Give(5 * mib)
		empty(t, m)
	})
}

func TestMemory_NoMemoryBoundsNothing(t *testing.T) {
	var m *budget.Memory
	s, err := m.Begin(t.Context())
	if err != nil || s.Hold(t.Context(), 1<<40, nothing) != nil || !m.Requests().Take(1<<40) || m.Events().Await(t.Context(), 1<<40) != nil || s.Refused() {
		t.Error("no memory bounds something")
	}
	s.Keep(1, nothing)
	s.Close()
	m.BeginEvents().Reset()
	m.Subscriptions().Give(1)
}

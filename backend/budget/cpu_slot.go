package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// longAfter and longSteps are the running time and the work from which an operation needs a slot. Both must be
	// reached: an operation that only waited for a processor needs none.
	longAfter = 5 * time.Millisecond
	longSteps = 20_000
	// awayAfter is how long an operation keeps its slot while it waits for the store.
	awayAfter = 2 * time.Millisecond
	// atStore is the part of each call of the store that counts as running time, because the embedded store works then.
	atStore = 500 * time.Microsecond
)

// CPUSlots limits how many operations run for long at the same time, so that short operations find a free processor. An
// operation first runs without a slot. After it has run for 5 ms, not counting waits for the store, and done some work,
// it waits for a slot, first come, first served. It keeps the slot until it ends or waits for something else. Nil
// CPUSlots are unlimited.
type CPUSlots struct {
	free    chan struct{}
	waiting atomic.Int64
}

// Waiting returns the number of operations that are waiting for a slot.
func (t *CPUSlots) Waiting() int { return int(t.waiting.Load()) }

// NewCPUSlots returns slots for n operations at a time.
func NewCPUSlots(n int) *CPUSlots {
	t := &CPUSlots{free: make(chan struct{}, n)}
	for range n {
		t.free <- struct{}{}
	}
	return t
}

// cpuSlot records whether one operation has a slot, needs one, or waits for one.
type cpuSlot struct {
	of *CPUSlots

	mu    sync.Mutex // guards the rest
	began time.Time  // moved forward by the time that the operation was away
	long  bool
	has   bool
	// got is closed when the operation gets a slot. It is nil if no goroutine waits for one.
	got chan struct{}
	// away is the number of goroutines of the operation that are waiting for the store. left is when the first of them
	// began to wait.
	away int
	left time.Time
	// lend fires when an operation has waited long enough for the store to give up its slot.
	lend *time.Timer
}

// BeginWait records that a goroutine of the operation begins to wait for the store.
func (b *Budget) BeginWait() {
	if b == nil || b.slot.of == nil {
		return
	}
	t := &b.slot
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away++; t.away > 1 {
		return
	}
	t.left = time.Now()
	if !t.has {
		return
	}
	if t.lend == nil {
		t.lend = time.AfterFunc(awayAfter, t.lendOut)
	} else {
		t.lend.Reset(awayAfter)
	}
}

func (t *cpuSlot) lendOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away > 0 && time.Since(t.left) >= awayAfter {
		t.give()
	}
}

// EndWait records that a goroutine no longer waits for the store, and waits for a slot if the operation needs one.
func (b *Budget) EndWait(ctx context.Context) {
	if b == nil || b.slot.of == nil {
		return
	}
	t := &b.slot
	t.mu.Lock()
	if t.away--; t.away == 0 {
		if t.lend != nil {
			t.lend.Stop()
		}
		if waited := time.Since(t.left) - atStore; waited > 0 {
			t.began = t.began.Add(waited)
		}
	}
	t.mu.Unlock()
	b.Pace(ctx)
}

// Pace waits for a slot if the operation has run for long and needs one. It returns early if ctx ends. It is cheap
// enough to be called often.
func (b *Budget) Pace(ctx context.Context) { b.pace(ctx, false) }

// Long is like Pace, but also waits if the operation has not run for long yet. It is for steps that take long.
func (b *Budget) Long(ctx context.Context) { b.pace(ctx, true) }

func (b *Budget) pace(ctx context.Context, long bool) {
	if b == nil || b.slot.of == nil {
		return
	}
	t := &b.slot
	t.mu.Lock()
	t.long = t.long || long || b.Spent(Steps) >= longSteps && time.Since(t.began) >= longAfter
	if t.has || !t.long {
		t.mu.Unlock()
		return
	}
	if t.got == nil {
		t.got = make(chan struct{})
	}
	got := t.got
	t.mu.Unlock()
	t.of.waiting.Add(1)
	defer t.of.waiting.Add(-1)
	select {
	case <-got: // another goroutine of the operation got one
		return
	case <-t.of.free:
	case <-ctx.Done():
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has || b.ended.Load() { // another goroutine got one as well
		t.of.free <- struct{}{}
		return
	}
	t.has = true
	if t.got != nil { // another goroutine may have got one and given it up meanwhile
		close(t.got)
		t.got = nil
	}
}

// give gives up the slot, if the operation has one. The caller holds mu.
func (t *cpuSlot) give() {
	if t.has {
		t.has = false
		t.of.free <- struct{}{}
	}
}

// pause gives up the slot before the operation waits for something other than the store.
func (b *Budget) pause() {
	if b.slot.of == nil {
		return
	}
	b.slot.mu.Lock()
	defer b.slot.mu.Unlock()
	b.slot.give()
}

// End gives back the slot of the operation, which gets no other one. It must be called when the operation has ended. It
// does not give back memory: see [Share.Close].
func (b *Budget) End() {
	if b == nil {
		return
	}
	b.ended.Store(true)
	b.pause()
}

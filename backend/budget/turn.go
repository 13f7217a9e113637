package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// An operation needs a turn once it has run for longAfter and done longSteps of work: one that only
	// waited for a processor needs none.
	longAfter = 5 * time.Millisecond
	longSteps = 20_000
	// awayAfter is how long an operation keeps its turn while it waits for the store.
	awayAfter = 2 * time.Millisecond
	// atStore is how much of each call of the store counts as running time: the embedded store works
	// during that time.
	atStore = 500 * time.Microsecond
)

// Turns let few operations at a time run for long, so that short ones find a free processor. An
// operation needs no turn until it has run for 5 ms, without the time that it waits for the store, and done some work. Then it
// waits for a turn, first come, first served, and keeps it until it ends or waits. Nil Turns bound nothing.
type Turns struct {
	free    chan struct{}
	waiting atomic.Int64
}

// Waiting returns the number of operations that wait for a turn.
func (t *Turns) Waiting() int { return int(t.waiting.Load()) }

// NewTurns returns n turns.
func NewTurns(n int) *Turns {
	t := &Turns{free: make(chan struct{}, n)}
	for range n {
		t.free <- struct{}{}
	}
	return t
}

// turn is the state of one operation.
type turn struct {
	of *Turns

	mu    sync.Mutex // guards the rest
	began time.Time  // moved on by the time that the operation was away
	long  bool
	has   bool
	// got is closed when the operation gets a turn; nil if no goroutine waits.
	got chan struct{}
	// away is how many goroutines of the operation wait for the store, since left.
	away int
	left time.Time
	// lend gives up the turn of an operation that is away for long.
	lend *time.Timer
}

// Leave notes that a goroutine of the operation waits for the store from now on.
func (b *Budget) Leave() {
	if b == nil || b.turn.of == nil {
		return
	}
	t := &b.turn
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

func (t *turn) lendOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away > 0 && time.Since(t.left) >= awayAfter {
		t.give()
	}
}

// Return notes that a goroutine no longer waits for the store, and waits for a turn if the operation needs
// one.
func (b *Budget) Return(ctx context.Context) {
	if b == nil || b.turn.of == nil {
		return
	}
	t := &b.turn
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

// Pace waits for a turn if the operation has run for long, until ctx ends. It is
// called often.
func (b *Budget) Pace(ctx context.Context) { b.pace(ctx, false) }

// Long announces that the next step takes long, and waits for a turn.
func (b *Budget) Long(ctx context.Context) { b.pace(ctx, true) }

func (b *Budget) pace(ctx context.Context, long bool) {
	if b == nil || b.turn.of == nil {
		return
	}
	t := &b.turn
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

// give gives the turn up. The caller holds mu.
func (t *turn) give() {
	if t.has {
		t.has = false
		t.of.free <- struct{}{}
	}
}

// pause gives the turn up while the operation waits for something else.
func (b *Budget) pause() {
	if b.turn.of == nil {
		return
	}
	b.turn.mu.Lock()
	defer b.turn.mu.Unlock()
	b.turn.give()
}

// End ends the operation.
func (b *Budget) End() {
	if b == nil {
		return
	}
	b.ended.Store(true)
	b.pause()
}

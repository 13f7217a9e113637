package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// longAfter is how long an operation may run before it needs a turn, and longSteps how
	// much work it has done then: one that only waited for a processor needs none.
	longAfter = 5 * time.Millisecond
	longSteps = 20_000
	// awayAfter is how long an operation that has a turn may wait for the store before
	// another one gets it.
	awayAfter = 2 * time.Millisecond
	// atStore is how much of each call of the store counts as time that the operation
	// runs: the embedded store works for that long where another one lets it wait.
	atStore = 500 * time.Microsecond
)

// Turns let few operations at a time run for long, so that those that are short find
// a free processor. An operation that does little, or runs for 5 ms, the time that it waits for
// the store left out, runs at once. Then it needs a turn, and keeps it until it has ended or waits.
// Who came first goes first. Nil Turns bound nothing.
type Turns struct {
	free    chan struct{}
	waiting atomic.Int64
}

// Waiting is how many operations wait for a turn.
func (t *Turns) Waiting() int { return int(t.waiting.Load()) }

// NewTurns returns so many turns.
func NewTurns(n int) *Turns {
	t := &Turns{free: make(chan struct{}, n)}
	for range n {
		t.free <- struct{}{}
	}
	return t
}

// turn is what an operation has of the turns.
type turn struct {
	of *Turns

	mu    sync.Mutex // guards the rest
	began time.Time  // moved on by what the operation was away
	long  bool
	has   bool
	// got is closed when the operation gets a turn; nil if none of its goroutines waits.
	got chan struct{}
	// away is how many goroutines of the operation wait for the store, since left.
	away int
	left time.Time
	// lend gives up the turn of an operation that is away for long.
	lend *time.Timer
}

// Leave says that the operation waits for the store from now on.
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

// Return says that the operation does not wait any more, and waits for a turn if it
// needs one.
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
func (b *Budget) Pace(ctx context.Context) {
	if b == nil || b.turn.of == nil {
		return
	}
	t := &b.turn
	t.mu.Lock()
	if t.has || !t.long && (b.Spent(Steps) < longSteps || time.Since(t.began) < longAfter) {
		t.mu.Unlock()
		return
	}
	t.long = true
	t.mu.Unlock()
	b.wait(ctx)
}

// Long says that what comes next takes long, and waits for a turn.
func (b *Budget) Long(ctx context.Context) {
	if b == nil || b.turn.of == nil {
		return
	}
	b.turn.mu.Lock()
	b.turn.long = true
	b.turn.mu.Unlock()
	b.Pace(ctx)
}

func (b *Budget) wait(ctx context.Context) {
	t := &b.turn
	t.mu.Lock()
	if t.has {
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
	case <-got: // by another goroutine: the turn is that of all
		return
	case <-t.of.free:
	case <-ctx.Done():
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has || b.ended.Load() { // another goroutine of the operation got one as well
		t.of.free <- struct{}{}
		return
	}
	t.has = true
	if t.got != nil {
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

// End says that the operation has ended.
func (b *Budget) End() {
	if b == nil {
		return
	}
	b.ended.Store(true)
	b.pause()
}

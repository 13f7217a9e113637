// Package budget bounds what one operation may spend while it runs. Whoever does
// the work charges it: the service what it reads, the engine what it writes. The
// context of the operation carries the budget; it is looked up once for each call
// and never for each row.
package budget

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Thing is one of the things that a budget counts.
type Thing int

// The things.
const (
	// Rows are the resources that were read, and those that a scan has looked at.
	Rows Thing = iota
	// Objects are the resources, edges and manifests that were written into the answer.
	Objects
	// Bytes are those of the answer.
	Bytes
	// Held are the bytes of what was read and is held until the answer is written.
	Held
	// Steps are the work of a processor, each about a tenth of a microsecond. What has a
	// price of its own is charged in steps alone; rows and objects are charged in both.
	Steps
	// Events are the steps that an event took of the [Allowance] of all events.
	Events
	// Things is how many there are.
	Things
)

// about is the name of the limit of a thing, a short name as metrics have it, what an
// operation does too much of.
type about struct{ key, name, text string }

func (t Thing) about() about {
	switch t {
	case Rows:
		return about{"limit-rows", "rows", "reads more than the %d resources that it may look at"}
	case Objects:
		return about{"limit-objects", "objects", "returns more than the %d resources that it may"}
	case Bytes:
		return about{"limit-answer", "bytes", "has an answer of more than the %d bytes that it may have"}
	case Held:
		return about{"limit-held", "held", "holds resources and arguments of more than the %d bytes that it may"}
	case Events:
		return about{"limit-events", "events", "is one of too many expensive events: together they may take %d steps at once"}
	}
	return about{"limit-steps", "steps", "takes more work than the %d steps that it may"}
}

// Key is the name of the limit in docs/limits.md.
func (t Thing) Key() string { return t.about().key }

// String is a short name, as metrics have it.
func (t Thing) String() string { return t.about().name }

// Limits of an operation, by things. Zero is no limit.
type Limits [Things]int64

// Shared is what operations share. Each may be nil.
type Shared struct {
	// Memory is what the operation holds of that of all.
	Memory *Share
	// Turns let few operations at a time run for long.
	Turns *Turns
	// Events is the allowance of an event of a subscription.
	Events *Allowance
}

// Budget of one operation, or of one event of a subscription. A nil Budget bounds
// nothing. It is safe for concurrent use.
type Budget struct {
	limits Limits
	spent  [Things]atomic.Int64
	over   atomic.Pointer[ExceededError]
	halted atomic.Bool
	ended  atomic.Bool
	memory *Share
	events *Allowance
	turn   turn
	// arrived is when the event came, as [Budget.Arrive] says, in nanoseconds.
	arrived atomic.Int64
}

type sharedKey struct{}

// WithShared returns a context in which operations share.
func WithShared(ctx context.Context, s Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, &s)
}

// SharedFrom returns what the operations of a context share.
func SharedFrom(ctx context.Context) Shared {
	if s, ok := ctx.Value(sharedKey{}).(*Shared); ok {
		return *s
	}
	return Shared{}
}

// New returns a budget of which nothing is spent.
func New(limits Limits) *Budget { return &Budget{limits: limits} }

// NewShared is New of an operation that shares with others. [Budget.End] ends it.
func NewShared(limits Limits, shared Shared) *Budget {
	b := &Budget{limits: limits, memory: shared.Memory, events: shared.Events}
	if shared.Turns != nil {
		b.turn = turn{of: shared.Turns, began: time.Now()}
	}
	return b
}

type budgetKey struct{}

// With returns a context that carries the budget.
func With(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// From returns the budget of a context, nil if it carries none.
func From(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// ExceededError is the error of an operation that has spent its budget.
type ExceededError struct {
	Thing Thing
	Limit int64
}

func (e *ExceededError) Error() string {
	return "the operation " + fmt.Sprintf(e.Thing.about().text, e.Limit) + " (" + e.Thing.Key() + ")"
}

// Spend charges n of a thing. Once a limit is exceeded, everything that is charged
// has the error of that limit.
func (b *Budget) Spend(t Thing, n int) error {
	if b == nil {
		return nil
	}
	b.add(t, int64(n))
	if steps := int64(n) * t.steps(); steps != 0 {
		b.add(Steps, steps)
	}
	return b.Over()
}

// add charges n of a thing. Steps are also taken of the allowance of all events.
func (b *Budget) add(t Thing, n int64) {
	spent := b.spent[t].Add(n)
	if limit := b.limits[t]; limit > 0 && spent > limit {
		b.exceed(t)
	}
	if t != Steps || b.events == nil {
		return
	}
	if n = spent - max(spent-n, FreeSteps); n > 0 {
		if !b.events.take(n) {
			b.exceed(Events)
			return
		}
		b.spent[Events].Add(n)
	}
}

func (b *Budget) exceed(t Thing) {
	b.over.CompareAndSwap(nil, &ExceededError{Thing: t, Limit: b.limits[t]})
}

// Hold notes that the operation holds n bytes more. It may wait for memory. Its
// errors are [ErrBusy], that of [Held], and that of ctx.
func (b *Budget) Hold(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	if limit := b.limits[Held]; b.spent[Held].Add(int64(n)) > limit && limit > 0 {
		b.exceed(Held)
		return b.Over()
	}
	return b.memory.Hold(ctx, int64(n), b.pause)
}

// Release notes that the operation holds n bytes less.
func (b *Budget) Release(n int) {
	if b != nil {
		b.spent[Held].Add(-int64(n))
		b.memory.Release(int64(n))
	}
}

// Expect waits for memory for what is about to be read, roughly so many bytes, and
// [Budget.Unexpect] takes that back: what was read is held by itself.
func (b *Budget) Expect(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	return b.memory.Hold(ctx, int64(n), b.pause)
}

// Unexpect takes back what [Budget.Expect] noted.
func (b *Budget) Unexpect(n int) {
	if b != nil {
		b.memory.Release(int64(n))
	}
}

// Grow is [Budget.Hold] of the answer, which has a limit of its own.
func (b *Budget) Grow(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	if err := b.Spend(Steps, n/AnswerBytes); err != nil {
		return err
	}
	return b.memory.Hold(ctx, int64(n), b.pause)
}

// Left is how much of a thing may be spent: as much as an int holds where there is no limit.
func (b *Budget) Left(t Thing) int {
	if b == nil || b.limits[t] == 0 {
		return math.MaxInt
	}
	return int(max(b.limits[t]-b.spent[t].Load(), 0))
}

// Spent is how much of a thing was charged.
func (b *Budget) Spent(t Thing) int64 {
	if b == nil {
		return 0
	}
	return b.spent[t].Load()
}

// Over is the error of the limit that was exceeded first, nil if none was.
func (b *Budget) Over() error {
	if b == nil {
		return nil
	}
	if over := b.over.Load(); over != nil {
		return over
	}
	return nil
}

// Arrive says that the event came only now: the time until then is not its own.
func (b *Budget) Arrive() {
	if b != nil {
		b.arrived.Store(time.Now().UnixNano())
	}
}

// Since is how long ago the event came; 0 if none did.
func (b *Budget) Since() time.Duration {
	if at := b.arrived.Load(); at != 0 {
		return time.Duration(time.Now().UnixNano() - at)
	}
	return 0
}

// Halt notes that the operation was ended before its answer was complete: of its
// errors only the last is told.
func (b *Budget) Halt() {
	if b != nil {
		b.halted.Store(true)
	}
}

// Halted says whether the operation was ended.
func (b *Budget) Halted() bool { return b != nil && b.halted.Load() }

// Package budget bounds what one operation may spend while it runs. Whoever does
// the work charges it: the service what it reads, the engine what it writes. The
// context of the operation carries the budget; it is looked up once for each call
// and never for each row.
package budget

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// Thing is one of the things that a budget counts.
type Thing int

// The things.
const (
	// Rows are the resources that were read, and those that a scan has looked at.
	Rows Thing = iota
	// Scans are the steps of scans, one for each page and step, and the counts.
	Scans
	// Objects are the resources, edges and manifests that were written into the answer.
	Objects
	// Bytes are those of the answer.
	Bytes
	// Introspection are the values of the schema that introspection writes.
	Introspection
	// Held are the bytes of what was read and is held until the answer is written.
	Held
	// Work is what an event takes of the allowance of all events: a row and an object
	// are one, a scan is ten, and 256 bytes of a long answer are one.
	Work
	// Things is how many there are.
	Things
)

// Key is the setting of the limit.
func (t Thing) Key() string {
	switch t {
	case Rows:
		return "limit-rows"
	case Scans:
		return "limit-scans"
	case Objects:
		return "limit-objects"
	case Bytes:
		return "limit-answer"
	case Held:
		return "limit-held"
	case Work:
		return "limit-events"
	}
	return "limit-introspection"
}

// String is a short name, as metrics have it.
func (t Thing) String() string {
	switch t {
	case Rows:
		return "rows"
	case Scans:
		return "scans"
	case Objects:
		return "objects"
	case Bytes:
		return "bytes"
	case Held:
		return "held"
	case Work:
		return "work"
	}
	return "introspection"
}

// text says what an operation does too much of.
func (t Thing) text() string {
	switch t {
	case Rows:
		return "reads more than the %d resources that it may look at"
	case Scans:
		return "takes more than the %d counts and reads of pages that it may"
	case Objects:
		return "returns more than the %d resources that it may"
	case Bytes:
		return "has an answer of more than the %d bytes that it may have"
	case Held:
		return "reads resources of more than the %d bytes that it may hold"
	case Work:
		return "is one of too many expensive events: together they may be %d units of work at once"
	}
	return "asks for more than the %d values of the schema that it may"
}

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
	// work is that of the event, with what is free of it.
	work atomic.Int64
	turn turn
	// arrived is when the event came, as [Budget.Arrive] says, in nanoseconds.
	arrived atomic.Int64
}

// SharedKey is the key of a [*Shared] in a context. A context that carries other values
// too may answer it by itself.
type SharedKey struct{}

// WithShared returns a context in which operations share.
func WithShared(ctx context.Context, s Shared) context.Context {
	return context.WithValue(ctx, SharedKey{}, &s)
}

// SharedFrom returns what the operations of a context share.
func SharedFrom(ctx context.Context) Shared {
	if s, ok := ctx.Value(SharedKey{}).(*Shared); ok {
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

// carrier is a context that carries a budget. One of the standard library costs several
// times as much.
type carrier struct {
	context.Context
	budget *Budget
}

// Value is part of [context.Context].
func (c *carrier) Value(key any) any {
	if key == (budgetKey{}) {
		return c.budget
	}
	return c.Context.Value(key)
}

// With returns a context that carries the budget.
func With(ctx context.Context, b *Budget) context.Context { return &carrier{ctx, b} }

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
	return "the operation " + fmt.Sprintf(e.Thing.text(), e.Limit) + " (configuration key " + e.Thing.Key() + ")"
}

// Spend charges n of a thing. Once a limit is exceeded, everything that is charged
// has the error of that limit.
func (b *Budget) Spend(t Thing, n int) error {
	if b == nil {
		return nil
	}
	spent := b.spent[t].Add(int64(n))
	if limit := b.limits[t]; limit > 0 && spent > limit {
		b.exceed(t)
	}
	b.charge(t, int64(n))
	return b.Over()
}

func (b *Budget) exceed(t Thing) {
	b.over.CompareAndSwap(nil, &ExceededError{Thing: t, Limit: b.limits[t]})
}

// charge takes of the allowance of all events.
func (b *Budget) charge(t Thing, n int64) {
	if b.events == nil {
		return
	}
	switch t {
	case Scans:
		n *= 10
	case Rows, Objects:
	default:
		return
	}
	b.toil(n)
}

// toil takes n of work, or gives it back if it is negative.
func (b *Budget) toil(n int64) {
	whole := b.work.Add(n)
	switch n = max(whole, FreeWork) - max(whole-n, FreeWork); {
	case n < 0:
		b.events.give(-n)
		b.spent[Work].Add(n)
	case n > 0 && !b.events.take(n):
		b.work.Add(-n)
		b.exceed(Work)
	default:
		b.spent[Work].Add(n)
	}
}

// Ask takes, of the allowance of all events, what rows that are asked for would
// cost: so that they are not read if it is used up. [Budget.Answered] gives it back.
func (b *Budget) Ask(rows int) error {
	if b == nil || b.events == nil {
		return nil
	}
	b.toil(int64(rows))
	return b.Over()
}

// Answered gives back what [Budget.Ask] took; what was read is charged by itself.
func (b *Budget) Answered(rows int) {
	if b != nil && b.events != nil && b.Over() == nil {
		b.toil(-int64(rows))
	}
}

// Hold notes that the operation holds n bytes more. It may wait for memory. Its
// errors are [ErrBusy], that of [Held], and that of ctx.
func (b *Budget) Hold(ctx context.Context, n int) error {
	return b.hold(ctx, n, n >= largeStep)
}

// HoldRead is [Budget.Hold] of what was read, so many resources.
func (b *Budget) HoldRead(ctx context.Context, n, resources int) error {
	return b.hold(ctx, n, n >= largeEach*max(resources, 1))
}

func (b *Budget) hold(ctx context.Context, n int, large bool) error {
	if b == nil {
		return nil
	}
	if limit := b.limits[Held]; b.spent[Held].Add(int64(n)) > limit && limit > 0 {
		b.exceed(Held)
		return b.Over()
	}
	return b.memory.Hold(ctx, Need{Bytes: int64(n), Large: large, Pause: b.pause})
}

// Expect is [Budget.HoldRead] of what is about to be read, roughly: so that it is not
// read before there is memory for it. [Budget.Unexpect] takes it back.
func (b *Budget) Expect(ctx context.Context, n, resources int) error {
	if b == nil {
		return nil
	}
	return b.memory.Hold(ctx, Need{Bytes: int64(n), Large: n >= largeEach*max(resources, 1), Pause: b.pause})
}

// Unexpect takes back what [Budget.Expect] noted: what was read is held by itself.
func (b *Budget) Unexpect(n int) {
	if b != nil {
		b.memory.Release(int64(n))
	}
}

// Release notes that the operation holds n bytes less.
func (b *Budget) Release(n int) {
	if b != nil {
		b.spent[Held].Add(-int64(n))
		b.memory.Release(int64(n))
	}
}

// bytesPerWork are those of the answer that cost as much as a row.
const bytesPerWork = 256

// Grow is [Budget.Hold] of the answer, which has a limit of its own.
func (b *Budget) Grow(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	if b.events != nil {
		if b.toil(int64(n) / bytesPerWork); b.Over() != nil {
			return b.Over()
		}
	}
	return b.memory.Hold(ctx, Need{Bytes: int64(n), Large: n >= largeStep, Pause: b.pause})
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

// String lists what was spent.
func (b *Budget) String() string {
	out := ""
	for t := range Things {
		if t > 0 {
			out += " "
		}
		out += t.String() + "=" + strconv.FormatInt(b.Spent(t), 10)
	}
	return out
}

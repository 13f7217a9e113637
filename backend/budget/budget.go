// Package budget limits what an operation may spend while it runs. Code that does work charges the budget for it: the
// service for reads, the engine for writing the answer. The budget is in the context of the operation. It is looked up
// once per call, not for each resource.
package budget

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Thing is what a budget counts and limits, such as Rows.
type Thing int

const (
	// Rows are the resources that were read, or looked at by a scan.
	Rows Thing = iota
	// Objects are the resources, edges and manifests that were written into the answer.
	Objects
	// Bytes are the bytes of the answer.
	Bytes
	// Held are the bytes of data that was read and is kept until the answer is written.
	Held
	// Steps measure processor time, in units of about 100 ns. Rows and objects are charged in steps too.
	Steps
	// Events are the steps that an event has taken from the [Allowance] of all events.
	Events
	// Things is the number of the constants above.
	Things
)

// about describes a thing. key is the name of its limit, name its name in metrics, and text the error of an operation
// that exceeds the limit.
type about struct{ key, name, text string }

func (t Thing) about() about {
	return [Things]about{
		Rows:    {"limit-rows", "rows", "reads more than the %d resources that it may look at"},
		Objects: {"limit-objects", "objects", "returns more than the %d resources that it may"},
		Bytes:   {"limit-answer", "bytes", "has an answer of more than the %d bytes that it may have"},
		Held:    {"limit-held", "held", "holds resources and arguments of more than the %d bytes that it may"},
		Steps:   {"limit-steps", "steps", "takes more work than the %d steps that it may"},
		Events:  {"limit-events", "events", "is one of too many expensive events: together they may take %d steps at once"},
	}[t]
}

// Key returns the name of the limit in docs/limits.md.
func (t Thing) Key() string { return t.about().key }

// String returns the name of the thing in extensions.cost.
func (t Thing) String() string { return t.about().name }

// Limits are the limits of an operation, indexed by [Thing]. Zero means no limit.
type Limits [Things]int64

// Shared has what the operations of a gateway share. Each field may be nil.
type Shared struct {
	// Memory is the operation's share of the gateway's memory.
	Memory *Share
	// CPUSlots limits how many operations run for long at a time.
	CPUSlots *CPUSlots
	// Events is the allowance for an event of a subscription.
	Events *Allowance
}

// Budget is the budget of one operation, or of one event of a subscription. A nil Budget is unlimited. It is safe for
// concurrent use.
type Budget struct {
	limits Limits
	spent  [Things]atomic.Int64
	over   atomic.Pointer[ExceededError]
	halted atomic.Bool
	ended  atomic.Bool
	memory *Share
	events *Allowance
	slot   cpuSlot
	// arrived is when Arrive was called, as Unix time in nanoseconds; 0 if it was not.
	arrived atomic.Int64
}

type sharedKey struct{}

// WithShared returns a context with s, for [SharedFrom].
func WithShared(ctx context.Context, s Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, &s)
}

// SharedFrom returns the value given to [WithShared], the zero value if there is none.
func SharedFrom(ctx context.Context) Shared {
	if s, ok := ctx.Value(sharedKey{}).(*Shared); ok {
		return *s
	}
	return Shared{}
}

// New returns a budget of which nothing is spent. The operation shares nothing with others.
func New(limits Limits) *Budget { return &Budget{limits: limits} }

// NewShared returns an unspent budget of an operation that shares memory and processors with others. [Budget.End] must
// be called when the operation ends.
func NewShared(limits Limits, shared Shared) *Budget {
	b := &Budget{limits: limits, memory: shared.Memory, events: shared.Events}
	if shared.CPUSlots != nil {
		b.slot = cpuSlot{of: shared.CPUSlots, began: time.Now()}
	}
	return b
}

type budgetKey struct{}

// With returns a context with the budget, for [From].
func With(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// From returns the budget of a context, nil if it has none.
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

// Spend charges n units of a thing. After a limit was exceeded, Spend always returns the error of that limit.
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

// add charges n units of a thing. The steps of an event are also taken from the allowance of all events.
func (b *Budget) add(t Thing, n int64) {
	spent := b.spent[t].Add(n)
	if limit := b.limits[t]; limit > 0 && spent > limit {
		b.exceed(t)
	}
	if t != Steps || b.events == nil {
		return
	}
	n = spent - max(spent-n, FreeSteps)
	if n > 0 {
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

// Hold records that the operation holds n more bytes. It may wait for memory. Its errors are [ErrBusy], the
// [ExceededError] of [Held], and the error of ctx.
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

// Release records that the operation holds n bytes fewer.
func (b *Budget) Release(n int) {
	if b != nil {
		b.spent[Held].Add(-int64(n))
		b.memory.Release(int64(n))
	}
}

// Expect waits for memory for a read of about n bytes. After the read, the caller gives it back with [Budget.Unexpect],
// and charges the actual result with [Budget.Hold].
func (b *Budget) Expect(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	return b.memory.Hold(ctx, int64(n), b.pause)
}

// Unexpect gives back the memory that [Budget.Expect] has reserved.
func (b *Budget) Unexpect(n int) {
	if b != nil {
		b.memory.Release(int64(n))
	}
}

// Grow is like [Budget.Hold] for bytes of the answer, whose limit is [Bytes] instead of [Held]. It also charges the
// steps for these bytes.
func (b *Budget) Grow(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	if err := b.Spend(Steps, n/AnswerBytes); err != nil {
		return err
	}
	return b.memory.Hold(ctx, int64(n), b.pause)
}

// KeepEvent sets the number of bytes that the event holds until it is sent; see [Share.KeepEvent].
func (b *Budget) KeepEvent(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	return b.memory.KeepEvent(ctx, int64(n), b.pause)
}

// Left returns how much of a thing may still be spent, [math.MaxInt] if there is no limit.
func (b *Budget) Left(t Thing) int {
	if b == nil || b.limits[t] == 0 {
		return math.MaxInt
	}
	return int(max(b.limits[t]-b.spent[t].Load(), 0))
}

// Spent returns how much of a thing was charged.
func (b *Budget) Spent(t Thing) int64 {
	if b == nil {
		return 0
	}
	return b.spent[t].Load()
}

// Over returns the error of the limit that was exceeded first, nil if none was.
func (b *Budget) Over() error {
	if b == nil {
		return nil
	}
	if over := b.over.Load(); over != nil {
		return over
	}
	return nil
}

// Arrive records the present time as the arrival of the event, for [Budget.Since].
func (b *Budget) Arrive() {
	if b != nil {
		b.arrived.Store(time.Now().UnixNano())
	}
}

// Since returns the time since [Budget.Arrive], 0 if it was not called.
func (b *Budget) Since() time.Duration {
	if at := b.arrived.Load(); at != 0 {
		return time.Duration(time.Now().UnixNano() - at)
	}
	return 0
}

// Halt records that the operation was ended before its answer was complete. The client then gets only the last error.
func (b *Budget) Halt() {
	if b != nil {
		b.halted.Store(true)
	}
}

// Halted reports whether Halt was called.
func (b *Budget) Halted() bool { return b != nil && b.halted.Load() }

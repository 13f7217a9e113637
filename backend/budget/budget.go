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
	}
	return "asks for more than the %d values of the schema that it may"
}

// Limits of an operation, by things. Zero is no limit.
type Limits [Things]int64

// Budget of one operation, or of one event of a subscription. A nil Budget bounds
// nothing. It is safe for concurrent use.
type Budget struct {
	limits Limits
	spent  [Things]atomic.Int64
	over   atomic.Pointer[ExceededError]
	halted atomic.Bool
}

// New returns a budget of which nothing is spent.
func New(limits Limits) *Budget { return &Budget{limits: limits} }

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
		b.over.CompareAndSwap(nil, &ExceededError{Thing: t, Limit: limit})
	}
	return b.Over()
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

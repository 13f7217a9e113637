package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// halted is the value with which a run panics if it cannot go on: its budget is spent, there is no memory, or its
// context has ended. That can be at any depth of the answer. The function that began the answer recovers the panic.
type halted struct{ err *gqlerror.Error }

// spending counts what a run spends. Since only one goroutine writes the answer, it counts without locks, and charges
// the budget from time to time.
type spending struct {
	budget *budget.Budget
	// objects is the number of objects that were counted since the last charge, and links the number of links since
	// openBudget. mostObjects and mostLinks are their maxima.
	objects, links, mostObjects, mostLinks int
	// limit is the maximum size of the answer in bytes, and begin the index in the buffer at which the answer begins.
	// granted is the number of bytes that the budget has granted. until is the length of the buffer above which more
	// must be claimed.
	limit, begin, until, granted int
	// errors is the approximate size of the errors in the answer, in bytes.
	errors int
	// inputs is the number of bytes that coerced arguments hold.
	inputs int
	// elements is the number of list elements that were written; see [run.element].
	elements uint
}

// openBudget sets the budget of the run from ctx. begin is where the answer begins in its buffer.
func (r *run) openBudget(ctx context.Context, begin int) {
	b := budget.From(ctx)
	r.spent = spending{
		budget:      b,
		mostObjects: b.Left(budget.Objects),
		mostLinks:   b.Left(budget.Objects),
		begin:       begin,
		limit:       b.Left(budget.Bytes),
		until:       math.MaxInt,
	}
	if b != nil {
		r.grant(firstBytes)
	}
}

// firstBytes is the size of an answer for which the initial grant of an operation or event suffices.
const firstBytes = 8 << 10

// grant sets the number of bytes that are granted to the answer.
func (r *run) grant(n int) {
	r.spent.granted = n
	r.spent.until = r.spent.begin + min(n, r.spent.limit)
}

// chargeWritten charges the objects and bytes that were written since the last charge.
func (r *run) chargeWritten(bytes int) {
	_ = r.spent.budget.Spend(budget.Objects, r.spent.objects) // count has compared it with the limit
	_ = r.spent.budget.Spend(budget.Bytes, bytes+r.spent.errors)
	r.spent.objects, r.spent.errors = 0, 0
}

// chargeObjects charges the objects that were written since the last charge. The steps of events are taken from an
// allowance that all events share. So the objects of a long list are charged while the list is being written.
func (r *run) chargeObjects(f *field) {
	n := r.spent.objects
	r.spent.objects, r.spent.mostObjects = 0, r.spent.mostObjects-n
	if err := r.spent.budget.Spend(budget.Objects, n); err != nil {
		r.halt(err, f)
	}
}

// errorBytes is the approximate size of an error in the answer without its message and path, in bytes.
const errorBytes = 200

// countError counts the size of an error. A field can have an error for each object of the answer.
func (r *run) countError(err *gqlerror.Error) {
	n := errorBytes + len(err.Message)
	for _, step := range err.Path {
		if name, ok := step.(ast.PathName); ok {
			n += len(name)
		}
	}
	var known *failure.Error
	if errors.As(err, &known) { // the extensions have its path twice, as a list and as text
		n += 2 * min(len(known.Path), failure.MaxPath)
		if limit, ok := known.Limit.(string); ok {
			n += len(limit)
		}
	}
	r.spent.errors += n
}

// charge charges steps to the budget. It halts the run if the budget is spent.
func (r *run) charge(f *field, steps int) {
	if err := r.spent.budget.Spend(budget.Steps, steps); err != nil {
		r.halt(err, f)
	}
}

// count counts n objects that are about to be written. It halts the run if there are too many.
func (r *run) count(f *field, n int) {
	r.spent.objects += n
	if r.spent.objects > r.spent.mostObjects {
		r.exceed(budget.Objects, f, r.spent.objects)
	}
}

// countLink counts a reference or a connection that is about to be read. It halts the run if there are too many.
func (r *run) countLink(f *field) {
	if r.spent.links++; r.spent.links > r.spent.mostLinks {
		r.exceed(budget.Objects, f, r.spent.links)
	}
}

// longValue is a length in bytes. Before a value that is longer is written, room must be called.
const longValue = 4 << 10

// room makes sure that memory is granted for n more bytes at the end of buf. It returns buf, possibly with more
// capacity. It halts the run if the answer would become too long or there is no memory.
func (r *run) room(ctx context.Context, f *field, buf []byte, n int) []byte {
	n += len(buf) + r.spent.errors
	if n > r.spent.until {
		return r.grow(ctx, f, buf, n)
	}
	return buf
}

// grow claims memory for a buffer of n bytes, and returns buf with more capacity.
func (r *run) grow(ctx context.Context, f *field, buf []byte, n int) []byte {
	n -= r.spent.begin
	if n > r.spent.limit {
		r.exceed(budget.Bytes, f, n)
	}
	bigger := max(2*r.spent.granted, n)
	r.hold(ctx, f, r.spent.budget.Grow(ctx, bigger-r.spent.granted))
	r.grant(bigger)
	return slices.Grow(buf, max(r.spent.until-len(buf), 0))
}

// hold halts the run if err, an error of claiming memory, is not nil.
func (r *run) hold(ctx context.Context, f *field, err error) {
	if err != nil {
		if !errors.Is(err, budget.ErrBusy) {
			r.checkContext(ctx, f)
		}
		r.halt(err, f)
	}
}

const timedOut = "the request took longer than it may, or its client has left"

// element is called for each element of a list. On every 64th call it charges the objects written so far, and halts the
// run if its context has ended.
func (r *run) element(ctx context.Context, f *field) {
	if r.spent.elements++; r.spent.elements%64 == 0 {
		r.checkContext(ctx, f)
		r.chargeObjects(f)
	}
}

// checkContext halts the run if its context has ended. A run that takes long may have to wait first: see
// [budget.Budget.Pace].
func (r *run) checkContext(ctx context.Context, f *field) {
	r.spent.budget.Pace(ctx)
	if ctx.Err() != nil {
		r.halt(&failure.Error{Code: failure.CodeTimeout, Message: timedOut, Retryable: true}, f)
	}
}

// exceed halts the run because n exceeds what is left of a limit.
func (r *run) exceed(t budget.Thing, f *field, n int) {
	r.halt(r.spent.budget.Spend(t, n), f)
}

// haltOn halts the run if err means that it cannot go on: the budget is spent, there is no memory, or the context has
// ended.
func (r *run) haltOn(ctx context.Context, err error, f *field) {
	var known *failure.Error
	var over *budget.ExceededError
	isTimeout := ctx.Err() != nil && errors.As(err, &known) && known.Code == failure.CodeTimeout
	if isTimeout || errors.As(err, &over) || errors.Is(err, budget.ErrBusy) {
		r.halt(err, f)
	}
}

// halt stops the run at a field, which may be nil. The error has the path in the answer, as far as it is known. Its
// extensions have the path of the field in the document.
func (r *run) halt(err error, f *field) {
	out := &gqlerror.Error{Err: err, Message: err.Error(), Path: r.where(), Extensions: map[string]any{}}
	if f != nil {
		place := f.alias
		top := f
		for ; top.above != nil; top = top.above {
			place = top.above.alias + "." + place
		}
		if len(r.path) > 0 {
			top = f // else f is read for many places at once
		}
		out.Path = append(out.Path, ast.PathName(top.alias))
		out.Extensions["selection"], out.Locations = place, f.locations()
	}
	panic(&halted{out})
}

// mutationField executes one root field of a mutation, the only element of fields and answers. If it halts or panics,
// the error reports whether the change was made. After a halt the following root fields are not executed; after a panic
// they are.
func (r *run) mutationField(
	ctx context.Context, buf []byte, fields []field, answers []resolved,
) (out []byte, some bool) {
	f, a := &fields[0], &answers[0]
	if r.ended != nil {
		r.applied = false
		r.report(ctx, explained("not executed: ", r.ended, true), f, ast.Path{ast.PathName(f.alias)})
		return buf, false
	}
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		h, ok := v.(*halted)
		if !ok {
			r.panicked(ctx, v, f, a)
			out, some = buf, false
			return
		}
		r.ended = h.err.Err
		r.path = r.path[:0]
		r.next = r.next[:0]
		if a.applied() {
			h.err.Extensions["outcome"] = failure.OutcomeApplied
			h.err.Err = explained("the change was made, but its answer is not complete: ", r.ended, false)
			h.err.Message = h.err.Err.Error()
		}
		graphql.AddError(ctx, h.err)
		out, some = buf, false
	}()
	r.checkContext(ctx, f)
	r.applied = false
	r.forget() // each field sees the change of the field before
	r.executeCore(ctx, fields, answers)
	r.resolveRoot(ctx, f, a)
	r.applied = a.applied()
	r.resolve(ctx)
	out, some = r.writeRoot(ctx, buf, f, a)
	r.releaseArguments()
	return r.room(ctx, f, out, 0), some
}

// panicked adds the error of a panic in a root field of a mutation, and drops what the field has begun to read.
func (r *run) panicked(ctx context.Context, v any, f *field, a *resolved) {
	r.path = r.path[:0]
	r.level = r.level[:0]
	r.next = r.next[:0]
	r.wanted = r.wanted[:0]
	err := r.oc.RecoverFunc(ctx, v)
	if a.writing {
		err = &failure.Error{Code: failure.CodeInternal, Message: "internal error", Outcome: failure.OutcomeUnknown}
	}
	r.applied = a.applied()
	r.report(ctx, err, f, ast.Path{ast.PathName(f.alias)})
}

// explained returns the error of a root field that has halted, or that was not executed because an earlier one has. Its
// message begins with the given text, and continues with the message of the cause or, if that is a [failure.Error],
// with timedOut.
func explained(what string, cause error, retryable bool) error {
	var known *failure.Error
	if errors.As(cause, &known) {
		return &failure.Error{Code: known.Code, Message: what + timedOut, Retryable: retryable}
	}
	return fmt.Errorf(what+"%w", cause)
}

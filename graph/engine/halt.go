package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// halted is the value with which a run panics if it must not go on: its budget is spent,
// or its context has ended. The function that began the answer recovers it, see the package comment.
type halted struct{ err *gqlerror.Error }

// spending counts what a run charges to its budget. The run has counters of its own, because only one
// goroutine writes, and charges the budget at the end.
type spending struct {
	budget *budget.Budget
	// objects and links are the numbers of objects written since the last charge and of links read, and
	// mostObjects and mostLinks their bounds.
	objects, links, mostObjects, mostLinks int
	// limit is how long the answer may be, from begin in its memory on; until is how
	// long it may grow without asking for memory, which is granted so far.
	limit, begin, until, granted int
	// errorBytes is roughly the length of the errors of the answer.
	errorBytes int
	// inputs are the bytes that coerced arguments hold.
	inputs int
	// elements of lists were written, see [run.element].
	elements uint
}

// openBudget begins to charge the budget of the context. The answer begins at begin in its memory.
func (r *run) openBudget(begin int) {
	b := budget.From(r.ctx)
	r.spent = spending{budget: b, mostObjects: b.Left(budget.Objects), mostLinks: b.Left(budget.Objects), begin: begin, limit: b.Left(budget.Bytes), until: math.MaxInt}
	if b != nil {
		r.grant(firstBytes)
	}
}

// firstBytes of an answer are a part of what an operation or an event begins with.
const firstBytes = 8 << 10

// grant sets how long the answer may grow.
func (r *run) grant(n int) {
	r.spent.granted = n
	r.spent.until = r.spent.begin + min(n, r.spent.limit)
}

// settle charges what a run has written.
func (r *run) settle(bytes int) {
	_ = r.spent.budget.Spend(budget.Objects, r.spent.objects) // it was compared with what is left
	_ = r.spent.budget.Spend(budget.Bytes, bytes+r.spent.errorBytes)
	r.spent.objects, r.spent.errorBytes = 0, 0
}

// chargeObjects charges the objects written so far, since other operations wait for what is left of
// the allowance of all events.
func (r *run) chargeObjects(f *field) {
	n := r.spent.objects
	r.spent.objects, r.spent.mostObjects = 0, r.spent.mostObjects-n
	if err := r.spent.budget.Spend(budget.Objects, n); err != nil {
		r.halt(err, f)
	}
}

// errorOverhead is the length of an error in the answer besides its message and its path.
const errorOverhead = 200

// chargeError counts an error as a part of the answer: a field can have one in each place.
func (r *run) chargeError(err *gqlerror.Error) {
	n := errorOverhead + len(err.Message)
	for _, step := range err.Path {
		if name, ok := step.(ast.PathName); ok {
			n += len(name)
		}
	}
	var known *failure.Error
	if errors.As(err, &known) { // its path is in the extensions, as a list and as text
		n += 2 * min(len(known.Path), failure.MaxPath)
		if limit, ok := known.Limit.(string); ok {
			n += len(limit)
		}
	}
	r.spent.errorBytes += n
}

// charge takes steps for what comes next.
func (r *run) charge(f *field, steps int) {
	if err := r.spent.budget.Spend(budget.Steps, steps); err != nil {
		r.halt(err, f)
	}
}

// count counts objects that are about to be written.
func (r *run) count(f *field, n int) {
	if r.spent.objects += n; r.spent.objects > r.spent.mostObjects {
		r.exceed(budget.Objects, f, r.spent.objects)
	}
}

// countLink counts a reference or a connection that is to be read.
func (r *run) countLink(f *field) {
	if r.spent.links++; r.spent.links > r.spent.mostLinks {
		r.exceed(budget.Objects, f, r.spent.links)
	}
}

// room halts if the answer, errors included, is longer than it may be, or if there
// is no memory for it. It returns the answer in memory that has as much room as was
// granted.
func (r *run) room(f *field, buf []byte) []byte {
	if n := len(buf) + r.spent.errorBytes; n > r.spent.until {
		return r.grow(f, buf, n)
	}
	return buf
}

// longValue is from how many bytes on a value asks for room before it is written.
const longValue = 4 << 10

// roomFor is room before a value of n bytes is written.
func (r *run) roomFor(f *field, buf []byte, n int) []byte {
	if n += len(buf) + r.spent.errorBytes; n > r.spent.until {
		return r.grow(f, buf, n)
	}
	return buf
}

// grow asks for memory for an answer of n bytes, what stands before it included.
func (r *run) grow(f *field, buf []byte, n int) []byte {
	n -= r.spent.begin
	if n > r.spent.limit {
		r.exceed(budget.Bytes, f, n)
	}
	bigger := max(2*r.spent.granted, n)
	r.hold(f, r.spent.budget.Grow(r.ctx, bigger-r.spent.granted))
	r.grant(bigger)
	return slices.Grow(buf, max(r.spent.until-len(buf), 0))
}

// hold halts if there is no memory for what the run holds.
func (r *run) hold(f *field, err error) {
	if err != nil {
		if !errors.Is(err, budget.ErrBusy) {
			r.alive(f)
		}
		r.halt(err, f)
	}
}

const timedOut = "the request took longer than it may, or its client has left"

// element looks, every now and then, whether anybody still waits for the answer.
func (r *run) element(f *field) {
	if r.spent.elements++; r.spent.elements%64 == 0 {
		r.alive(f)
		r.chargeObjects(f)
	}
}

// alive halts if the context of the run has ended.
func (r *run) alive(f *field) {
	r.spent.budget.Pace(r.ctx)
	if r.ctx.Err() != nil {
		r.halt(&failure.Error{Code: failure.CodeTimeout, Message: timedOut, Retryable: true}, f)
	}
}

// exceed halts for a limit, of which n is more than what is left.
func (r *run) exceed(t budget.Thing, f *field, n int) {
	r.halt(r.spent.budget.Spend(t, n), f)
}

// haltOn halts if err means that the run must not go on: the budget is spent, there is no memory, or the
// context has ended.
func (r *run) haltOn(err error, f *field) {
	var known *failure.Error
	var over *budget.ExceededError
	if errors.As(err, &over) || errors.Is(err, budget.ErrBusy) || r.ctx.Err() != nil && errors.As(err, &known) && known.Code == failure.CodeTimeout {
		r.halt(err, f)
	}
}

// halt ends the run. The error has the field at which it ended: as a path of the
// answer if it is written already, and of the document in its extensions.
func (r *run) halt(err error, f *field) {
	out := &gqlerror.Error{Err: err, Message: err.Error(), Path: r.where(), Extensions: map[string]any{}}
	if f != nil {
		place := r.plan.root.find(f)
		switch {
		case len(r.path) > 0 || len(place) == 1:
			out.Path = append(out.Path, ast.PathName(f.alias))
		case len(place) > 0: // it was read for many places at once
			out.Path = ast.Path{ast.PathName(place[0])}
		}
		out.Extensions["selection"] = strings.Join(place, ".")
		if f.location.Line > 0 {
			out.Locations = []gqlerror.Location{f.location}
		}
	}
	panic(&halted{out})
}

// find returns the way to a field of the plan by its names in the answer; nil if the
// field is not below the object.
func (o *object) find(f *field) []string {
	if o == nil {
		return nil
	}
	for i := range o.fields {
		here := &o.fields[i]
		if here == f {
			return []string{here.alias}
		}
		below := here.sub.find(f)
		if below == nil && here.abstract != nil {
			below = here.abstract.find(f)
		}
		if below != nil {
			return append([]string{here.alias}, below...)
		}
	}
	return nil
}

func (a *abstract) find(f *field) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.types {
		if way := o.find(f); way != nil {
			return way
		}
	}
	return nil
}

// inTurn resolves and appends one root field of a mutation: fields and answers have one element. If the run
// halts, its error says whether the change was made, and the fields after it are not executed.
func (r *run) inTurn(buf []byte, fields []field, answers []resolved) (out []byte, some bool) {
	f, a := &fields[0], &answers[0]
	if r.ended != nil {
		r.applied = false
		r.report(explained("not executed: ", r.ended, true), f, ast.Path{ast.PathName(f.alias)})
		return buf, false
	}
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		h, ok := v.(*halted)
		if !ok {
			panic(v)
		}
		r.ended, r.path, r.next = h.err.Err, r.path[:0], r.next[:0]
		if a.written != nil && !a.written.DryRun {
			h.err.Extensions["outcome"] = failure.OutcomeApplied
			h.err.Err = explained("the change was made, but its answer is not complete: ", r.ended, false)
			h.err.Message = h.err.Err.Error()
		}
		graphql.AddError(r.ctx, h.err)
		out, some = buf, false
	}()
	r.alive(f)
	r.applied = false
	r.forget() // each sees what the one before has done
	r.executeCore(fields, answers)
	r.resolveRoot(f, a)
	r.applied = a.written != nil && !a.written.DryRun
	r.resolve()
	out, some = r.writeRoot(buf, f, a)
	r.releaseArguments()
	return r.room(f, out), some
}

// explained is the error of a mutation that halted, or that comes after it.
func explained(what string, cause error, retryable bool) error {
	var known *failure.Error
	if errors.As(cause, &known) {
		return &failure.Error{Code: known.Code, Message: what + timedOut, Retryable: retryable}
	}
	return fmt.Errorf(what+"%w", cause)
}

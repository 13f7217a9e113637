package query

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/row"
)

// maxStepRanges is how many ranges one step asks for: with their guards and checks they
// fit one call.
const maxStepRanges = backend.MaxRanges / 3

// maxFirsts is how many bytes the first resources of the ranges of one step have, as far
// as sizes are known: each page has its first resource, whatever the others have.
const maxFirsts = 8 * backend.MaxPageBytes

// asked is what a step asks for a scan.
type asked struct {
	scan, begun int
	part        *part
}

// stepping is the next step of scans: the ranges that it asks for.
type stepping struct {
	ranges []backend.Range
	asked  []asked // parallel to the first ranges
	named  []int   // the scans that ask by keys
	// checks are scans in the order of an index, whose two last ranges say whether anything
	// is without a value of it.
	checks []int
	guards row.Guards
	// expected is what the step will hold, in bytes.
	expected int
}

// prepare prepares the next step of the scans that are not done.
func (r *Reader) prepare(scans []*scan, errs []error, left int) (st stepping) {
	firsts := 0
	for i, sc := range scans {
		if sc.done || errs[i] != nil {
			continue
		}
		if sc.query.names != nil {
			st.named = append(st.named, i)
			continue
		}
		for n := range sc.parts {
			p := &sc.parts[n]
			if p.done {
				continue
			}
			if len(st.asked) > 0 && (len(st.asked)+2*len(st.checks) >= maxStepRanges || left <= 0 || firsts >= maxFirsts) {
				break
			}
			firsts += r.sizes.estimate(sc.query.kind, 1)
			one := sc.request(p)
			one.Limit = min(one.Limit, max(left, 1))
			left -= one.Limit
			st.expected += r.sizes.estimate(sc.query.kind, one.Limit)
			st.asked = append(st.asked, asked{i, sc.begun, p})
			st.ranges = append(st.ranges, one)
			st.guards.Add(sc.query.kind.Rows, one.Index != "")
			if sc.route.by != "" && !sc.checked && sc.route.nullsFirst && !sc.route.valued {
				st.checks = append(st.checks, i)
			}
		}
	}
	st.expected = min(st.expected, backend.MaxPageBytes)
	return st
}

// all are the ranges of the step, with its guards and checks.
func (st *stepping) all(scans []*scan) []backend.Range {
	out := append(st.ranges, st.guards.Ranges()...)
	for _, i := range st.checks {
		k := scans[i].query.kind.Name
		out = append(out, backend.Range{Kind: k, Estimate: true}, backend.Range{Kind: k, Index: scans[i].route.by, Estimate: true})
	}
	return out
}

// pay takes what the step asks for from the budget.
func (st *stepping) pay(ctx context.Context) error {
	spent := budget.From(ctx)
	err := spent.Spend(budget.Steps, budget.Scan*len(st.asked))
	if err == nil && spent.Left(budget.Rows) == 0 && len(st.asked)+len(st.named) > 0 {
		err = spent.Spend(budget.Rows, 1)
	}
	if err == nil {
		err = held(spent.Expect(ctx, st.expected))
	}
	return err
}

// runScans reads until all scans are done. The next steps of all are one call.
// The errors are parallel to the scans. No step asks for more than the budget of
// the operation has left.
func (r *Reader) runScans(ctx context.Context, scans []*scan) []error {
	errs := make([]error, len(scans))
	if why := explanation(ctx); why != nil {
		defer func() {
			for _, sc := range scans {
				why.add(sc.explained())
			}
		}()
	}
	if err := r.routes(ctx, scans); err != nil {
		fail(errs, scans, err)
		return errs
	}
	for _, sc := range scans {
		sc.begin()
	}
	spent := budget.From(ctx)
	for {
		spent.Pace(ctx)
		if err := ctx.Err(); err != nil {
			fail(errs, scans, failure.Of(err, backend.Key{}))
			return errs
		}
		st := r.prepare(scans, errs, spent.Left(budget.Rows))
		if err := st.pay(ctx); err != nil {
			fail(errs, scans, err)
			return errs
		}
		if len(st.named) > 0 {
			r.stepNamed(ctx, scans, st.named, errs)
		}
		switch {
		case len(st.asked) == 0 && len(st.named) == 0:
			return errs
		case len(st.asked) == 0:
			continue
		}
		if err := r.step(ctx, scans, &st, errs); err != nil {
			fail(errs, scans, err)
			return errs
		}
		for i, sc := range scans {
			if errs[i] == nil {
				sc.widen()
			}
		}
	}
}

// step is the next step of scans that read ranges. An error is that of all of them.
func (r *Reader) step(ctx context.Context, scans []*scan, st *stepping, errs []error) error {
	spent := budget.From(ctx)
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, st.all(scans))
	spent.Return(ctx)
	spent.Unexpect(st.expected)
	if err != nil {
		for _, a := range st.asked {
			errs[a.scan] = failure.Of(err, backend.Key{Kind: scans[a.scan].query.kind.Name})
		}
		return nil
	}
	n := len(st.asked)
	checks := pages[len(pages)-2*len(st.checks):]
	stale := st.guards.Note(pages[n : len(pages)-len(checks)])
	pages = pages[:n]
	err = spent.Spend(budget.Rows, resources(pages))
	if err == nil {
		err = r.sizes.hold(ctx, scans, st.asked, pages)
	}
	if err != nil {
		return held(err)
	}
	for n, i := range st.checks {
		sc := scans[i]
		all, valued := checks[2*n].Count, checks[2*n+1].Count
		if err := spent.Spend(budget.Steps, budget.Counted*(all+valued)); err != nil {
			return err
		}
		if sc.checked = true; all != valued {
			sc.withoutRuns()
		}
	}
	for n, a := range st.asked {
		sc := scans[a.scan]
		switch {
		case ctx.Err() != nil:
			errs[a.scan] = failure.Of(ctx.Err(), backend.Key{})
		case sc.begun != a.begun || sc.done:
			// What was read is of no use: the scan has begun anew, or has all it wants.
		case a.part.left.Index != "" && slices.Contains(stale, sc.query.kind.Rows):
			sc.withoutRuns()
		default:
			kept := len(sc.found)
			sc.looked += len(pages[n].Resources)
			sc.take(r, a.part, pages[n])
			if err := spent.Spend(budget.Steps, sc.tests); err != nil {
				return err
			}
			sc.tests = 0
			if !sc.plain() {
				spent.Release(size(pages[n].Resources) - sizeOfEdges(sc.found[min(kept, len(sc.found)):]))
			}
		}
	}
	return nil
}

// fail is the end of all scans that are not done.
func fail(errs []error, scans []*scan, err error) {
	for i, sc := range scans {
		if !sc.done && errs[i] == nil {
			errs[i] = err
		}
	}
}

// resources is how many the pages have.
func resources(pages []backend.Page) (n int) {
	for i := range pages {
		n += len(pages[i].Resources)
	}
	return n
}

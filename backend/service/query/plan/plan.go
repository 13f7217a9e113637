// Package plan chooses how a page or a count is read: by the runs of index rows that hold every
// match, or by walking an index in the order of the page.
//
// The index has a tree of rows for each attribute, ordered by (value, namespace, name), and a
// tree of names. The encoded (namespace, name) of a resource is its place. A run is a part of one
// tree; its length is known without reading it:
//
//	tree spec.mtu   1400 a/n1 | 1450 a/n7 | 1500 a/n2 | 1500 b/n1 | 9000 a/n3
//	                                        '--- mtu: {eq: 1500} ---'
//	                            '------------- mtu: {gte: 1450} ------------'
//	tree labels     app=x a/n7 | app=x b/n1 | app=y a/n2
//	                '-- app: {eq: "x"} ---'
//	names           a/n1 | a/n2 | a/n3 | a/n7 | b/n1
//	                '----- namespace a -----'
//
// For {mtu: {gte: 1450}, labels: [{key: "app", eq: "x"}]} each condition by itself gives a choice:
// runs that hold all its matches. The choice of the label is the shortest, with two rows. Each of
// its rows is tested against the other condition. A count of one condition is the length of its
// choice.
//
// A page of w resources in another order than its choice can be read in two ways:
//
//   - the whole choice, of which the best w are kept: its length in rows;
//   - in the order of the page, testing everything, until the page is full. If the choice has
//     n of N resources and they are spread evenly, that takes w*N/n rows. With several criteria
//     the rows that tie by the first one are read, too.
//
// The way with fewer rows is taken. The first of these cases that fits applies:
//
//	the names are known                    read them one by one
//	name order, no filter                  one run, of the names or of a parent's referrers, Sorted
//	name order, the choice is one run      that run, Sorted, if all its rows have one value
//	name order, what the caller may see    its runs of the names, Sorted
//	order of creation, one label           the label's creation index, Sorted
//	a count of an exact choice             the length of its runs
//	any other count                        the choice, Unsorted
//	the choice has no rows                 nothing
//	walking takes fewer rows               the walk: Sorted, or Grouped if there are several criteria
//	otherwise                              the choice: RunsSorted in name order, else Unsorted
//
// A resource without a value is in a tree of nulls, whose run is read before or after the values.
// Ties are in name order in both directions. So a walk may have values and names in opposite
// directions; such a run has ReversedTies, and its reader reverses each group of ties:
//
//	mtu descending      <-- 9000 a/n3 | 1500 b/n1, 1500 a/n2 | 1450 a/n7 | 1400 a/n1
//	page shows              9000 a/n3 | 1500 a/n2, 1500 b/n1 | 1450 a/n7 | 1400 a/n1 | nulls
//
// A kind that is not in memory has the tree of names alone.
package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// Want describes what to read of a query: a page or a count.
type Want struct {
	// In is the interval of sort keys of the page.
	In Interval
	// Backward requests the last Size resources of the interval instead of the first ones.
	Backward bool
	// Size is the maximum number of resources on the page.
	Size int
	// Ahead requests one more resource than Size, to find out whether the page has a successor.
	Ahead bool
	// Count requests the number of matching resources instead of a page.
	Count bool
	// By, with Count, also requests a number for each combination of values of these keys. With nil, only the number of
	// all matches is requested.
	By []filter.GroupKey
	// Total requests the number of matches in addition to the page, for a kind that is not in memory.
	Total bool
}

// Limit returns how many resources must be found: Size, or one more with Ahead.
func (w *Want) Limit() int {
	if w.Ahead {
		return w.Size + 1
	}
	return w.Size
}

// Sorting is the order in which the rows of a plan are read.
type Sorting int

// The sortings.
const (
	// Unsorted means that the rows are in any order.
	Unsorted Sorting = iota
	// Sorted means that the rows are in the order of the page.
	Sorted
	// RunsSorted means that the rows of each run are in the order of the page.
	RunsSorted
	// Grouped means that the rows are in the order of the first criterion. Rows with equal values are in any order.
	Grouped
)

// Plan describes how a query is executed. Either the resources in Query.Names are read one by one, or runs are read one
// after the other. The number of matches may be taken from the lengths of the runs without reading them.
type Plan struct {
	// ByName reports whether the resources in Query.Names are read one by one.
	ByName bool
	// Length reports whether the matches are counted by the lengths of the runs.
	Length bool
	// Rows is the total length of the runs, for a kind in memory.
	Rows int
	// Runs are read one after the other until the page is full.
	Runs    []Run
	Sorting Sorting
	// Exact reports whether all resources in the runs match.
	Exact bool
	// rest has the conditions against which Match tests each resource in the runs.
	rest filter.All
	// Once reports whether each resource occurs at most once in the runs.
	Once bool
	// Measured is how many runs were measured to make the plan. budget.Run is charged for each.
	Measured int
	// how and choice describe the plan, for String.
	how    string
	choice choice
}

// Run is a run of index rows, and the direction in which it is read.
type Run struct {
	index.Run
	Reverse bool
	// ReversedTies is set if the values are read in the order of the page, but rows with the same value are read in the
	// opposite order.
	ReversedTies *ReversedTies
}

// ReversedTies describes how to find the rows with the same value in a run.
type ReversedTies struct {
	// prefix precedes the value in each row.
	prefix []byte
	// value and place tell where the page begins; nil if it begins at the first value.
	value, place []byte
	// scope is the range of places of the query.
	scope filter.Range
}

// Tied returns the run of the rows with one value that can be on the page, in the order of the page. r must have
// ReversedTies.
func (r *Run) Tied(value string) Run {
	t := r.ReversedTies
	at := slices.Concat(t.prefix, []byte(value))
	b := t.scope.WithPrefix(at)
	if value == string(t.value) { // the page begins among these ties
		place := slices.Concat(at, t.place)
		if r.Reverse { // ties are read in the other direction: upward
			b = b.And(filter.Range{Start: place})
		} else {
			b = b.And(filter.Range{End: place})
		}
	}
	return Run{Run: index.Run{Index: r.Index, Start: b.Start, End: b.End}, Reverse: !r.Reverse}
}

// Beyond returns the part of the run after the rows with a value. r must have ReversedTies.
func (r *Run) Beyond(value string) Run {
	out := *r
	at := append(slices.Clone(r.ReversedTies.prefix), value...)
	if r.Reverse {
		out.End = at
	} else {
		out.Start = backend.PrefixEnd(at)
	}
	return out
}

// Make sets p to the plan for q. trees are the trees of the kind; nil if it is not in memory.
func (p *Plan) Make(q *Query, trees *index.Kind, w *Want) {
	switch {
	case q.Names != nil:
		*p = Plan{ByName: true, Exact: !q.Filtered(), rest: q.conditions(), how: "names"}
		if len(q.Order) == 0 && !w.Count && !w.Total {
			p.Sorting = Sorted
		}
	case trees != nil && q.Plain(w):
		run := q.parentRange() // without a reference the index is "", the tree of names
		r := index.Run{Index: q.Reference, Start: run.Start, End: run.End}
		if in := &w.In; in.After != nil || in.Before != nil || in.From != nil {
			r = q.clip(w.In, r, q.parentValue())
		}
		*p = Plan{
			Sorting: Sorted,
			Exact:   true,
			Once:    true,
			Runs:    []Run{{Run: r, Reverse: w.Backward}},
			how:     "order of names",
		}
	default:
		by := planner{q: q, trees: trees, want: w, conditions: q.conditions()}
		*p = by.plan()
		p.Measured = max(by.measured, 1)
		if trees == nil && q.Reference != "" {
			p.how = "references to " + q.Parent().String()
		}
	}
}

// conditions returns the conditions that a resource in the places of the query must match.
func (q *Query) conditions() filter.All {
	out := slices.DeleteFunc(slices.Clone(q.Filter.All), func(e filter.Condition) bool {
		t, _ := e.(filter.Test)
		return q.Namespace != "" && t.Attribute == filter.Namespace && t.Op == "eq" &&
			bytes.Equal(t.Values[0], backend.AppendString(nil, q.Namespace))
	})
	if q.Reference != "" {
		out = append(out, filter.Test{Attribute: q.Reference, Op: "eq", Values: [][]byte{q.parentValue()}})
	}
	if q.Scoped() {
		out = append(out, inScope{q.scope})
	}
	return out
}

// Match reports whether a resource in the runs matches the query. The place of the resource must be within the places
// of the query.
func (p *Plan) Match(v *filter.Values) bool { return p.rest.Match(v) }

// planner plans one query.
type planner struct {
	q          *Query
	trees      *index.Kind // nil if the kind is not in memory
	want       *Want
	conditions filter.All
	// measured counts the runs that were measured, including the runs of an Any that has too many of them; see
	// Plan.Measured.
	measured int
}

// plan chooses between reading the shortest choice and reading in the order of the page. It handles the cases in the
// package comment that [Plan.Make] does not handle.
func (p *planner) plan() Plan {
	best, ok := p.shortest(p.conditions)
	by, ordered := p.orderedBy()
	names := ordered && by == "" && !p.want.Count
	if names && ok && (best.oneValue && len(best.runs) == 1 || best.inOrder) {
		return p.alongNames(best)
	}
	if len(p.conditions) == 1 && ordered && len(p.q.Order) == 1 && p.q.places.Whole() && !p.want.Count {
		if w, ok := p.byCreation(by, p.conditions[0]); ok { // holds exactly the matches, in the order of the page
			return p.walkPlan(w)
		}
	}
	var out Plan
	all, selective := p.everything(), ok
	if !ok || !(best.exact && best.once) && p.rows(&best) >= p.rows(&all) && !(p.trees == nil && best.inOrder) {
		best, selective = all, false
	}
	rows := p.rows(&best)
	switch {
	case p.want.Count && p.want.By == nil && best.exact && best.once:
		out.Length = true
		out.Rows = rows
		out.how = "length of "
	case p.want.Count || p.want.Total: // everything is read, in any order
	case rows == 0 && p.trees != nil:
		return Plan{how: "nothing"}
	case names:
		if !selective || p.estimateWalk(p.rows(&all), rows) <= rows {
			return p.alongNames(all)
		}
	case ordered:
		if along, n := p.along(by); p.estimateWalk(n, rows)+p.tied(along) < rows {
			return p.walkPlan(along)
		}
	}
	return p.gather(out, best)
}

// without returns all conditions except the one with the number one, counted from 1. 0 excludes none.
func (p *planner) without(one int) filter.All {
	switch {
	case one == 0:
		return p.conditions
	case len(p.conditions) == 1:
		return nil
	}
	return slices.Concat(p.conditions[:one-1], p.conditions[one:])
}

// estimateWalk estimates how many rows must be read in the order of the page until the page is full, if matches of the
// given rows match. matches must not be 0.
func (p *planner) estimateWalk(rows, matches int) int {
	return min((p.want.Limit()*rows+matches-1)/matches, rows)
}

// alongNames returns the plan that reads a choice in the order of names, forward or backward. The choice must have a
// single run of one value, or be inOrder. If no resource in the runs has to be tested, the total is the length of the
// runs.
func (p *planner) alongNames(c choice) Plan {
	out := Plan{
		Sorting: Sorted,
		Exact:   c.exact,
		Once:    true,
		Length:  p.want.Total,
		rest:    p.without(c.meets),
		how:     "order of names",
	}
	if p.want.Total && !c.exact {
		return p.gather(Plan{Once: true}, c)
	}
	if len(c.runs) != 1 || c.runs[0].Index != "" {
		out.how, out.choice = "order of names in ", c
	}
	reverse := p.want.Backward
	if len(p.q.Order) > 0 {
		reverse = reverse != p.q.Order[0].Descending
	}
	out.Runs = make([]Run, 0, len(c.runs))
	whole := p.want.In.After == nil && p.want.In.Before == nil && p.want.In.From == nil
	for _, r := range c.runs {
		if !whole {
			r = p.clip(r)
		}
		if r.Start == nil || r.End == nil || string(r.Start) < string(r.End) {
			out.Runs = append(out.Runs, Run{Run: r, Reverse: reverse})
		}
	}
	if reverse {
		slices.Reverse(out.Runs)
	}
	return out
}

// clip returns the part of a choice's run that can be on the page. The rows of the run must be ordered by name.
func (p *planner) clip(r index.Run) index.Run {
	var value []byte
	if r.Index != "" {
		value = r.Start[:len(r.Start)-len(p.q.places.Start)] // valued puts the value before places.Start
	}
	return p.q.clip(p.want.In, r, value)
}

// gather completes the plan that reads a choice as a whole.
func (p *planner) gather(out Plan, c choice) Plan {
	out.Exact = c.exact
	out.Once = c.once
	out.rest = p.without(c.meets)
	out.choice = c
	if c.oneValue && len(p.q.Order) == 0 && !p.want.Count && !p.want.Total {
		out.Sorting = RunsSorted
	}
	for _, r := range c.runs {
		if out.Sorting == RunsSorted {
			r = p.clip(r)
		}
		out.Runs = append(out.Runs, Run{Run: r, Reverse: p.want.Backward})
	}
	if p.trees == nil && !c.inOrder {
		out.how, out.choice = "all resources", choice{}
	}
	return out
}

// String describes the plan.
func (p *Plan) String() string {
	switch {
	case p.choice.runs != nil:
	case p.how == "order of names" && len(p.Runs) > 0 && p.Runs[0].Index != "":
		return p.how + " in " + p.Runs[0].Index
	default:
		return p.how
	}
	return p.how + p.choice.String()
}

// String describes the runs.
func (c choice) String() string {
	if len(c.runs) == 0 {
		return "no rows"
	}
	name := strings.TrimSuffix(c.runs[0].Index, index.NullIndex(""))
	if name == "" {
		name = "the names"
	}
	if len(c.runs) > 1 {
		name = fmt.Sprintf("%d runs of %s", len(c.runs), name)
	}
	if c.measured {
		name += fmt.Sprintf(", %d rows", c.rows)
	}
	return name
}

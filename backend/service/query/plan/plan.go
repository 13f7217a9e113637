// Package plan chooses how a page or a count is read: which runs of rows hold everything that
// a query keeps, and whether to read these or to follow the order of the page.
//
// The index has a tree of rows for each attribute, ordered by (value, namespace, name), and a
// tree of the names. A run is a part of one tree; its length is known without reading it:
//
//	tree spec.mtu   1400 a/n1 | 1450 a/n7 | 1500 a/n2 | 1500 b/n1 | 9000 a/n3
//	                                        '--- mtu: {eq: 1500} ---'
//	                            '------------- mtu: {gte: 1450} ------------'
//	tree labels     app=x a/n7 | app=x b/n1 | app=y a/n2
//	                '-- app: {eq: "x"} ---'
//	names           a/n1 | a/n2 | a/n3 | a/n7 | b/n1
//	                '----- namespace a -----'
//
// For {mtu: {gte: 1450}, labels: [{key: "app", eq: "x"}]} each condition by itself gives a
// choice: runs that hold all its matches. The shortest is that of the label, with two rows;
// the other condition is tested. A count of one condition is the length of its choice.
//
// A page of w resources in another order than that of its choice can be read in two ways:
//
//   - the whole choice, of which the first w are kept: its length in rows;
//   - in the order of the page, testing everything, until the page is full. If the choice has
//     n of N resources, each N/n-th is a match as far as one can tell: w*N/n rows.
//
// The way with fewer rows is taken. A kind that is not in memory has the names alone.
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

// Want is what is wanted of a query.
type Want struct {
	// In is the part of the order that a page is in, and Backward that it has its last ones.
	In       Interval
	Backward bool
	// Size of the page; Ahead wants to know whether there is one more.
	Size  int
	Ahead bool
	// Count wants the number of all instead, and Total wants both.
	Count, Total bool
}

// Wanted is how many resources are looked for.
func (w *Want) Wanted() int {
	if w.Ahead {
		return w.Size + 1
	}
	return w.Size
}

// Sorting is in which order the rows of a plan come.
type Sorting int

// The sortings.
const (
	// Unsorted rows come in any order.
	Unsorted Sorting = iota
	// Sorted rows come in the order of the page.
	Sorted
	// RunsSorted are the rows of each run by themselves.
	RunsSorted
	// Grouped rows come in the order of the first criterion alone.
	Grouped
)

// Plan is how a query is read.
type Plan struct {
	// Named reads Query.Names one by one, and Length counts by the length of the runs: then
	// no rows are read. Otherwise the Runs are read one after the other.
	Named, Length bool
	// Rows is the length of what is counted in memory.
	Rows    int
	Runs    []Run
	Sorting Sorting
	// Exact: what is read need not be matched.
	Exact bool
	// Once: no resource is in the runs more than once.
	Once bool
	// Measured is how many runs were looked at to choose them.
	Measured int
	// only is the memory of Runs, where there is one run of a plain query: a level has hundreds.
	only [1]Run
	// how the runs of choice are read, in words.
	how    string
	choice choice
}

// Run is a run of rows in a direction.
type Run struct {
	index.Run
	Reverse bool
	// Turned: the values come in the order of the page, but the resources of one value in
	// the reverse; nil if they do not.
	Turned *Turned
}

// Turned has the runs of the single values of a run.
type Turned struct {
	// value and place are where the page begins, behind prefix; nil for the first value.
	prefix, value, place []byte
	scope                filter.Range
}

// Tied returns the part of a turned run that has one value, as far as the page can have it.
func (r *Run) Tied(value string) Run {
	t := r.Turned
	at := append(slices.Clone(t.prefix), value...)
	b := t.scope.Behind(at)
	switch place := append(at, t.place...); {
	case value != string(t.value):
	case r.Reverse: // downward, so the resources of one value are read upward
		b = b.And(filter.Range{Start: place})
	default:
		b = b.And(filter.Range{End: place})
	}
	return Run{Run: index.Run{Index: r.Index, Start: b.Start, End: b.End}, Reverse: !r.Reverse}
}

// Beyond returns what follows a value in a turned run.
func (r Run) Beyond(value string) Run {
	at := append(slices.Clone(r.Turned.prefix), value...)
	if r.Reverse {
		r.End = at
	} else {
		r.Start = backend.PrefixEnd(at)
	}
	return r
}

// Make plans how a query is read of a kind in memory; with nil, of one that is not. It
// replaces the plan before.
func (p *Plan) Make(q *Query, trees *index.Kind, w *Want) {
	switch {
	case q.Names != nil:
		*p = Plan{Named: true, Exact: !q.Filtered(), how: "names"}
		if len(q.Order) == 0 && !w.Count && !w.Total {
			p.Sorting = Sorted
		}
	case trees != nil && q.Plain(w):
		run := q.run()
		r := index.Run{Index: q.Reference, Start: run.Start, End: run.End}
		if in := &w.In; in.After != nil || in.Before != nil || in.From != nil {
			r = q.paged(w.In, r, q.parent())
		}
		*p = Plan{Sorting: Sorted, Exact: true, Once: true, how: "order of names"}
		p.only[0] = Run{Run: r, Reverse: w.Backward}
		p.Runs = p.only[:]
	default:
		by := planner{q: q, trees: trees, want: w, conditions: q.conditions()}
		*p = by.plan()
		p.Measured += by.dropped
		if trees == nil && q.Referenced() {
			p.how = "references to " + q.Parent().String()
		}
	}
}

// conditions returns all that the query keeps is to fulfil, within its places.
func (q *Query) conditions() filter.All {
	out := slices.DeleteFunc(slices.Clone(q.Filter.All), func(e filter.Condition) bool {
		t, _ := e.(filter.Test)
		return q.Namespace != "" && t.Attribute == filter.Namespace && t.Op == "eq" && bytes.Equal(t.Values[0], backend.AppendString(nil, q.Namespace))
	})
	if q.Reference != "" {
		out = append(out, filter.Test{Attribute: q.Reference, Op: "eq", Values: [][]byte{q.parent()}})
	}
	return out
}

// planner plans one query.
type planner struct {
	q          *Query
	trees      *index.Kind // nil if there is none
	want       *Want
	conditions filter.All
	// dropped is how many runs were dropped: the alternatives have too many, or one has none.
	dropped int
}

// plan chooses between the shortest choice and the order of the page.
func (p *planner) plan() Plan {
	best, ok := p.shortest(p.conditions)
	by, ordered := p.orderedBy()
	names := ordered && by == "" && !p.want.Count
	if names && ok && best.named && len(best.runs) == 1 {
		return p.alongNames(best)
	}
	if len(p.conditions) == 1 && ordered && len(p.q.Order) == 1 && p.q.places.Whole() && !p.want.Count {
		if w, ok := p.labelled(by, p.conditions[0]); ok { // nothing can be shorter
			return p.inOrder(w)
		}
	}
	out := Plan{Measured: len(best.runs)}
	all := p.everything()
	if !ok || !(best.exact && best.once) && p.rows(&best) >= p.rows(&all) {
		best, ok = all, false
	}
	rows := p.rows(&best)
	switch {
	case p.want.Count && best.exact && best.once:
		out.Length, out.Rows, out.how = true, rows, "length of "
	case p.want.Count || p.want.Total:
	case rows == 0 && p.trees != nil:
		return Plan{Measured: out.Measured, how: "nothing"}
	case names:
		if !ok || p.followed(p.rows(&all), rows) <= rows {
			return p.alongNames(all)
		}
	case ordered:
		if along, n := p.along(by); p.followed(n, rows)+p.tied(along) < rows {
			return p.inOrder(along)
		}
	}
	return p.gather(out, best)
}

// followed is how many of some rows in the order of the page are probably read until it is
// full, if so many of them are matches.
func (p *planner) followed(rows, matches int) int {
	return min((p.want.Wanted()*rows+matches-1)/matches, rows)
}

// alongNames follows a choice of one run in the order of the names. A total is counted by
// the length of what is not tested.
func (p *planner) alongNames(c choice) Plan {
	out := Plan{Sorting: Sorted, Exact: c.exact, Once: true, Length: p.want.Total, Measured: 1, how: "order of names"}
	if p.want.Total && !c.exact {
		return p.gather(Plan{Once: true}, c)
	}
	if c.runs[0].Index != "" {
		out.how, out.choice = "order of names in ", c
	}
	reverse := p.want.Backward
	if len(p.q.Order) > 0 {
		reverse = reverse != p.q.Order[0].Descending
	}
	out.Runs = []Run{{Run: p.paged(c.runs[0]), Reverse: reverse}}
	return out
}

// paged returns the part of a choice's run, in the order of the names, that the page can have.
func (p *planner) paged(r index.Run) index.Run {
	var value []byte
	if r.Index != "" {
		value = r.Start[:len(r.Start)-len(p.q.places.Start)] // as [planner.valued] made it
	}
	return p.q.paged(p.want.In, r, value)
}

// gather reads all of a choice, to count it or to keep those that the page has.
func (p *planner) gather(out Plan, c choice) Plan {
	out.Exact, out.Once, out.choice = c.exact, c.once, c
	if c.named && len(p.q.Order) == 0 && !p.want.Count && !p.want.Total {
		out.Sorting = RunsSorted
	}
	for _, r := range c.runs {
		if out.Sorting == RunsSorted {
			r = p.paged(r)
		}
		out.Runs = append(out.Runs, Run{Run: r, Reverse: p.want.Backward})
	}
	if p.trees == nil {
		out.how, out.choice = "all resources", choice{}
	}
	return out
}

// String says in words what is read.
func (p Plan) String() string {
	switch {
	case p.choice.runs != nil:
	case p.how == "order of names" && p.Runs[0].Index != "":
		return p.how + " in " + p.Runs[0].Index
	default:
		return p.how
	}
	return p.how + p.choice.String()
}

// String names the runs.
func (c choice) String() string {
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

package plan

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// orderedBy returns the index in whose order the page can be read; empty means the tree of names.
func (p *planner) orderedBy() (by string, ok bool) {
	if p.q.inNameOrder() {
		return "", true
	}
	by = p.q.Order[0].Field
	return by, by != filter.Namespace && p.trees != nil && p.trees.Has(by)
}

// walk says which rows are read in the order of a page: a whole index, or the part of a creation index
// that has one value. A creation index orders the rows of each value by the time of creation:
//
//	created              10:00 a/n2 | 10:05 b/n1 | 10:07 a/n7
//	labels by creation   app=x 10:05 b/n1 | app=x 10:07 a/n7 | app=y 10:00 a/n2
type walk struct {
	by    string // the index of the order
	index string // the index that is read
	// of is the attribute that has value, if index is its creation index.
	of    string
	value []byte // nil for all resources
	// meets is the condition, counted from 1, that wants value; 0 for all resources.
	meets int
}

// run returns the run of a range of the order.
func (w *walk) run(b filter.Range) index.Run {
	b = b.WithPrefix(w.value)
	return index.Run{Index: w.index, Start: b.Start, End: b.End}
}

// along returns the shortest walk in the order of by that holds all matches, and its number of rows.
// A walk is not limited to the query's places, so the rows of all namespaces count.
func (p *planner) along(by string) (w walk, rows int) {
	w, rows = walk{by: by, index: by}, p.length(index.Run{})
	for i, e := range p.conditions {
		if one, ok := p.byCreation(by, e); ok {
			one.meets = i + 1
			if n := p.length(index.Run{Index: one.of, Start: one.value, End: backend.PrefixEnd(one.value)}); n < rows {
				w, rows = one, n
			}
		}
	}
	return w, rows
}

// byCreation returns the walk, in the order of creation, that holds exactly the matches of a
// condition. There is one if the condition wants one value of an attribute that has a creation
// index, such as a label.
func (p *planner) byCreation(by string, e filter.Condition) (w walk, ok bool) {
	t, _ := e.(filter.Test)
	value, one := t.Equal()
	w = walk{by: by, index: index.CreationIndex(t.Attribute), of: t.Attribute, value: value}
	return w, one && by == index.CreatedIndex && p.trees.Has(w.index)
}

// tied estimates the rows that are read only because they tie with others: with several criteria, all
// rows that are equal by the first one are read. The estimate is the larger of two groups of ties, the
// first value's and the nulls'.
func (p *planner) tied(w walk) (rows int) {
	if len(p.q.Order) < 2 {
		return 0
	}
	p.trees.Scan(w.run(filter.Range{}), p.q.Order[0].Descending, func(value string, _ *index.Entry) bool {
		rows = p.length(w.run(p.q.places.WithPrefix([]byte(value))))
		return false
	})
	return max(rows, p.length(p.nulls(w.by)))
}

// nulls returns the run of resources without a value in an index.
func (p *planner) nulls(by string) index.Run {
	return index.Run{Index: index.NullIndex(by), Start: p.q.places.Start, End: p.q.places.End}
}

// walkPlan returns the plan that follows a walk from where the page begins. Values are read upward
// if the order ascends and the page is read forward, or both are reversed:
//
//	upward    nulls | values, small to large
//	downward  values, large to small | nulls
//
// A page that begins at a value skips what is read before it in that direction.
func (p *planner) walkPlan(w walk) Plan {
	out := Plan{Sorting: Sorted, Once: true, rest: p.without(w.meets), how: "order of " + w.by}
	if w.value != nil {
		out.how += ", of one value of " + w.of
	}
	// In all namespaces, and without a condition that the walk does not satisfy, every row matches.
	out.Exact = p.q.places.Whole() && (len(p.conditions) == 0 || len(p.conditions) == 1 && w.value != nil)
	single := len(p.q.Order) == 1
	if !single {
		out.Sorting = Grouped
	}
	upward := p.q.Order[0].Descending == p.want.Backward
	value, place := p.q.Order.Split(p.begin())
	nulls := Run{Run: p.nulls(w.by), Reverse: p.want.Backward}
	if place != nil && value == nil { // the page begins among the nulls
		if single {
			part := filter.Range{Start: place}
			if p.want.Backward {
				part = filter.Range{End: place}
			}
			part = part.And(filter.Range{Start: nulls.Start, End: nulls.End})
			nulls.Start, nulls.End = part.Start, part.End
		}
		out.Runs = []Run{nulls}
		if upward {
			out.Runs = append(out.Runs, p.valueRun(w, nil, nil, upward))
		}
		return out
	}
	out.Runs = []Run{p.valueRun(w, value, place, upward)}
	switch {
	case !upward:
		out.Runs = append(out.Runs, nulls)
	case place == nil:
		out.Runs = slices.Insert(out.Runs, 0, nulls)
	}
	return out
}

// begin returns the key at which the page begins in its direction; nil if it is open there.
func (p *planner) begin() []byte {
	in := &p.want.In
	switch {
	case p.want.Backward:
		return in.Before
	case in.After != nil:
		return in.After
	default:
		return in.From
	}
}

// valueRun returns the part of a walk that begins at a place among the resources of a value, or
// at the first value. It is limited to the values that the conditions want.
func (p *planner) valueRun(w walk, value, place []byte, upward bool) Run {
	var b filter.Range
	single := len(p.q.Order) == 1
	// Ties are in name order, whichever the order of the values is. So names are read upward
	// on a forward page: if values are read downward, each group of ties has to be reversed.
	turned := single && upward == p.want.Backward
	if !p.many(w.by) {
		b, _ = p.q.Filter.Range(w.by)
	}
	at := value
	if single && !turned {
		at = append(slices.Clone(value), place...)
	}
	switch {
	case value == nil:
	case upward:
		b = b.And(filter.Range{Start: at})
	case single && !turned:
		b = b.And(filter.Range{End: at})
	default:
		b = b.And(filter.Range{End: backend.PrefixEnd(value)})
	}
	out := Run{Run: w.run(b), Reverse: !upward}
	if turned {
		out.ReversedTies = &ReversedTies{prefix: w.value, value: value, place: place, scope: p.q.places}
	}
	return out
}

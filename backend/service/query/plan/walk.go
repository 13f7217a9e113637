package plan

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// orderedBy returns the index that has the order of the page; "" is the tree of names. ok is false if no index has this
// order.
func (p *planner) orderedBy() (by string, ok bool) {
	if p.q.inNameOrder() {
		return "", true
	}
	by = p.q.Order[0].Field
	return by, by != filter.Namespace && p.trees != nil && p.trees.Has(by)
}

// walk describes which rows are read in the order of a page: a whole index, or the part of a creation index with one
// value. A creation index orders the rows of each value by the time of creation:
//
//	created              10:00 a/n2 | 10:05 b/n1 | 10:07 a/n7
//	labels by creation   app=x 10:05 b/n1 | app=x 10:07 a/n7 | app=y 10:00 a/n2
type walk struct {
	by    string // the index of the order
	index string // the index that is read
	// of is the attribute to which value belongs, if index is a creation index.
	of    string
	value []byte // nil for all resources
	// meets is the number, counted from 1, of the condition that requires value. It is 0 if the walk reads a whole
	// index.
	meets int
}

// run returns the part of the walk that is in a range of values.
func (w *walk) run(b filter.Range) index.Run {
	b = b.WithPrefix(w.value)
	return index.Run{Index: w.index, Start: b.Start, End: b.End}
}

// along returns the shortest walk that is in the order of by and contains all matches, and the number of its rows. A
// walk is not restricted to the places of the query, so it contains rows of all namespaces.
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

// byCreation returns the walk in the order of creation that contains exactly the matches of a condition. ok is true
// only if by is the creation time, and the condition requires one value of an attribute with a creation index, such as
// a label.
func (p *planner) byCreation(by string, e filter.Condition) (w walk, ok bool) {
	t, _ := e.(filter.Test)
	value, one := t.Equal()
	w = walk{by: by, index: index.CreationIndex(t.Attribute), of: t.Attribute, value: value}
	return w, one && by == index.CreatedIndex && p.trees.Has(w.index)
}

// tied estimates how many additional rows are read because rows are equal by the first of several criteria. It returns
// the number of rows with the first value or without a value, whichever is larger.
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

// nulls returns the run of the resources that have no value in an index.
func (p *planner) nulls(by string) index.Run {
	return index.Run{Index: index.NullIndex(by), Start: p.q.places.Start, End: p.q.places.End}
}

// walkPlan returns the plan that reads a walk from the beginning of the page. Values are read upward if the order
// ascends and the page is read forward, or if the order descends and the page is read backward:
//
//	upward    nulls | values, small to large
//	downward  values, large to small | nulls
//
// If the page begins at a value, the runs before that value are left out.
func (p *planner) walkPlan(w walk) Plan {
	out := Plan{Sorting: Sorted, Once: true, rest: p.without(w.meets), how: "order of " + w.by}
	if w.value != nil {
		out.how += ", of one value of " + w.of
	}
	// Without a namespace, and without a condition besides the one that the walk requires, every row matches.
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

// begin returns the sort key at which the page begins in its direction; nil if the page has no bound there.
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

// valueRun returns the part of a walk that has values and that the conditions allow. It begins at place among the
// resources with value, or at the first value if value is nil.
func (p *planner) valueRun(w walk, value, place []byte, upward bool) Run {
	var b filter.Range
	single := len(p.q.Order) == 1
	// On a page, ties are in ascending order of names, even if the values descend. So a forward page needs them upward,
	// and a backward page downward. If the values are read in the other direction, each group of ties must be reversed.
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

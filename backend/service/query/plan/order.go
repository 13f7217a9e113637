package plan

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// orderedBy returns the index in whose order the page can be read; empty is that of the names.
func (p *planner) orderedBy() (by string, ok bool) {
	if p.q.inNames() {
		return "", true
	}
	by = p.q.Order[0].Field
	return by, by != filter.Namespace && p.trees != nil && p.trees.Has(by)
}

// walk is the rows of an index in the order of a page, or those of one value of another index
// in that order.
type walk struct {
	by, index string
	// of is the other index, and value the value; nil for all resources.
	of    string
	value []byte
}

func (w *walk) run(b filter.Range) index.Run {
	b = b.Behind(w.value)
	return index.Run{Index: w.index, Start: b.Start, End: b.End}
}

// along returns the shortest walk in the order of an index that has all that the query keeps,
// and how many rows it has, in all namespaces.
func (p *planner) along(by string) (w walk, rows int) {
	w, rows = walk{by: by, index: by}, p.trees.Len(index.Run{})
	for _, e := range p.conditions {
		if one, ok := p.labelled(by, e); ok {
			if n := p.trees.Len(index.Run{Index: one.of, Start: one.value, End: backend.PrefixEnd(one.value)}); n < rows {
				w, rows = one, n
			}
		}
	}
	return w, rows
}

// labelled returns the walk in the order of creation that has just what a condition keeps:
// there is one for each label.
func (p *planner) labelled(by string, e filter.Condition) (w walk, ok bool) {
	t, _ := e.(filter.Test)
	value, one := t.Equal()
	w = walk{by, index.CreationIndex(t.Attribute), t.Attribute, value}
	return w, one && by == index.CreatedIndex && p.trees.Has(w.index)
}

// tied is how many rows have the first value of a walk, all of which are read if others of
// the order's criteria decide among them.
func (p *planner) tied(w walk) (rows int) {
	if len(p.q.Order) < 2 {
		return 0
	}
	p.trees.Scan(w.run(filter.Range{}), p.q.Order[0].Descending, func(value string, _ *index.Entry) bool {
		rows = p.trees.Len(w.run(p.q.places.Behind([]byte(value))))
		return false
	})
	return max(rows, p.trees.Len(p.nulls(w.by)))
}

// nulls is the run of those without a value in an index.
func (p *planner) nulls(by string) index.Run {
	return index.Run{Index: index.NullIndex(by), Start: p.q.places.Start, End: p.q.places.End}
}

// inOrder follows the order of a walk, from where the page begins: those without a value
// come before all values, or after them if the order descends.
func (p *planner) inOrder(w walk) Plan {
	out := Plan{Sorting: Sorted, Once: true, Measured: 1, how: "order of " + w.by}
	if w.value != nil {
		out.how += ", of one value of " + w.of
	}
	// Without other conditions, and in all namespaces, the walk has nothing else.
	out.Exact = p.q.places.Whole() && (len(p.conditions) == 0 || len(p.conditions) == 1 && w.value != nil)
	single := len(p.q.Order) == 1
	if !single {
		out.Sorting = Grouped
	}
	upward := p.q.Order[0].Descending == p.want.Backward
	value, place := p.q.Order.Split(p.begin())
	nulls := Run{Run: p.nulls(w.by), Reverse: p.want.Backward}
	if place != nil && value == nil { // among those without a value
		if single {
			nulls.Run = paged(nulls.Run, place, p.want.Backward)
		}
		if out.Runs = []Run{nulls}; upward {
			out.Runs = append(out.Runs, p.values(w, nil, nil, upward))
		}
		return out
	}
	out.Runs = []Run{p.values(w, value, place, upward)}
	switch {
	case !upward:
		out.Runs = append(out.Runs, nulls)
	case place == nil:
		out.Runs = slices.Insert(out.Runs, 0, nulls)
	}
	return out
}

// begin is the key at which the page begins in its direction; nil if there is none.
func (p *planner) begin() []byte {
	switch in := &p.want.In; {
	case p.want.Backward:
		return in.Before
	case in.After != nil:
		return in.After
	default:
		return in.From
	}
}

// values is the run of a walk that begins with a value and a place of it, or with the first
// value. It has the values that the conditions want.
func (p *planner) values(w walk, value, place []byte, upward bool) Run {
	var b filter.Range
	single := len(p.q.Order) == 1
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
		out.Turned = &Turned{w.value, value, place, p.q.places}
	}
	return out
}

// paged returns what a run of places has from one on, or backward up to it.
func paged(r index.Run, place []byte, backward bool) index.Run {
	b := filter.Range{Start: place}
	if backward {
		b = filter.Range{End: place}
	}
	b = filter.Range{Start: r.Start, End: r.End}.And(b)
	return index.Run{Index: r.Index, Start: b.Start, End: b.End}
}

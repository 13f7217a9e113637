package query

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
)

// part is a run that a scan reads from a store.
type part struct {
	// left is what is still to be read, and limit how much of it a step asks for.
	left  backend.Range
	limit int
	// value is that of all rows, if they have one; nil of the names.
	value []byte
	done  bool
}

// leastStep is the least that a step asks for of a part.
const leastStep = 16

// divide makes the parts of a route, each as far as the page can have it.
func (sc *scan) divide() {
	rt := &sc.route
	scope := sc.query.places()
	sorted := rt.named && len(sc.query.order) == 0
	limit := max(scanStep/max(len(rt.runs), 1), leastStep)
	if rt.step > 0 {
		limit = min(max(rt.step, leastStep), scanStep)
	}
	for _, run := range rt.runs {
		p := part{limit: limit}
		if rt.named && run.Index != "" {
			p.value = run.Start[:len(run.Start)-len(scope.start)] // as [chooser.valued] made it
		}
		if n, known := sc.measures.known[keyOf(run)]; known && !rt.streams && rt.by == "" {
			p.limit = min(max(n, 1), backend.MaxLimit)
			if len(rt.runs) > 1 || n > scanStep {
				p.limit = min(p.limit, limit)
			}
		}
		reverse := sc.backward && (sorted || rt.streams)
		switch {
		case rt.by != "":
			reverse = sc.query.order[0].Descending != sc.backward
			run = sc.orderedRun(run)
		case rt.streams && len(sc.query.order) > 0:
			reverse = sc.query.order[0].Descending != sc.backward
			fallthrough
		case rt.streams, sorted && !sc.counting:
			run = sc.query.order.paged(sc.in, run, p.value)
		}
		p.left = backend.Range{Kind: sc.query.kind.Name, Namespace: sc.query.namespace, Index: run.Index, Start: run.Start, End: run.End, Reverse: reverse}
		sc.parts = append(sc.parts, p)
	}
}

// request is what the next step reads of a part.
func (sc *scan) request(p *part) backend.Range {
	r := p.left
	r.Limit = p.limit
	if r.Bare = sc.plain(); r.Bare {
		r.Limit = min(sc.wanted()-len(sc.found), backend.MaxLimit)
	}
	return r
}

// advance moves a part behind the last resource of a page. Where rows may have several
// values the place is that of the row which was read; false if there is no such row.
func (sc *scan) advance(p *part, page []*backend.Resource) bool {
	last := page[len(page)-1]
	at := backend.OrderTuple(last.Namespace, last.Name)
	switch {
	case sc.route.named:
		at = append(slices.Clone(p.value), at...)
	case p.left.Index != "":
		met := 0 // how often the page has the resource: once for each of its rows up to the last one
		for _, r := range page {
			if r.Key == last.Key {
				met++
			}
		}
		value := rowValue(last, p.left, met)
		if value == nil {
			return false
		}
		at = append(value, at...)
	}
	if p.left.Reverse {
		p.left.End = at
	} else {
		p.left.Start = backend.Successor(at)
	}
	return true
}

// rowValue is the value of the n-th row, from 1, by which a range met a resource.
func rowValue(r *backend.Resource, in backend.Range, n int) []byte {
	var values [][]byte
	for _, row := range r.Rows {
		full := append(slices.Clone(row.Value), backend.OrderTuple(r.Namespace, r.Name)...)
		if row.Index == in.Index && string(full) >= string(in.Start) && (in.End == nil || string(full) < string(in.End)) {
			values = append(values, row.Value)
		}
	}
	if len(values) == 0 {
		return nil
	}
	slices.SortFunc(values, bytes.Compare)
	if n = min(n, len(values)); in.Reverse {
		n = len(values) + 1 - n
	}
	return slices.Clone(values[n-1])
}

// orderedRun is the part of a run, in whose order the page is read, that it can have.
func (sc *scan) orderedRun(r index.Run) index.Run {
	var page bounds
	first := sc.query.order[0]
	from, to := sc.in.after, sc.in.before
	if from == nil {
		from = sc.in.from
	}
	if first.Descending {
		from, to = to, from
	}
	if from != nil {
		page.start = first.value(from) // nil, which is open, if it is null
	}
	if to != nil {
		if value := first.value(to); value != nil {
			page.end = backend.PrefixEnd(value)
		}
	}
	page = page.and(bounds{r.Start, r.End})
	r.Start, r.End = page.start, page.end
	return r
}

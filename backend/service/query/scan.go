package query

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// scanStep is how many resources one step of a scan that filters or sorts reads.
const scanStep = 500

// scan reads the part of a query that a page wants, step by step: request is
// what the next step reads and take what it brought.
type scan struct {
	query    *query
	in       interval
	backward bool
	size     int
	// ahead says to look whether there is more than size.
	ahead    bool
	counting bool

	r backend.Range
	// keys are those that are still to be read, if the query names its resources.
	keys  []backend.Key
	done  bool
	count int
	// looked is how many resources were read.
	looked int
	more   bool
	found  []Edge
	// arena is what bodies are read to.
	arena *body.Arena
	// places are where a step asks for the keys, see [Reader.ask].
	places []int
	// seen are the keys already met, in a run that may name a resource more than once.
	seen map[backend.Key]bool
	// nearest says that what was found is not in order.
	nearest bool
	// unreadable are those that an earlier run of this scan kept and could not read.
	unreadable map[backend.Key]bool
}

// begin prepares the first step.
func (sc *scan) begin() {
	if sc.size == 0 && !sc.ahead && !sc.counting {
		sc.done = true
		return
	}
	if sc.nearest = !sc.query.streams(); sc.query.names != nil {
		sc.keys = sc.query.keys(sc.in)
		if sc.backward && sc.query.streams() {
			slices.Reverse(sc.keys)
		}
		return
	}
	sc.r = sc.query.source(sc.in)
	sc.r.Reverse = sc.backward && sc.query.streams()
	if sc.query.repeats() {
		sc.seen = map[backend.Key]bool{}
	}
}

// request is the range of the next step.
func (sc *scan) request() backend.Range {
	sc.r.Limit = scanStep
	if sc.r.Bare = sc.plain(); sc.r.Bare {
		sc.r.Limit = sc.size - len(sc.found)
		if sc.ahead {
			sc.r.Limit = min(sc.r.Limit+1, backend.MaxLimit)
		}
	}
	return sc.r
}

// take judges what a step brought.
func (sc *scan) take(r *Reader, page backend.Page) {
	if sc.found == nil {
		sc.found = make([]Edge, 0, min(len(page.Resources), sc.size))
	}
	for _, stored := range page.Resources {
		if sc.judge(r, stored) {
			return
		}
	}
	switch {
	case !page.More || len(page.Resources) == 0 && sc.query.names == nil:
		sc.done = true
		sc.readFound(r)
	case sc.query.names == nil:
		sc.advance(page.Resources)
	}
}

// judge looks at one resource and says whether the scan has all it wants.
func (sc *scan) judge(r *Reader, stored *backend.Resource) bool {
	if sc.plain() {
		return sc.add(r, stored, nil)
	}
	v, err := IndexedOf(sc.query.kind, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return false
	}
	if !sc.query.match(v) {
		return false
	}
	if sc.seen != nil {
		if sc.seen[stored.Key] {
			return false
		}
		sc.seen[stored.Key] = true
	}
	if sc.counting {
		if _, err := sc.arena.Read(sc.query.kind.Body, stored); err != nil {
			r.unreadable.Note(stored, err)
		} else {
			sc.count++
		}
		return false
	}
	key := sc.query.order.key(v)
	if !sc.in.holds(key) {
		return false
	}
	if !sc.query.streams() {
		if !sc.unreadable[stored.Key] {
			sc.keepNearest(Edge{key: key, Resource: Resource{Stored: stored}})
		}
		return false
	}
	return sc.add(r, stored, key)
}

// plain says that the source holds just what the page wants, in its order.
func (sc *scan) plain() bool {
	q := sc.query
	return !sc.counting && (!q.filtered() || q.whole) && q.streams()
}

// add takes a match of a scan that is in order, and says whether it has all it wants.
func (sc *scan) add(r *Reader, stored *backend.Resource, key []byte) bool {
	b, err := sc.arena.Read(sc.query.kind.Body, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return false
	}
	return sc.keep(Edge{key: key, Resource: Resource{Stored: stored, Body: b}})
}

// keep puts a match on the page, and says whether the scan has all it wants.
func (sc *scan) keep(e Edge) bool {
	if len(sc.found) == sc.size {
		sc.more, sc.done = true, true
		return true
	}
	sc.found = append(sc.found, e)
	sc.done = !sc.ahead && len(sc.found) == sc.size
	return sc.done
}

// advance moves the range behind the last resource of a page. In an index run
// that may have other values the place is that of the row which was read.
func (sc *scan) advance(page []*backend.Resource) {
	last := page[len(page)-1]
	at := backend.OrderTuple(last.Namespace, last.Name)
	if run := sc.query.run; run != nil && run.exact {
		at = append(slices.Clone(run.start), at...)
	} else if run != nil {
		met := 0 // how often the page has the resource: once for each of its rows up to the last one
		for _, r := range page {
			if r.Key == last.Key {
				met++
			}
		}
		value := run.rowValue(last, sc.r, met)
		if value == nil { // the store showed a row that the resource does not have
			sc.withoutRun()
			return
		}
		at = append(value, at...)
	}
	if sc.r.Reverse {
		sc.r.End = at
	} else {
		sc.r.Start = backend.Successor(at)
	}
}

// rowValue is the value of the n-th row, from 1, by which a range met a resource.
func (c *candidate) rowValue(r *backend.Resource, in backend.Range, n int) []byte {
	var values [][]byte
	for _, row := range r.Rows {
		full := append(slices.Clone(row.Value), backend.OrderTuple(r.Namespace, r.Name)...)
		if row.Index == c.index && string(full) >= string(in.Start) && (in.End == nil || string(full) < string(in.End)) {
			values = append(values, row.Value)
		}
	}
	if len(values) == 0 {
		return nil
	}
	slices.SortFunc(values, bytes.Compare)
	return slices.Clone(values[min(n, len(values))-1])
}

// finish puts the matches on the page, in the order of the query.
func (sc *scan) finish(p *Page) {
	switch {
	case sc.nearest:
		sc.sortNearest()
	case sc.backward:
		slices.Reverse(sc.found)
	}
	p.cut, p.ahead = sc.more, sc.ahead || len(sc.found) < sc.size
	p.Edges = sc.found
}

// withoutRun begins the scan anew over the range of the names.
func (sc *scan) withoutRun() {
	q := *sc.query
	q.run, q.whole = nil, false
	*sc = scan{query: &q, in: sc.in, backward: sc.backward, size: sc.size, ahead: sc.ahead, counting: sc.counting, arena: sc.arena}
	sc.begin()
}

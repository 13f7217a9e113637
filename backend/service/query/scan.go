package query

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
)

// scan reads what a page or a count wants of a query: from the index in memory, or from a
// store step by step, in the order of the names or of what refers to a parent.
type scan struct {
	query    *query
	in       interval
	backward bool
	size     int
	// ahead says to look whether there is more than size.
	ahead bool
	// counting says to count instead of finding, and total to do both.
	counting, total bool
	// countsFirst says that the store tells the number with the first step, since the query
	// keeps all that it is about.
	countsFirst bool

	// left is what is still to be read of a store, and streams says that it is in the order
	// of the page.
	left    backend.Range
	streams bool
	// keys are those that are still to be read, if the query names its resources.
	keys  []backend.Key
	done  bool
	count int
	// looked is how many resources were read, and tests how many steps their filter took
	// that are not paid for.
	looked, tests int
	more          bool
	found         []Edge
	// arena is what bodies are read to.
	arena *body.Arena
	// places are where a step asks for the keys, see [Reader.ask].
	places []int
	// nearest says that what was found is not in order.
	nearest bool
	// unreadable are those that an earlier run of this scan kept and could not read.
	unreadable map[backend.Key]bool
}

// scanStep is how many resources a step reads of a store that need not be all on the page.
const scanStep = 500

// leastStep is the least that a step reads of what refers to a parent.
const leastStep = 16

// begin prepares the first step.
func (sc *scan) begin() {
	if sc.size == 0 && !sc.ahead && !sc.counting && !sc.total {
		sc.done = true
		return
	}
	q := sc.query
	if q.names != nil {
		sc.nearest = len(q.order) > 0 && !sc.counting
		in := sc.in
		if sc.counting || sc.total {
			in = interval{}
		}
		sc.keys = q.keys(in)
		if sc.backward && !sc.nearest {
			slices.Reverse(sc.keys)
		}
		return
	}
	if (sc.counting || sc.total) && !q.filtered() {
		sc.countsFirst, sc.total = true, false
	}
	b := q.places()
	run := index.Run{Start: b.start, End: b.end}
	if sc.streams = q.inNames() && !sc.counting; sc.streams && !sc.total {
		run = q.order.paged(sc.in, run, nil)
	}
	sc.nearest = !sc.streams && !sc.counting
	sc.left = backend.Range{Kind: q.kind.Name, Namespace: q.namespace, Start: run.Start, End: run.End}
	if sc.left.Reverse = sc.streams && sc.backward; sc.streams && len(q.order) > 0 {
		sc.left.Reverse = q.order[0].Descending != sc.backward
	}
	if q.refers() {
		sc.left.Referenced, sc.left.Namespace = &q.parentKey, ""
		sc.left.Start, sc.left.End = sc.behind(run.Start), sc.behind(run.End)
	}
}

// counted says that the scan is done once the store has told a number.
func (sc *scan) counted() bool {
	return !sc.query.filtered() && sc.query.names == nil && (sc.counting || sc.size == 0 && !sc.ahead)
}

// behind is a bound of the names among what refers to a parent, which is in the order of
// kinds before that of the names.
func (sc *scan) behind(bound []byte) []byte {
	if bound == nil {
		return nil
	}
	return append(backend.AppendString(nil, sc.query.kind.Name), bound...)
}

// request is what the next step reads.
func (sc *scan) request() backend.Range {
	r := sc.left
	r.Limit = scanStep
	switch r.Bare = sc.plain(); {
	case r.Bare:
		r.Limit = min(sc.wanted()-len(sc.found), backend.MaxLimit)
	case sc.streams && !sc.total && sc.query.refers() && sc.query.filter.all == nil: // nearly all are wanted
		r.Limit = min(max(sc.wanted()-len(sc.found), leastStep), scanStep)
	}
	return r
}

// plain says that what is read is just what the page wants, in its order.
func (sc *scan) plain() bool {
	q := sc.query
	return !sc.counting && !sc.total && !q.filtered() && len(q.order) == 0
}

// take judges what a step brought.
func (sc *scan) take(r *Reader, page backend.Page) {
	if sc.found == nil {
		sc.found = make([]Edge, 0, min(len(page.Resources), sc.size))
	}
	for _, stored := range page.Resources {
		if sc.done = sc.judge(r, stored); sc.done {
			return
		}
	}
	if !page.More || len(page.Resources) == 0 {
		sc.end(r)
		return
	}
	last := page.Resources[len(page.Resources)-1]
	at := backend.OrderTuple(last.Namespace, last.Name)
	if sc.left.Referenced != nil {
		at = sc.behind(at)
	}
	if sc.left.Reverse {
		sc.left.End = at
	} else {
		sc.left.Start = backend.Successor(at)
	}
}

// end is reached when there is nothing more to read.
func (sc *scan) end(r *Reader) {
	sc.done = true
	sc.readFound(r)
}

// judge looks at one resource and says whether the scan has all that it wants.
func (sc *scan) judge(r *Reader, stored *backend.Resource) bool {
	b, err := sc.arena.Read(sc.query.kind.Body, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return false
	}
	if sc.plain() {
		return sc.keep(Edge{Resource: Resource{Stored: stored, Body: b}})
	}
	v := indexedOf(sc.query.kind, b)
	kept := sc.query.match(v)
	sc.tests += v.tests
	if !kept {
		return false
	}
	if sc.counting || sc.total {
		sc.count++
	}
	key := sc.query.order.key(v)
	if sc.counting || !sc.in.holds(key) {
		return false
	}
	if sc.nearest {
		if !sc.unreadable[stored.Key] {
			sc.keepNearest(Edge{key: key, Resource: Resource{Stored: stored}})
		}
		return false
	}
	return sc.keep(Edge{key: key, Resource: Resource{Stored: stored, Body: b}}) && !sc.total
}

// keep puts a match on the page, and says whether the scan has all it wants.
func (sc *scan) keep(e Edge) bool {
	if len(sc.found) == sc.size {
		sc.more = true
		return true
	}
	sc.found = append(sc.found, e)
	return !sc.ahead && len(sc.found) == sc.size
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

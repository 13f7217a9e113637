package query

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
)

// scanStep is how many resources one step of a scan that filters or sorts reads.
const scanStep = 500

// scan reads the part of a query that a page wants, from a store step by step: its
// parts say what the next step reads, and take takes what that brought.
type scan struct {
	query    *query
	in       interval
	backward bool
	size     int
	// ahead says to look whether there is more than size.
	ahead    bool
	counting bool

	route route
	// measures are what the route was chosen by, and known what was measured before.
	measures measures
	known    map[runKey]int
	parts    []part
	// begun is how often the scan has begun.
	begun int
	// widened says that it has begun anew by whole steps.
	widened bool
	// checked says that nothing is without a value of the index in whose order it is read.
	checked bool
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
	// seen are the keys already met, where rows may name a resource more than once.
	seen map[backend.Key]bool
	// nearest says that what was found is not in order.
	nearest bool
	// unreadable are those that an earlier run of this scan kept and could not read.
	unreadable map[backend.Key]bool
}

// begin prepares the first step.
func (sc *scan) begin() {
	sc.begun++
	sc.parts, sc.checked = nil, false
	if sc.size == 0 && !sc.ahead && !sc.counting {
		sc.done = true
		return
	}
	if sc.query.names != nil {
		sc.nearest = len(sc.query.order) > 0
		sc.keys = sc.query.keys(sc.in)
		if sc.backward && !sc.nearest {
			slices.Reverse(sc.keys)
		}
		return
	}
	sc.nearest = !sc.route.streams
	// Each step reads a state of its own: between two of them a resource may get a row that
	// is still to be read.
	rows := slices.ContainsFunc(sc.route.runs, func(r index.Run) bool { return r.Index != "" })
	if sc.seen = nil; !sc.route.once || sc.nearest && rows {
		sc.seen = map[backend.Key]bool{}
	}
	sc.divide()
	sc.done = len(sc.parts) == 0 // the filter keeps nothing, whatever there is
}

// take judges what a step brought of a part.
func (sc *scan) take(r *Reader, p *part, page backend.Page) {
	if sc.found == nil {
		sc.found = make([]Edge, 0, min(len(page.Resources), sc.size))
	}
	for _, stored := range page.Resources {
		if p.done = sc.judge(r, stored); p.done {
			break
		}
	}
	switch {
	case sc.done:
	case p.done || !page.More || len(page.Resources) == 0:
		p.done = true
		if !slices.ContainsFunc(sc.parts, func(p part) bool { return !p.done }) {
			sc.end(r)
		}
	case !sc.advance(p, page.Resources):
		sc.withoutRuns() // the store showed a row that the resource does not have
	}
}

// end is reached when there is nothing more to read.
func (sc *scan) end(r *Reader) {
	if sc.route.by != "" && !sc.route.valued && !sc.route.nullsFirst && len(sc.found) < sc.wanted() {
		sc.withoutRuns() // the page goes on with those that have no value
		return
	}
	sc.done = true
	sc.readFound(r)
}

// judge looks at one resource and says whether the part has all that the scan wants of it.
func (sc *scan) judge(r *Reader, stored *backend.Resource) bool {
	if sc.plain() {
		return sc.add(r, stored, nil)
	}
	v, err := IndexedOf(sc.query.kind, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return false
	}
	kept := sc.query.match(v)
	sc.tests += v.tests
	if !kept {
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
	if sc.nearest {
		return !sc.unreadable[stored.Key] && sc.keepNearest(Edge{key: key, Resource: Resource{Stored: stored}})
	}
	return sc.add(r, stored, key)
}

// plain says that what is read is just what the page wants, in its order.
func (sc *scan) plain() bool {
	q := sc.query
	exact := q.names != nil && !q.filtered() || q.names == nil && sc.route.exact && sc.route.streams
	return !sc.counting && exact && len(q.order) == 0
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

// withoutRuns begins the scan anew over the range of the names.
func (sc *scan) withoutRuns() {
	all := (&chooser{q: sc.query, scope: sc.query.places()}).all()
	all.exact = !sc.query.filtered()
	sc.route = sc.inNames(all)
	sc.found, sc.count, sc.more = nil, 0, false
	sc.begin()
}

// widen begins a scan anew by whole steps, if it was expected to end within a smaller one
// and did not: so that a page for which no more than a whole step has to be read is
// of one state of the store.
func (sc *scan) widen() {
	if sc.done || sc.widened || sc.query.names != nil || sc.plain() || sc.route.step == 0 || sc.route.step >= scanStep {
		return
	}
	sc.widened, sc.route.step = true, scanStep
	sc.found, sc.count, sc.more = nil, 0, false
	sc.begin()
}

// beyond says whether a place that is not among the nearest ends a part: what follows in
// it lies farther away.
func (sc *scan) beyond(key []byte) bool {
	switch {
	case sc.route.by != "":
		n := 1 + len(sc.query.order[0].value(key))
		return !bytes.HasPrefix(sc.found[0].key, key[:n])
	case len(sc.query.order) == 0:
		return sc.route.named
	}
	return false
}

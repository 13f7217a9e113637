package service

import (
	"bytes"
	"container/heap"
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
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
	counting bool

	r backend.Range
	// keys are those that are still to be read, if the query names its resources.
	keys  []backend.Key
	done  bool
	read  int
	count int
	more  bool
	found []hit
	// objects are what scans of the same step have decoded, nil if they share nothing.
	objects map[*backend.Resource]backend.Object
	// seen are the keys already met, in a run that may name a resource more than once.
	seen map[backend.Key]bool
	// unreadable are those that an earlier run of this scan kept and could not decode.
	unreadable map[backend.Key]bool
}

// hit is a resource that matches, and its place in the order.
type hit struct {
	key    []byte
	stored *backend.Resource
	object backend.Object
}

func newScan(q *query, in interval, backward bool, size int) *scan {
	sc := &scan{query: q, in: in, backward: backward, size: size}
	sc.begin()
	return sc
}

func (sc *scan) begin() {
	if sc.query.names != nil {
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
	if sc.plain() {
		// One more than wanted says whether there is more.
		sc.r.Limit = min(sc.size-len(sc.found)+1, backend.MaxLimit)
	}
	return sc.r
}

// take judges what a step brought.
func (sc *scan) take(s *Service, page backend.Page) error {
	for _, stored := range page.Resources {
		if sc.read++; sc.read > s.cfg.ScanBudget {
			return &Error{
				Code: CodeLimitExceeded, Kind: sc.query.kind.Name,
				Message: "the query looks at more resources than it may; narrow it by a namespace, or by a filter on an indexed field",
			}
		}
		if sc.judge(s, stored) {
			return nil
		}
	}
	switch {
	case !page.More || len(page.Resources) == 0 && sc.query.names == nil:
		sc.done = true
		sc.decodeFound(s)
	case sc.query.names == nil:
		sc.advance(page.Resources)
	}
	return nil
}

// judge looks at one resource and says whether the scan has all it wants.
func (sc *scan) judge(s *Service, stored *backend.Resource) bool {
	if sc.plain() && len(sc.query.order) == 0 {
		return sc.add(s, hit{stored: stored})
	}
	v, err := sc.query.kind.indexedResource(stored)
	if err != nil {
		s.noteUnreadable(stored, err)
		return false
	}
	if sc.query.filter != nil && !sc.query.filter.match(v) {
		return false
	}
	if sc.seen != nil {
		if sc.seen[stored.Key] {
			return false
		}
		sc.seen[stored.Key] = true
	}
	if sc.counting {
		if _, err := sc.query.kind.decode(stored); err != nil {
			s.noteUnreadable(stored, err)
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
			sc.keepNearest(hit{key: key, stored: stored})
		}
		return false
	}
	return sc.add(s, hit{key: key, stored: stored})
}

// plain says that the source holds just what the page wants, in its order.
func (sc *scan) plain() bool {
	q := sc.query
	return !sc.counting && (q.filter == nil || q.whole) && q.streams()
}

// add takes a match of a scan that is in order, and says whether it has all it wants.
func (sc *scan) add(s *Service, h hit) bool {
	if h.object = sc.objects[h.stored]; h.object == nil {
		var err error
		if h.object, err = sc.query.kind.decode(h.stored); err != nil {
			s.noteUnreadable(h.stored, err)
			return false
		}
		if sc.objects != nil {
			sc.objects[h.stored] = h.object
		}
	}
	if len(sc.found) == sc.size {
		sc.more, sc.done = true, true
		return true
	}
	sc.found = append(sc.found, h)
	return false
}

// keepNearest adds a match to those of a scan that is not in order.
func (sc *scan) keepNearest(h hit) {
	heap.Push(sc, h)
	if len(sc.found) > sc.size {
		heap.Pop(sc)
		sc.more = true
	}
}

// decodeFound decodes what a scan that is not in order has kept. If something of it
// is unreadable, the scan begins anew without it, so that the page is full.
func (sc *scan) decodeFound(s *Service) {
	if sc.query.streams() {
		return
	}
	for i := range sc.found {
		h := &sc.found[i]
		var err error
		if h.object, err = sc.query.kind.decode(h.stored); err != nil {
			s.noteUnreadable(h.stored, err)
			if sc.unreadable == nil {
				sc.unreadable = map[backend.Key]bool{}
			}
			sc.unreadable[h.stored.Key] = true
			sc.done = false
		}
	}
	if !sc.done {
		sc.found, sc.more = nil, false
		sc.begin()
	}
}

// advance moves the range behind the last resource of a page. In an index run
// that may have other values the place is that of the row which was read.
func (sc *scan) advance(page []*backend.Resource) {
	last := page[len(page)-1]
	at := backend.OrderTuple(last.Namespace, last.Name)
	if run := sc.query.run; run != nil {
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
	case !sc.query.streams():
		slices.SortFunc(sc.found, func(a, b hit) int { return bytes.Compare(a.key, b.key) })
	case sc.backward:
		slices.Reverse(sc.found)
	}
	p.cut = sc.more
	p.Edges = make([]Edge, len(sc.found))
	resources := make([]Resource, len(sc.found))
	for i, h := range sc.found {
		resources[i] = Resource{Stored: h.stored, Object: h.object}
		p.Edges[i] = Edge{key: h.key, Resource: &resources[i]}
	}
}

// The heap has the match on top that is the first to go: the farthest in the
// direction of the page.
var _ heap.Interface = (*scan)(nil)

// Len is part of [heap.Interface].
func (sc *scan) Len() int { return len(sc.found) }

// Less is part of [heap.Interface].
func (sc *scan) Less(i, j int) bool {
	c := slices.Compare(sc.found[i].key, sc.found[j].key)
	if sc.backward {
		return c < 0
	}
	return c > 0
}

// Swap is part of [heap.Interface].
func (sc *scan) Swap(i, j int) { sc.found[i], sc.found[j] = sc.found[j], sc.found[i] }

// Push is part of [heap.Interface].
func (sc *scan) Push(x any) { sc.found = append(sc.found, x.(hit)) }

// Pop is part of [heap.Interface].
func (sc *scan) Pop() any {
	last := sc.found[len(sc.found)-1]
	sc.found = sc.found[:len(sc.found)-1]
	return last
}

// withoutRun begins the scan anew over the range of the names.
func (sc *scan) withoutRun() {
	q := *sc.query
	q.run, q.whole = nil, false
	counting := sc.counting
	*sc = *newScan(&q, sc.in, sc.backward, sc.size)
	sc.counting = counting
}

// maxStepScans is how many scans take part in one step: with their guards they
// fit one call.
const maxStepScans = backend.MaxRanges / 3

// runScans reads until all scans are done. The next steps of all are one call.
// The errors are parallel to the scans.
func (s *Service) runScans(ctx context.Context, scans []*scan) []error {
	errs := make([]error, len(scans))
	for {
		var active []int
		var ranges []backend.Range
		var named []int
		var g guards
		for i, sc := range scans {
			switch {
			case sc.done || errs[i] != nil:
			case sc.query.names != nil:
				named = append(named, i)
			case len(active) < maxStepScans:
				active = append(active, i)
				ranges = append(ranges, sc.request())
				g.add(sc)
			}
		}
		if len(named) > 0 {
			s.stepNamed(ctx, scans, named, errs)
		}
		switch {
		case len(active) == 0 && len(named) == 0:
			return errs
		case len(active) == 0:
			continue
		}
		pages, err := backend.Ranges(ctx, s.cfg.Store, append(ranges, g.ranges()...))
		var stale []*kind
		if err == nil {
			stale = g.note(pages[len(active):])
		}
		for n, i := range active {
			switch sc := scans[i]; {
			case err != nil:
				errs[i] = translate(err, backend.Key{Kind: sc.query.kind.Name})
			case sc.query.run != nil && slices.Contains(stale, sc.query.kind):
				sc.withoutRun()
			default:
				errs[i] = sc.take(s, pages[n])
			}
		}
	}
}

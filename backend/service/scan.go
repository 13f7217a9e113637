package service

import (
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

	r     backend.Range
	done  bool
	read  int
	count int
	more  bool
	found []hit
	// keys already met in a run that may name a resource more than once.
	seen map[backend.Key]bool
}

// hit is a resource that matches, and its place in the order.
type hit struct {
	key    []byte
	stored *backend.Resource
	object backend.Object
}

func newScan(q *query, in interval, backward bool, size int) *scan {
	sc := &scan{query: q, in: in, backward: backward, size: size, r: q.source(in)}
	if q.streams() {
		sc.r.Reverse = backward
	} else {
		sc.seen = map[backend.Key]bool{}
	}
	return sc
}

// request is the range of the next step.
func (sc *scan) request() backend.Range {
	sc.r.Limit = scanStep
	if sc.query.filter == nil && sc.query.streams() && !sc.counting {
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
	if !page.More || len(page.Resources) == 0 {
		sc.done = true
		return nil
	}
	sc.advance(page.Resources[len(page.Resources)-1])
	return nil
}

// judge looks at one resource and says whether the scan has all it wants.
func (sc *scan) judge(s *Service, stored *backend.Resource) bool {
	v, err := sc.query.kind.see(stored)
	if err != nil {
		s.unreadable(stored, err)
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
		sc.count++
		return false
	}
	key := sc.query.order.key(v)
	if !sc.in.holds(key) {
		return false
	}
	obj, err := sc.query.kind.decode(stored)
	if err != nil {
		s.unreadable(stored, err)
		return false
	}
	return sc.keep(hit{key: key, stored: stored, object: obj})
}

// keep adds a match. A scan in order ends at the first one too many; another
// keeps the nearest ones.
func (sc *scan) keep(h hit) bool {
	if sc.query.streams() {
		if len(sc.found) == sc.size {
			sc.more, sc.done = true, true
			return true
		}
		sc.found = append(sc.found, h)
		return false
	}
	heap.Push(sc, h)
	if len(sc.found) > sc.size {
		heap.Pop(sc)
		sc.more = true
	}
	return false
}

// advance moves the range behind a resource. In an index run that may have
// other values the place is that of the row which was read.
func (sc *scan) advance(last *backend.Resource) {
	at := backend.OrderTuple(last.Namespace, last.Name)
	if run := sc.query.run; run != nil {
		at = append(run.rowValue(last, sc.r), at...)
	}
	if sc.r.Reverse {
		sc.r.End = at
	} else {
		sc.r.Start = backend.Successor(at)
	}
}

// rowValue is the value of the row by which a range met a resource: the least
// one within its bounds.
func (c *candidate) rowValue(r *backend.Resource, in backend.Range) []byte {
	var best []byte
	for _, row := range r.Rows {
		full := append(slices.Clone(row.Value), backend.OrderTuple(r.Namespace, r.Name)...)
		if row.Index == c.index && string(full) >= string(in.Start) && (in.End == nil || string(full) < string(in.End)) && (best == nil || string(row.Value) < string(best)) {
			best = row.Value
		}
	}
	return slices.Clone(best)
}

// finish puts the matches on the page, in the order of the query.
func (sc *scan) finish(p *Page) {
	slices.SortFunc(sc.found, func(a, b hit) int { return slices.Compare(a.key, b.key) })
	p.cut = sc.more
	p.Edges = make([]Edge, len(sc.found))
	for i, h := range sc.found {
		p.Edges[i] = Edge{Cursor: sc.query.cursor(h.key), Resource: &Resource{Stored: h.stored, Object: h.object}}
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

// runScans reads until all scans are done. The next steps of all are one call.
// The errors are parallel to the scans.
func (s *Service) runScans(ctx context.Context, scans []*scan) []error {
	errs := make([]error, len(scans))
	for {
		var active []int
		var ranges []backend.Range
		for i, sc := range scans {
			if !sc.done && errs[i] == nil {
				active = append(active, i)
				ranges = append(ranges, sc.request())
			}
		}
		if len(active) == 0 {
			return errs
		}
		pages, err := backend.Ranges(ctx, s.cfg.Store, ranges)
		for n, i := range active {
			if err != nil {
				errs[i] = translate(err, backend.Key{Kind: scans[i].query.kind.Name})
				continue
			}
			errs[i] = scans[i].take(s, pages[n])
		}
	}
}

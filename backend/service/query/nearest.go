package query

import (
	"bytes"
	"container/heap"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// keepNearest adds a match to those of a scan that is not in order. Who looks ahead keeps
// one more, which is read too: if it is unreadable, there is no more.
func (sc *scan) keepNearest(e Edge) {
	switch {
	case len(sc.found) < sc.wanted():
		heap.Push(sc, e)
	case len(sc.found) > 0 && (bytes.Compare(e.key, sc.found[0].key) < 0) != sc.backward:
		sc.found[0] = e
		heap.Fix(sc, 0)
	}
}

// sortNearest puts the matches in the order of the query, without the one that
// was kept to look ahead.
func (sc *scan) sortNearest() {
	slices.SortFunc(sc.found, func(a, b Edge) int { return bytes.Compare(a.key, b.key) })
	switch sc.more = len(sc.found) > sc.size; {
	case !sc.more:
	case sc.backward:
		sc.found = sc.found[1:]
	default:
		sc.found = sc.found[:sc.size]
	}
}

// readFound reads the bodies of what a scan that is not in order has kept. If something of it
// is unreadable, the scan begins anew without it, so that the page is full.
func (sc *scan) readFound(r *Reader) {
	if !sc.nearest {
		return
	}
	for i := range sc.found {
		found := &sc.found[i].Resource
		var err error
		if found.Body, err = sc.arena.Read(sc.query.kind.Body, found.Stored); err != nil {
			r.unreadable.Note(found.Stored, err)
			if sc.unreadable == nil {
				sc.unreadable = map[backend.Key]bool{}
			}
			sc.unreadable[found.Stored.Key] = true
			sc.done = false
		}
	}
	if !sc.done {
		sc.found, sc.count = nil, 0
		sc.begin()
	}
}

// The heap has the match on top that is the first to go: the farthest in the
// direction of the page.
var _ heap.Interface = (*scan)(nil)

// Len is part of [heap.Interface].
func (sc *scan) Len() int { return len(sc.found) }

// Less is part of [heap.Interface].
func (sc *scan) Less(i, j int) bool {
	c := bytes.Compare(sc.found[i].key, sc.found[j].key)
	if sc.backward {
		return c < 0
	}
	return c > 0
}

// Swap is part of [heap.Interface].
func (sc *scan) Swap(i, j int) { sc.found[i], sc.found[j] = sc.found[j], sc.found[i] }

// Push is part of [heap.Interface].
func (sc *scan) Push(x any) { sc.found = append(sc.found, x.(Edge)) }

// Pop is part of [heap.Interface].
func (sc *scan) Pop() any {
	last := sc.found[len(sc.found)-1]
	sc.found = sc.found[:len(sc.found)-1]
	return last
}

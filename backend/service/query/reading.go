package query

import (
	"bytes"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
)

// reading is a page, or a count, that is read from the index in memory: from one
// state of the store, so that nothing is read twice.
type reading struct {
	*scan
	chooser
	reader *Reader
	now    time.Time
	// whole says that what is read need not be tested.
	whole bool
	// by is how it is read, in words.
	by string
	// looked is how many resources were looked at, charged those of them that are paid for.
	looked, charged int
	resource        indexedResource
	key             []byte // of the resource that is looked at
	ctx             context.Context
	spent           *budget.Budget
	err             error // of the budget or the context
}

// lookedPerRow is how many resources of the index are looked at for the price of one
// that is read from a store: nothing is copied or decoded.
const lookedPerRow = 64

// readIndexed reads what a scan wants from the index.
func (r *Reader) readIndexed(ctx context.Context, sc *scan, k *index.Kind, now time.Time) error {
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Scans, 1); err != nil {
		return err
	}
	rd := &reading{scan: sc, chooser: chooser{q: sc.query, kind: k, scope: sc.query.places()}, reader: r, now: now, ctx: ctx, spent: spent}
	rd.resource.kind = k
	switch {
	case sc.query.names != nil:
		rd.readNames()
	case sc.counting:
		rd.readCount()
	case sc.size > 0 || sc.ahead:
		rd.readPage()
	}
	sc.done = true
	rd.charge()
	explanation(ctx).add(Explained{Kind: sc.query.kind.Name, Source: "index", By: rd.by, Looked: rd.looked, Returned: max(len(sc.found), sc.count)})
	if rd.err == nil {
		rd.err = spent.Spend(budget.Rows, len(sc.found))
	}
	if rd.err == nil {
		rd.err = held(spent.Hold(ctx, edgeBytes*len(sc.found)))
	}
	return rd.err
}

// edgeBytes is what an edge holds of a resource that is in the index.
const edgeBytes = 128

// charge pays for what was looked at since the last time.
func (rd *reading) charge() {
	due := rd.looked/lookedPerRow - rd.charged
	rd.charged += due
	err := rd.spent.Spend(budget.Rows, due)
	if err == nil {
		rd.spent.Pace(rd.ctx)
		err = held(rd.ctx.Err())
	}
	if rd.err == nil {
		rd.err = err
	}
}

// places bounds the names that the query is about.
func (q *query) places() bounds {
	b := q.within
	if q.namespace != "" {
		ns := backend.AppendString(nil, q.namespace)
		b = b.and(bounds{ns, backend.PrefixEnd(ns)})
	}
	return b
}

// sees says whether a resource is to be shown: it is there, and the query keeps it.
func (rd *reading) sees(e *index.Entry) bool {
	if rd.looked++; rd.looked%1024 == 0 {
		rd.charge()
	}
	if e.Err != nil {
		rd.reader.unreadable.Note(&e.Resource, e.Err)
		return false
	}
	if e.Resource.ExpiredAt(rd.now) {
		return false
	}
	rd.resource.Resource, rd.resource.entry = &e.Resource, e
	return rd.whole || rd.within(e.Place()) && rd.query.match(&rd.resource)
}

// within says whether the query is about a place.
func (rd *reading) within(place string) bool {
	return (rd.scope.start == nil || place >= string(rd.scope.start)) && (rd.scope.end == nil || place < string(rd.scope.end))
}

// add puts a resource on a page that is read in order, and says whether it has all it wants.
func (rd *reading) add(e *index.Entry) (done bool) {
	if rd.sees(e) {
		edge := Edge{Resource: Resource{Stored: &e.Resource, Body: e.Body}}
		if len(rd.query.order) > 0 {
			rd.key = rd.query.order.appendKey(rd.key[:0], &rd.resource)
			if !rd.in.holds(rd.key) {
				return rd.past(rd.key) || rd.err != nil
			}
			edge.key = bytes.Clone(rd.key)
		}
		done = rd.keep(edge)
	}
	return done || rd.err != nil
}

// past says whether a key lies behind the interval, in the direction of the page.
func (rd *reading) past(key []byte) bool {
	if rd.backward {
		return rd.in.after != nil && bytes.Compare(key, rd.in.after) <= 0 || rd.in.from != nil && bytes.Compare(key, rd.in.from) < 0
	}
	return rd.in.before != nil && bytes.Compare(key, rd.in.before) >= 0
}

// offer keeps a resource among the nearest ones of a page that is not read in order.
// It says whether it lies beyond them, or beyond the page.
func (rd *reading) offer(e *index.Entry) (beyond bool) {
	if !rd.sees(e) {
		return false
	}
	rd.key = rd.query.order.appendKey(rd.key[:0], &rd.resource)
	if !rd.in.holds(rd.key) {
		return rd.past(rd.key)
	}
	full := len(rd.found) == rd.wanted()
	if full && (bytes.Compare(rd.key, rd.found[0].key) < 0) == rd.backward {
		return true
	}
	if rd.repeated(e) {
		return false
	}
	edge := Edge{key: bytes.Clone(rd.key), Resource: Resource{Stored: &e.Resource, Body: e.Body}}
	if full {
		rd.found[0] = edge
		heap.Fix(rd.scan, 0)
	} else {
		heap.Push(rd.scan, edge)
	}
	return false
}

// repeated says whether a resource was met before, where that may happen.
func (rd *reading) repeated(e *index.Entry) bool {
	if rd.seen == nil {
		return false
	}
	if rd.seen[e.Resource.Key] {
		return true
	}
	rd.seen[e.Resource.Key] = true
	return false
}

// wanted is how many resources the page looks for.
func (sc *scan) wanted() int {
	if sc.ahead {
		return sc.size + 1
	}
	return sc.size
}

// readNames reads a query that names its resources.
func (rd *reading) readNames() {
	rd.by = "names"
	keys := rd.query.keys(rd.in)
	if rd.backward && rd.query.streams() {
		slices.Reverse(keys)
	}
	rd.nearest = !rd.query.streams() && !rd.counting
	for _, key := range keys {
		e := rd.kind.Get(key.Namespace, key.Name)
		switch {
		case e == nil:
			rd.looked++
		case rd.counting:
			if rd.sees(e) {
				rd.count++
			}
		case rd.nearest:
			rd.offer(e)
		case rd.add(e):
			return
		}
		if rd.err != nil {
			return
		}
	}
}

// readCount counts what the query keeps: where it can by the places in trees alone.
func (rd *reading) readCount() {
	chosen, ok := rd.best()
	if rd.query.filter.all == nil && rd.query.reference == "" {
		chosen, ok = rd.all(), true
	} else if !ok {
		chosen = rd.all()
		chosen.exact = false
	}
	rd.whole = chosen.exact
	if chosen.exact && chosen.once {
		rd.by = "length of " + chosen.String()
		rd.count = chosen.rows
		for _, r := range chosen.runs {
			if r.Index == "" {
				rd.count -= rd.kind.Unreadable(r)
			}
		}
		rd.whole = false
		for e := range rd.kind.Expired(rd.now) {
			rd.resource.Resource, rd.resource.entry = &e.Resource, e
			if rd.looked++; rd.within(e.Place()) && rd.query.match(&rd.resource) {
				rd.count--
			}
		}
		return
	}
	rd.by = chosen.String()
	if !chosen.once {
		rd.seen = map[backend.Key]bool{}
	}
	for _, r := range chosen.runs {
		rd.kind.Scan(r, false, func(_ string, e *index.Entry) bool {
			if rd.sees(e) && !rd.repeated(e) {
				rd.count++
			}
			return rd.err == nil
		})
	}
}

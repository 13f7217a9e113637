package query

import (
	"bytes"
	"container/heap"
	"context"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
)

// reading reads pages and counts from the index in memory, one after the other: from
// one state of the store, so that nothing is read twice.
type reading struct {
	*scan
	chooser
	kind   *index.Kind
	reader *Reader
	memory *use
	now    time.Time
	// whole says that what is read need not be tested.
	whole bool
	// by is how it is read, in words.
	by string
	// looked is how many resources were looked at, charged how many steps that and the
	// tests of filters were when they were paid for, and scans and shown what is not paid for.
	looked, charged, scans, shown int
	resource                      indexedResource
	// key of the resource that is looked at, and room for bounds.
	key, space []byte
	// cheaper is how many of them are paid for as one; 0 is 1.
	cheaper   int
	explained *Explanation
	ctx       context.Context
	spent     *budget.Budget
	err       error // of the budget or the context
}

func (r *Reader) newReading(ctx context.Context, now time.Time) *reading {
	return &reading{reader: r, memory: useOf(ctx), now: now, ctx: ctx, spent: budget.From(ctx), explained: explanation(ctx)}
}

// readOne is read of what is settled at once.
func (rd *reading) readOne(sc *scan, k *index.Kind) error {
	err := rd.read(sc, k)
	if err == nil {
		err = rd.settle()
	}
	return err
}

// What may be read before it is paid for: scans, and resources that they show.
const (
	unsettled      = 64
	unsettledShown = 1000
)

// read reads what a scan wants. [reading.settle] pays for it.
func (rd *reading) read(sc *scan, k *index.Kind) error {
	if rd.err != nil {
		return rd.err
	}
	looked := rd.looked
	rd.scan, rd.kind, rd.chooser, rd.whole, rd.by = sc, k, chooser{q: sc.query, trees: k}, false, ""
	rd.resource = indexedResource{kind: k, tests: rd.resource.tests}
	switch q := sc.query; {
	case sc.size == 0 && !sc.ahead && !sc.counting: // as [scan.begin]
	case q.names != nil:
		rd.scope = q.places()
		rd.readNames()
	case sc.counting:
		rd.scope = q.places()
		rd.readCount()
	case q.filter.all == nil && len(q.order) == 0 && q.within.start == nil && q.within.end == nil:
		rd.readPlain()
	default:
		rd.scope = q.places()
		rd.readPage()
	}
	sc.done = true
	rd.scans++
	rd.shown += len(sc.found)
	rd.explained.add(Explained{Kind: sc.query.kind.Name, Source: "index", By: rd.by, Looked: rd.looked - looked, Returned: max(len(sc.found), sc.count)})
	if rd.scans >= unsettled || rd.shown >= unsettledShown {
		return rd.settle()
	}
	return rd.err
}

// edgeBytes is what an edge holds of a resource that is in the index.
const edgeBytes = 128

// settle pays for what was read since the last time.
func (rd *reading) settle() error {
	if rd == nil {
		return nil
	}
	rd.charge()
	if err := rd.spent.Spend(budget.Steps, budget.Scan*rd.scans); rd.err == nil {
		rd.err = err
	}
	if err := rd.spent.Spend(budget.Rows, rd.shown/max(rd.cheaper, 1)); rd.err == nil {
		rd.err = err
	}
	if rd.err == nil {
		rd.err = held(rd.spent.Hold(rd.ctx, edgeBytes*rd.shown))
	}
	rd.scans, rd.shown = 0, 0
	return rd.err
}

// onTheWay is how many steps are charged on the way, so that an event which has no more is
// ended soon.
const onTheWay = 2048

// due is what was looked at and tested and is not paid for, in steps.
func (rd *reading) due() int { return budget.Looked*rd.looked + rd.resource.tests - rd.charged }

// charge pays for what was looked at since the last time.
func (rd *reading) charge() {
	due := rd.due()
	rd.charged += due
	err := rd.spent.Spend(budget.Steps, due)
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

// look counts a resource, or another place in a tree, that is looked at. Those that are
// many are charged on the way.
func (rd *reading) look() {
	rd.looked++
	if due := rd.due(); due >= onTheWay {
		rd.charge()
	}
}

// sees says whether a resource is to be shown: it is there, and the query keeps it.
func (rd *reading) sees(e *index.Entry) bool {
	rd.look()
	if e.Err != nil {
		rd.reader.unreadable.Note(&e.Resource, e.Err)
		return false
	}
	if e.ExpiredAt(rd.now) {
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
		edge := Edge{Resource: Resource{Stored: &e.Resource, Body: &e.Body}}
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
	edge := Edge{key: bytes.Clone(rd.key), Resource: Resource{Stored: &e.Resource, Body: &e.Body}}
	if full {
		rd.found[0] = edge
		heap.Fix(rd.scan, 0)
	} else {
		heap.Push(rd.scan, edge)
	}
	return false
}

// repeated says whether a resource that a run of a choice shows by a row was shown
// before: by an earlier run, or by an earlier row of this one.
func (rd *reading) repeated(e *index.Entry, c *choice, run int, value string) bool {
	if c.once {
		return false
	}
	rd.resource.tests += run
	for _, earlier := range c.runs[:run] {
		if _, ok := rd.kind.First(e, earlier); ok {
			return true
		}
	}
	first, _ := rd.kind.First(e, c.runs[run])
	return first != value
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
	rd.nearest = len(rd.query.order) > 0 && !rd.counting
	if !rd.nearest && !rd.counting {
		rd.found = rd.memory.room(min(rd.wanted(), len(rd.query.names)))
	}
	for i := range rd.query.names {
		name := rd.query.names[i]
		if rd.backward && !rd.nearest {
			name = rd.query.names[len(rd.query.names)-1-i]
		}
		rd.space = backend.AppendString(backend.AppendString(rd.space[:0], rd.query.namespace), name)
		if !rd.nearest && !rd.counting && !rd.in.holds(rd.space) {
			continue
		}
		e := rd.kind.At(rd.space)
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

// weigh charges what the choice of runs took: each was measured.
func (rd *reading) weigh(c *choice) { rd.resource.tests += budget.Run * len(c.runs) }

// readCount counts what the query keeps: where it can by the places in trees alone.
func (rd *reading) readCount() {
	chosen, ok := rd.best()
	rd.weigh(&chosen)
	if everything := rd.all(); !ok || !(chosen.exact && chosen.once) && rd.measure(&everything) <= rd.measure(&chosen) {
		chosen = everything
		chosen.exact = false
	}
	rd.whole = chosen.exact
	if chosen.exact && chosen.once {
		rd.count = rd.measure(&chosen)
		rd.explain("length of ", &chosen)
		for _, r := range chosen.runs {
			if r.Index == "" {
				rd.count -= rd.kind.Unreadable(r)
			}
		}
		rd.whole = false
		for e := range rd.kind.Expired(rd.now) {
			rd.resource.Resource, rd.resource.entry = &e.Resource, e
			if rd.look(); rd.within(e.Place()) && rd.query.match(&rd.resource) {
				rd.count--
			}
			if rd.err != nil {
				return
			}
		}
		return
	}
	rd.explain("", &chosen)
	for i, r := range chosen.runs {
		rd.kind.Scan(r, false, func(value string, e *index.Entry) bool {
			if rd.sees(e) && !rd.repeated(e, &chosen, i, value) {
				rd.count++
			}
			return rd.err == nil
		})
	}
}

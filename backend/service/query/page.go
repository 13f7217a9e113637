package query

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Limits of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is one page of a connection. It is safe for concurrent use.
type Page struct {
	Edges []Edge
	// Dependencies are parallel to Edges, of a page of dependencies; nil for one of
	// resources. Its edges have no resource where there is none, or none that can be read.
	Dependencies []Dependency

	// relation is what a page of dependencies, or of blockers, is about.
	relation     *relation
	reader       *Reader
	query        *query
	hash         atomic.Uint64 // of the query, with the bit hashed; 0 until it is asked for
	after        []byte        // exclusive bounds in the order, nil for none
	before       []byte
	backward     bool
	ahead        bool // it is known whether there is more in the page's direction
	cut          bool // there is
	changeCursor *string
	// total is the number of resources of the connection, if it was counted with the page.
	total *int
	// view is the state that the page was read from; zero if it was read from the store.
	view index.View
}

// Edge is one resource of a page.
type Edge struct {
	Resource Resource
	// key is the place in the order; nil where that is the name alone.
	key []byte
}

// hashed says that a page knows the hash of its query.
const hashed = 1 << 32

// AppendCursor appends the cursor of an edge, which leads behind it.
func (p *Page) AppendCursor(dst []byte, edge int) []byte {
	e := &p.Edges[edge]
	hash := p.hash.Load()
	if hash == 0 {
		if p.relation != nil {
			hash = hashed | uint64(p.relation.hash())
		} else {
			hash = hashed | uint64(p.query.hash())
		}
		p.hash.Store(hash)
	}
	return appendCursor(dst, uint32(hash), e.place())
}

// place is the place in the order.
func (e *Edge) place() []byte {
	if e.key != nil {
		return e.key
	}
	return backend.OrderTuple(e.Resource.Stored.Namespace, e.Resource.Stored.Name)
}

// Cursor is the cursor of an edge, which leads behind it.
func (p *Page) Cursor(edge int) string { return string(p.AppendCursor(nil, edge)) }

// List returns a page by the algorithm of the Relay cursor specification. A
// resource whose place in the order does not change meanwhile is in exactly
// one page, whatever else is written; but see docs/decisions.md, "Reads from memory", for
// long pages of a store. Unreadable ones are left out, counted
// and logged.
func (r *Reader) List(ctx context.Context, c access.Caller, req ListRequest) (*Page, error) {
	pages, errs := r.ListMany(ctx, c, []ListRequest{req})
	return pages[0], errs[0]
}

// ListMany returns several pages and reads them together: each step of all
// pages is one call of the store. pages and errs are parallel to the requests.
func (r *Reader) ListMany(ctx context.Context, c access.Caller, reqs []ListRequest) (pages []*Page, errs []error) {
	pages, errs = make([]*Page, len(reqs)), make([]error, len(reqs))
	lists := useOf(ctx).take(len(reqs)) // in one piece: a level may have hundreds
	t := lister{reader: r, ctx: ctx, caller: c, view: r.view(ctx)}
	var indexed *reading
	var scans []*scan
	var owner []int
	var arena *body.Arena
	sc := &scan{}
	for i := range reqs {
		l := &lists[i]
		*sc = scan{}
		if errs[i] = t.begin(&reqs[i], l, sc); errs[i] != nil {
			continue
		}
		if served, ok := t.view.Kind(l.query.kind.Name); ok {
			if indexed == nil {
				indexed = r.newReading(ctx, t.view.Now())
			}
			if errs[i] = indexed.read(sc, served); errs[i] == nil {
				indexed.scan.finish(&l.page)
				l.page.view = t.view
				pages[i] = &l.page
			}
			continue
		}
		if arena == nil {
			arena = &body.Arena{}
		}
		sc.arena = arena
		scans, owner = append(scans, sc), append(owner, i)
		sc = &scan{}
	}
	if err := indexed.settle(); err != nil {
		for i := range pages {
			if pages[i] != nil {
				pages[i], errs[i] = nil, err
			}
		}
	}
	if len(scans) == 0 {
		return pages, errs
	}
	for i, err := range r.runScans(ctx, scans) {
		if errs[owner[i]] = err; err == nil {
			l := &lists[owner[i]]
			scans[i].finish(&l.page)
			if reqs[owner[i]].Total {
				l.page.total = &scans[i].count
			}
			pages[owner[i]] = &l.page
		}
	}
	return pages, errs
}

// listing is a page that is being read, and its query.
type listing struct {
	page  Page
	query query
}

// lister prepares the pages of one call.
type lister struct {
	reader *Reader
	ctx    context.Context
	caller access.Caller
	filter readFilter
	view   index.View
	// kind and err are those of the name that was found last.
	name string
	kind *kind.Kind
	err  error
}

// readFilter is the filter that was read last, or what is wrong with it: the pages of a
// level mostly have the same.
type readFilter struct {
	kind  *kind.Kind
	value uintptr // identifies the map, while the requests hold it
	Filter
	err error
}

// of reads a filter, unless it is the last one.
func (r *readFilter) of(k *kind.Kind, value any) (Filter, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return ParseFilter(k, value)
	}
	at := reflect.ValueOf(m).Pointer()
	if r.kind == k && r.value == at {
		return r.Filter, r.err
	}
	f, err := ParseFilter(k, m)
	*r = readFilter{k, at, f, err}
	return f, err
}

// find finds a kind that the caller may list.
func (t *lister) find(name string) (*kind.Kind, error) {
	if name != t.name || t.kind == nil && t.err == nil {
		t.name = name
		if t.kind, t.err = t.reader.kinds.Find(name); t.err == nil {
			t.err = access.Authorize(t.ctx, t.caller, t.kind.Kind, descriptor.VerbList)
		}
	}
	return t.kind, t.err
}

// await takes a later state if the kind is in memory, or will be, and the view does not have it.
func (t *lister) await(k *kind.Kind) error {
	if _, ok := t.view.Kind(k.Name); ok {
		return nil
	}
	later, ok, err := t.reader.await(t.ctx, k)
	if ok {
		t.view = later
	}
	return err
}

// begin checks a request and prepares its page, and the scan that reads it.
func (t *lister) begin(req *ListRequest, l *listing, sc *scan) error {
	r := t.reader
	k, err := t.find(req.Kind)
	if err != nil {
		return err
	}
	if err := t.await(k); err != nil {
		return err
	}
	f, err := t.filter.of(k, req.Filter)
	if err != nil {
		return err
	}
	if l.query, err = r.query(k, req, f); err != nil {
		return err
	}
	p := &l.page
	p.reader, p.query = r, &l.query
	size, err := p.size(req.First, req.Last)
	if err != nil {
		return err
	}
	if p.after, err = p.query.bound("after", req.After); err != nil {
		return err
	}
	if p.before, err = p.query.bound("before", req.Before); err != nil {
		return err
	}
	sc.query, sc.in, sc.backward, sc.size, sc.ahead = p.query, interval{after: p.after, before: p.before}, p.backward, size, req.Ahead
	sc.total = req.Total
	if !req.ChangeCursor {
		return nil
	}
	at := t.view.Position()
	if _, ok := t.view.Kind(k.Name); !ok {
		if at, err = r.store.Position(t.ctx); err != nil {
			return failure.Of(err, backend.Key{Kind: k.Name})
		}
	}
	p.changeCursor = new(at.String())
	return nil
}

func (p *Page) size(first, last *int) (int, error) {
	if first != nil && last != nil {
		return 0, failure.BadInput("last", "first and last exclude each other; give one of them")
	}
	size, name := DefaultPage, "first"
	if first != nil {
		size = *first
	}
	if last != nil {
		size, name, p.backward = *last, "last", true
	}
	if size < 0 || size > MaxPage {
		err := failure.BadInput(name, "%s is %d; 0 to %d is accepted", name, size, MaxPage)
		if err.Rule, err.Limit = "max", MaxPage; size < 0 {
			err.Rule, err.Limit = "min", 0
		}
		return 0, err
	}
	return size, nil
}

// any says whether the connection has a resource in the interval.
func (p *Page) any(ctx context.Context, in interval) (bool, error) {
	if p.relation != nil {
		return p.reader.anyRelated(ctx, p.relation, in)
	}
	sc := &scan{query: p.query, in: in, size: 1, arena: &body.Arena{}}
	if served, ok := p.indexed(); ok {
		err := p.reader.newReading(ctx, p.view.Now()).readOne(sc, served)
		return len(sc.found) > 0, err
	}
	if err := p.reader.runScans(ctx, []*scan{sc})[0]; err != nil {
		return false, err
	}
	return len(sc.found) > 0, nil
}

// indexed is the kind in the state that the page was read from, if that was the index in memory.
func (p *Page) indexed() (*index.Kind, bool) {
	return p.view.Kind(p.query.kind.Name)
}

// TotalCount is the number of resources of the connection, whatever the page.
// What this gateway found unreadable is left out, as it is from the pages.
func (p *Page) TotalCount(ctx context.Context) (int, error) {
	if p.relation != nil {
		return p.reader.countRelated(ctx, p.relation)
	}
	if p.total != nil {
		return *p.total, nil
	}
	if served, ok := p.indexed(); ok {
		sc := &scan{query: p.query, counting: true}
		err := p.reader.newReading(ctx, p.view.Now()).readOne(sc, served)
		return sc.count, err
	}
	sc := &scan{query: p.query, counting: true, arena: &body.Arena{}}
	err := p.reader.runScans(ctx, []*scan{sc})[0]
	return sc.count, err
}

// ChangeCursor is where a stream of changes begins that misses nothing the
// page does not show; nil if it was not asked for.
func (p *Page) ChangeCursor() *string { return p.changeCursor }

// PageInfo is the page's PageInfo. What costs a read is computed when it is asked for.
func (p *Page) PageInfo() *PageInfo { return &PageInfo{page: p} }

// PageInfo is the type of that name of the Relay specification.
type PageInfo struct{ page *Page }

// StartCursor is the cursor of the first edge, nil if there is none.
func (i *PageInfo) StartCursor() *string {
	if len(i.page.Edges) == 0 {
		return nil
	}
	return new(i.page.Cursor(0))
}

// EndCursor is the cursor of the last edge, nil if there is none.
func (i *PageInfo) EndCursor() *string {
	if n := len(i.page.Edges); n > 0 {
		return new(i.page.Cursor(n - 1))
	}
	return nil
}

// HasNextPage says whether the connection goes on after the page.
func (i *PageInfo) HasNextPage(ctx context.Context) (bool, error) {
	p := i.page
	switch n := len(p.Edges); {
	case !p.backward && p.ahead && (p.cut || p.before == nil):
		return p.cut, nil
	case n > 0:
		return p.any(ctx, interval{after: p.Edges[n-1].place()})
	case !p.backward && !p.ahead: // a page of no resources
		return p.any(ctx, interval{after: p.after})
	case p.before != nil:
		return p.any(ctx, interval{from: p.before})
	}
	return false, nil
}

// HasPreviousPage says whether the connection has anything before the page.
func (i *PageInfo) HasPreviousPage(ctx context.Context) (bool, error) {
	p := i.page
	switch {
	case p.backward && p.ahead && (p.cut || p.after == nil):
		return p.cut, nil
	case len(p.Edges) > 0:
		return p.any(ctx, interval{before: p.Edges[0].place()})
	case p.backward && !p.ahead: // a page of no resources
		return p.any(ctx, interval{before: p.before})
	case p.after != nil:
		return p.any(ctx, interval{before: backend.Successor(p.after)})
	}
	return false, nil
}

package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// Limits of a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is one page of a connection.
type Page struct {
	Edges []Edge

	service      *Service
	query        *query
	after        []byte // exclusive bounds in the order, nil for none
	before       []byte
	backward     bool
	cut          bool // there is more in the page's direction
	changeCursor *string
}

// Edge is one resource of a page.
type Edge struct {
	Resource *Resource
	// key is the place in the order; nil where that is the name alone.
	key []byte
}

// AppendCursor appends the cursor of an edge, which leads behind it.
func (p *Page) AppendCursor(dst []byte, edge int) []byte {
	e := &p.Edges[edge]
	key := e.key
	if key == nil {
		key = backend.OrderTuple(e.Resource.Stored.Namespace, e.Resource.Stored.Name)
	}
	return p.query.appendCursor(dst, key)
}

// Cursor is the cursor of an edge, which leads behind it.
func (p *Page) Cursor(edge int) string { return string(p.AppendCursor(nil, edge)) }

// List returns a page by the algorithm of the Relay cursor specification. A
// resource whose place in the order does not change meanwhile is in exactly
// one page, whatever else is written. Unreadable ones are left out, counted
// and logged.
func (s *Service) List(ctx context.Context, c Caller, req ListRequest) (*Page, error) {
	pages, errs := s.ListMany(ctx, c, []ListRequest{req})
	return pages[0], errs[0]
}

// ListMany returns several pages and reads them together: each step of all
// pages is one call of the store. pages and errs are parallel to the requests.
func (s *Service) ListMany(ctx context.Context, c Caller, reqs []ListRequest) (pages []*Page, errs []error) {
	pages, errs = make([]*Page, len(reqs)), make([]error, len(reqs))
	var scans []*scan
	var owner []int
	for i, req := range reqs {
		p, size, err := s.newPage(ctx, c, req)
		if err != nil {
			errs[i] = err
			continue
		}
		pages[i] = p
		scans = append(scans, p.scan(size))
		owner = append(owner, i)
	}
	for i, err := range s.runScans(ctx, scans) {
		if err != nil {
			pages[owner[i]], errs[owner[i]] = nil, err
			continue
		}
		scans[i].finish(pages[owner[i]])
	}
	return pages, errs
}

// newPage checks a request.
func (s *Service) newPage(ctx context.Context, c Caller, req ListRequest) (*Page, int, error) {
	k, err := s.kind(req.Kind)
	if err != nil {
		return nil, 0, err
	}
	if err := s.authorize(ctx, c, k.Kind, backend.VerbList); err != nil {
		return nil, 0, err
	}
	p := &Page{service: s}
	if p.query, err = s.query(ctx, k, req); err != nil {
		return nil, 0, err
	}
	size, err := p.size(req)
	if err != nil {
		return nil, 0, err
	}
	if p.after, err = p.query.bound("after", req.After); err != nil {
		return nil, 0, err
	}
	if p.before, err = p.query.bound("before", req.Before); err != nil {
		return nil, 0, err
	}
	if req.ChangeCursor {
		at, err := s.cfg.Store.Position(ctx)
		if err != nil {
			return nil, 0, translate(err, backend.Key{Kind: k.Name})
		}
		p.changeCursor = new(at.String())
	}
	return p, size, nil
}

func (p *Page) size(req ListRequest) (int, error) {
	if req.First != nil && req.Last != nil {
		return 0, badInput("last", "first and last exclude each other; give one of them")
	}
	size, name := DefaultPage, "first"
	if req.First != nil {
		size = *req.First
	}
	if req.Last != nil {
		size, name, p.backward = *req.Last, "last", true
	}
	if size < 0 || size > MaxPage {
		return 0, badInput(name, "%s is %d; 0 to %d is accepted", name, size, MaxPage)
	}
	return size, nil
}

// scan begins the reading of the page.
func (p *Page) scan(size int) *scan {
	return newScan(p.query, interval{after: p.after, before: p.before}, p.backward, size)
}

// any says whether the connection has a resource in the interval.
func (p *Page) any(ctx context.Context, in interval) (bool, error) {
	sc := newScan(p.query, in, false, 1)
	if err := p.service.runScans(ctx, []*scan{sc})[0]; err != nil {
		return false, err
	}
	return len(sc.found) > 0, nil
}

// TotalCount is the number of resources of the connection, whatever the page.
// What this gateway found unreadable is left out, as it is from the pages.
func (p *Page) TotalCount(ctx context.Context) (int, error) {
	if p.query.filter == nil && p.query.names == nil {
		r := p.query.source(interval{})
		r.Count = true
		page, err := p.service.cfg.Store.Range(ctx, r)
		if err != nil {
			return 0, translate(err, backend.Key{Kind: p.query.kind.Name})
		}
		unreadable, err := p.service.countUnreadable(ctx, p.query.kind, p.query.namespace)
		return max(page.Count-unreadable, 0), err
	}
	sc := newScan(p.query, interval{}, false, 0)
	sc.counting = true
	err := p.service.runScans(ctx, []*scan{sc})[0]
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
	switch end := i.EndCursor(); {
	case !p.backward && (p.cut || p.before == nil):
		return p.cut, nil
	case end != nil:
		at, err := p.query.bound("after", end)
		if err != nil {
			return false, err
		}
		return p.any(ctx, interval{after: at})
	case p.before != nil:
		return p.any(ctx, interval{from: p.before})
	}
	return false, nil
}

// HasPreviousPage says whether the connection has anything before the page.
func (i *PageInfo) HasPreviousPage(ctx context.Context) (bool, error) {
	p := i.page
	switch begin := i.StartCursor(); {
	case p.backward && (p.cut || p.after == nil):
		return p.cut, nil
	case begin != nil:
		at, err := p.query.bound("before", begin)
		if err != nil {
			return false, err
		}
		return p.any(ctx, interval{before: at})
	case p.after != nil:
		return p.any(ctx, interval{before: backend.Successor(p.after)})
	}
	return false, nil
}

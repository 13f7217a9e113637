package query

import (
	"context"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// The sizes of pages.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is a page of a connection. It is safe for concurrent use.
type Page struct {
	Edges []Edge
	// Dependencies has the reference of each edge on a page of related resources; nil on other pages. An edge has no
	// resource if the target of its reference does not exist or cannot be read.
	Dependencies []Dependency

	reader *Reader
	// Either query or relation is set. hash caches the hash of the connection, together with the bit hashed. It is 0
	// until it is computed.
	query        *connection
	relation     *relation
	hash         atomic.Uint64
	in           plan.Interval // exclusive bounds in the order
	backward     bool
	ahead        bool // cut is known
	cut          bool // more resources follow in the page's direction, within the bounds
	changeCursor *string
	// total is the number of resources in the connection, if it was counted together with the page; otherwise nil.
	total *int
	// view is the state from which the page was read; nil if the page was read from the store.
	view *index.View
}

// hashed is a bit that marks Page.hash as computed.
const hashed = 1 << 32

// AppendCursor appends the cursor of p.Edges[edge].
func (p *Page) AppendCursor(dst []byte, edge int) []byte {
	hash := p.hash.Load()
	if hash == 0 {
		hash = hashed | uint64(p.cursors().Hash())
		p.hash.Store(hash)
	}
	return plan.AppendCursor(dst, uint32(hash), p.Edges[edge].Key())
}

// cursors returns the encoding of the connection's cursors.
func (p *Page) cursors() plan.Cursors {
	if p.relation != nil {
		return p.relation.cursors()
	}
	return p.query.cursors()
}

// Cursor returns the cursor of p.Edges[edge].
func (p *Page) Cursor(edge int) string { return string(p.AppendCursor(nil, edge)) }

// size returns the requested size of the page, or an error if first and last are not valid.
func (p *Page) size(first, last *int) (int, error) {
	if first != nil && last != nil {
		return 0, failure.BadInput("last", "first and last exclude each other; give one of them")
	}
	size, name := DefaultPage, "first"
	if first != nil {
		size = *first
	}
	if last != nil {
		size = *last
		name = "last"
		p.backward = true
	}
	if size < 0 || size > MaxPage {
		err := failure.BadInput(name, "%s is %d; 0 to %d is accepted", name, size, MaxPage)
		err.Rule, err.Limit = "max", MaxPage
		if size < 0 {
			err.Rule, err.Limit = "min", 0
		}
		return 0, err
	}
	return size, nil
}

// begin checks the arguments of a page and returns what must be read.
func (p *Page) begin(first, last *int, after, before *string, ahead bool) (w plan.Want, err error) {
	if w.Size, err = p.size(first, last); err != nil {
		return w, err
	}
	if after != nil { // most requests have no cursor, and p.cursors allocates
		if p.in.After, err = p.cursors().Key("after", after); err != nil {
			return w, err
		}
	}
	if before != nil {
		p.in.Before, err = p.cursors().Key("before", before)
	}
	w.In = p.in
	w.Backward = p.backward
	w.Ahead = ahead
	return w, err
}

// read reads the connection again. It reads from the same state as the page, if the kind is in memory.
func (p *Page) read(ctx context.Context, w plan.Want) (*page.Read, error) {
	r := &page.Read{Query: &p.query.Query, Want: w}
	if p.view != nil {
		served, _ := p.view.Kind(p.query.Kind.Name)
		return r, page.NewMemory(ctx, p.reader.unreadable, p.view.Now(), 1).Do(ctx, r, served)
	}
	return r, p.reader.pages.Do(ctx, []*page.Read{r})[0]
}

// any reports whether the connection has a resource in an interval.
func (p *Page) any(ctx context.Context, in plan.Interval) (bool, error) {
	want := plan.Want{In: in, Size: 1}
	if p.relation != nil {
		sc := &dependents{relation: p.relation, Want: want}
		err := p.reader.runDependents(ctx, []*dependents{sc})
		return len(sc.found) > 0, err
	}
	r, err := p.read(ctx, want)
	return len(r.Edges) > 0, err
}

// TotalCount returns the number of resources in the whole connection. Resources that could not be read do not count, as
// they are on no page.
func (p *Page) TotalCount(ctx context.Context) (int, error) {
	switch {
	case p.relation != nil:
		return p.reader.countRelated(ctx, p.relation)
	case p.total != nil:
		return *p.total, nil
	}
	r, err := p.read(ctx, plan.Want{Count: true})
	return r.Matches, err
}

// Hidden returns the number of resources of [BlockedBy] that the caller may not see. For other pages it returns 0.
func (p *Page) Hidden(ctx context.Context) (int, error) {
	if p.relation == nil || p.relation.Relation != BlockedBy || p.relation.rights.All() {
		return 0, nil
	}
	all, err := p.reader.allRelated(ctx, p.relation)
	return all.hidden, err
}

// ChangeCursor returns a cursor for a stream of changes that sends all changes after this page. It is nil if the
// request did not ask for it.
func (p *Page) ChangeCursor() *string { return p.changeCursor }

// PageInfo returns information about the page. The methods of the result may read the store or the index.
func (p *Page) PageInfo() *PageInfo { return &PageInfo{page: p} }

// PageInfo implements the type PageInfo of the Relay specification.
type PageInfo struct{ page *Page }

// StartCursor returns the cursor of the first edge; nil if there is none.
func (i *PageInfo) StartCursor() *string {
	if len(i.page.Edges) == 0 {
		return nil
	}
	return new(i.page.Cursor(0))
}

// EndCursor returns the cursor of the last edge; nil if there is none.
func (i *PageInfo) EndCursor() *string {
	if n := len(i.page.Edges); n > 0 {
		return new(i.page.Cursor(n - 1))
	}
	return nil
}

// HasNextPage reports whether the connection has resources after the page.
func (i *PageInfo) HasNextPage(ctx context.Context) (bool, error) { return i.page.beyond(ctx, false) }

// HasPreviousPage reports whether the connection has resources before the page.
func (i *PageInfo) HasPreviousPage(ctx context.Context) (bool, error) {
	return i.page.beyond(ctx, true)
}

// beyond reports whether the connection has resources after the page, or before it if before is set.
func (p *Page) beyond(ctx context.Context, before bool) (bool, error) {
	within := p.in
	known := p.ahead && before == p.backward
	n := len(p.Edges)
	bound := within.Before
	if before {
		bound = within.After
	}
	in := plan.Interval{After: within.After} // a page of no resources
	switch {
	case known && (p.cut || bound == nil):
		return p.cut, nil
	case n > 0 && before:
		in = plan.Interval{Before: p.Edges[0].Key()}
	case n > 0:
		in = plan.Interval{After: p.Edges[n-1].Key()}
	case before == p.backward && !p.ahead && before:
		in = plan.Interval{Before: within.Before}
	case before == p.backward && !p.ahead:
	case bound == nil:
		return false, nil
	case before:
		in = plan.Interval{Before: backend.Successor(bound)}
	default:
		in = plan.Interval{From: bound}
	}
	return p.any(ctx, in)
}

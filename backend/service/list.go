package service

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"

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

	service       *Service
	kind          *kind
	scope         scope
	start, end    []byte
	backward, cut bool
}

// Edge is one resource of a page and the cursor that leads behind it.
type Edge struct {
	Cursor   string
	Resource *Resource
}

// scope is what a cursor belongs to; one of another scope is refused.
type scope struct {
	kind      string
	namespace string
}

// List returns a page by the algorithm of the Relay cursor specification, in
// the order of (namespace, name). A resource that is not written meanwhile is
// in exactly one page, whatever else is written. Unreadable ones are left out,
// counted and logged.
func (s *Service) List(ctx context.Context, c Caller, req ListRequest) (*Page, error) {
	k, err := s.kind(req.Kind)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, c, k.Kind, backend.VerbList); err != nil {
		return nil, err
	}
	p := &Page{service: s, kind: k, scope: scope{kind: k.Name}}
	if req.Namespace != nil {
		var v violations
		checkNamespace(&v, "namespace", *req.Namespace)
		if err := v.err(backend.Key{Kind: k.Name, Namespace: *req.Namespace}); err != nil {
			return nil, err
		}
		p.scope.namespace = *req.Namespace
	}
	size, err := p.size(req)
	if err != nil {
		return nil, err
	}
	if p.start, err = p.scope.bound("after", req.After); err != nil {
		return nil, err
	}
	if p.end, err = p.scope.bound("before", req.Before); err != nil {
		return nil, err
	}
	if p.start != nil {
		p.start = backend.Successor(p.start)
	}
	return p, p.fill(ctx, size)
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

// fill reads resources into the page until it is full or the range ends.
func (p *Page) fill(ctx context.Context, size int) error {
	if size == 0 {
		more, err := p.any(ctx, p.start, p.end)
		p.cut = more
		return err
	}
	r := p.rangeOf(p.start, p.end)
	r.Reverse = p.backward
	for len(p.Edges) < size {
		r.Limit = size - len(p.Edges)
		page, err := p.service.store(p.kind.Kind).Range(ctx, r)
		if err != nil {
			return translate(err, backend.Key{Kind: p.kind.Name})
		}
		for _, stored := range page.Resources {
			obj, err := p.kind.decode(stored)
			if err != nil {
				p.service.unreadable(stored, err)
				continue
			}
			p.Edges = append(p.Edges, Edge{Cursor: p.scope.cursor(stored.Key), Resource: &Resource{Stored: stored, Object: obj}})
		}
		p.cut = page.More
		if !page.More || len(page.Resources) == 0 {
			break
		}
		last := page.Resources[len(page.Resources)-1]
		if at := backend.OrderTuple(last.Namespace, last.Name); p.backward {
			r.End = at
		} else {
			r.Start = backend.Successor(at)
		}
	}
	if p.backward {
		slices.Reverse(p.Edges)
	}
	return nil
}

func (p *Page) rangeOf(start, end []byte) backend.Range {
	return backend.Range{Kind: p.kind.Name, Namespace: p.scope.namespace, Start: start, End: end, Limit: 1}
}

// any says whether there is a resource in the interval.
func (p *Page) any(ctx context.Context, start, end []byte) (bool, error) {
	page, err := p.service.store(p.kind.Kind).Range(ctx, p.rangeOf(start, end))
	if err != nil {
		return false, translate(err, backend.Key{Kind: p.kind.Name})
	}
	return len(page.Resources) > 0, nil
}

// TotalCount is the number of resources of the connection, whatever the page.
func (p *Page) TotalCount(ctx context.Context) (int, error) {
	r := p.rangeOf(nil, nil)
	r.Count = true
	page, err := p.service.store(p.kind.Kind).Range(ctx, r)
	if err != nil {
		return 0, translate(err, backend.Key{Kind: p.kind.Name})
	}
	return page.Count, nil
}

// PageInfo is the page's PageInfo. What costs a read is computed when it is asked for.
func (p *Page) PageInfo() *PageInfo { return &PageInfo{page: p} }

// PageInfo is the type of that name of the Relay specification.
type PageInfo struct{ page *Page }

// StartCursor is the cursor of the first edge, nil if there is none.
func (i *PageInfo) StartCursor() *string {
	if len(i.page.Edges) == 0 {
		return nil
	}
	return &i.page.Edges[0].Cursor
}

// EndCursor is the cursor of the last edge, nil if there is none.
func (i *PageInfo) EndCursor() *string {
	if n := len(i.page.Edges); n > 0 {
		return &i.page.Edges[n-1].Cursor
	}
	return nil
}

// HasNextPage says whether the connection goes on after the page.
func (i *PageInfo) HasNextPage(ctx context.Context) (bool, error) {
	p := i.page
	switch {
	case !p.backward && (p.cut || p.end == nil):
		return p.cut, nil
	case len(p.Edges) > 0:
		last := p.Edges[len(p.Edges)-1].Resource.Stored
		return p.any(ctx, backend.Successor(backend.OrderTuple(last.Namespace, last.Name)), nil)
	case p.end != nil:
		return p.any(ctx, p.end, nil)
	}
	return false, nil
}

// HasPreviousPage says whether the connection has anything before the page.
func (i *PageInfo) HasPreviousPage(ctx context.Context) (bool, error) {
	p := i.page
	switch {
	case p.backward && (p.cut || p.start == nil):
		return p.cut, nil
	case len(p.Edges) > 0:
		first := p.Edges[0].Resource.Stored
		return p.any(ctx, nil, backend.OrderTuple(first.Namespace, first.Name))
	case p.start != nil:
		return p.any(ctx, nil, p.start)
	}
	return false, nil
}

const cursorFormat = 1

// hash tells connections apart.
func (c scope) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write(backend.OrderTuple(c.kind, c.namespace))
	return h.Sum32()
}

// cursor is the place of a resource: base64url of a format byte, the scope's
// hash and the order tuple. The same for a resource whatever the page.
func (c scope) cursor(key backend.Key) string {
	b := binary.BigEndian.AppendUint32([]byte{cursorFormat}, c.hash())
	return base64.RawURLEncoding.EncodeToString(append(b, backend.OrderTuple(key.Namespace, key.Name)...))
}

// bound reads a cursor of this scope; nil and "" mean none.
func (c scope) bound(argument string, cursor *string) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil
	}
	bad := &Error{Code: CodeCursorInvalid, Path: argument, Kind: c.kind, Message: argument + ": not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments"}
	if len(*cursor) > 4*backend.MaxKeyBytes {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(b) < 5 || b[0] != cursorFormat || binary.BigEndian.Uint32(b[1:]) != c.hash() {
		return nil, bad
	}
	key, err := decodeOrderTuple(b[5:])
	if err != nil || c.cursor(key) != *cursor {
		return nil, bad
	}
	return b[5:], nil
}

func decodeOrderTuple(b []byte) (key backend.Key, err error) {
	if key.Namespace, b, err = backend.TakeString(b); err != nil {
		return key, err
	}
	key.Name, _, err = backend.TakeString(b)
	return key, err
}

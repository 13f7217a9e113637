package engine

import (
	"context"
	"strconv"
)

// connectionFields returns the fields of a connection of resources.
func connectionFields() fieldTable {
	return fieldTable{
		"edges":           {write: writeEdges, compile: compileEdges},
		"nodes":           {write: writeNodes},
		"unreadableCount": {write: counted(unreadableCount)},
		"changeCursor":    {write: writePageChangeCursor},
	}.with(pageFields())
}

func edgeFields() fieldTable {
	return fieldTable{
		"cursor": {write: writeCursor},
		"node":   {write: writeNode},
	}
}

// pageFields returns the fields that all connections, of resources and of dependencies, have in common.
func pageFields() fieldTable {
	return fieldTable{
		"pageInfo":   {write: writeBelow},
		"totalCount": {write: counted(totalCount)},
	}
}

func pageInfoFields() fieldTable {
	return fieldTable{
		"hasNextPage":     {write: writeHasNextPage},
		"hasPreviousPage": {write: writeHasPreviousPage},
		"startCursor":     {write: writeStartCursor},
		"endCursor":       {write: writeEndCursor},
	}
}

// connection writes a page of a connection.
func (r *run) connection(ctx context.Context, buf []byte, f *field, p *connectionPage) ([]byte, bool) {
	for i := range p.items {
		p.items[i].at = 0
	}
	return r.below(ctx, buf, f, source{page: p})
}

func compileEdges(_ *compiler, f *field, _ *typeInfo) { f.edges = true }

func writeEdges(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	p := src.page
	return r.elements(ctx, buf, f, len(p.items), func(buf []byte, i int) ([]byte, bool) {
		return r.object(ctx, buf, f.sub, source{page: p, index: i})
	})
}

func writeNodes(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	p := src.page
	return r.elements(ctx, buf, f, len(p.items), func(buf []byte, i int) ([]byte, bool) {
		it := &p.items[i]
		return r.object(ctx, buf, f.on(it.kind), source{item: it})
	})
}

// elements writes a list of n objects that cannot be null. write appends the i-th object.
func (r *run) elements(ctx context.Context,
	buf []byte, f *field, n int, write func(buf []byte, i int) ([]byte, bool),
) (out []byte, ok bool) {
	r.count(f, n)
	r.push(f)
	buf = append(buf, '[')
	ok = true
	for i := range n {
		if i > 0 {
			buf = append(buf, ',')
		}
		r.element(ctx, f)
		r.pushIndex(i)
		var some bool
		buf, some = write(buf, i)
		ok = ok && some
		r.pop()
	}
	r.pop()
	return append(buf, ']'), ok
}

func writeNode(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.resourceOn(ctx, buf, f, &src.page.items[src.index])
}

func writeCursor(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	buf = src.page.AppendCursor(append(buf, '"'), src.index)
	return append(buf, '"'), true
}

// writeBelow writes an object whose fields are read from the same source as the fields of its parent.
func writeBelow(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.below(ctx, buf, f, src)
}

func totalCount(ctx context.Context, src source) (int, error) { return src.page.TotalCount(ctx) }

func unreadableCount(ctx context.Context, src source) (int, error) { return src.page.Unreadable(ctx) }

func writePageChangeCursor(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendOptional(buf, src.page.ChangeCursor())
}

func writeStartCursor(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	if src.page == nil {
		return appendNamespaceCursor(buf, src.root.namespaces, 0)
	}
	return appendOptional(buf, src.page.PageInfo().StartCursor())
}

func writeEndCursor(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	if src.page == nil {
		return appendNamespaceCursor(buf, src.root.namespaces, len(src.root.namespaces.Namespaces)-1)
	}
	return appendOptional(buf, src.page.PageInfo().EndCursor())
}

func writeHasNextPage(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	if src.page == nil {
		return strconv.AppendBool(buf, src.root.namespaces.More), true
	}
	return r.yes(ctx, buf, f, src.page.PageInfo().HasNextPage)
}

func writeHasPreviousPage(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	if src.page == nil {
		return strconv.AppendBool(buf, src.root.namespaces.Before), true
	}
	return r.yes(ctx, buf, f, src.page.PageInfo().HasPreviousPage)
}

// yes reads a Boolean value and writes it.
func (r *run) yes(ctx context.Context, buf []byte, f *field, read func(context.Context) (bool, error)) ([]byte, bool) {
	yes, err := read(ctx)
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	return strconv.AppendBool(buf, yes), true
}

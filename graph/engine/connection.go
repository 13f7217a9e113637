package engine

import "strconv"

// connection writes a page of a connection.
func (r *run) connection(buf []byte, f *field, p *page) ([]byte, bool) {
	for i := range p.items {
		p.items[i].at = 0
	}
	return r.below(buf, f, &source{page: p})
}

// pageItems writes the edges or the nodes of a page, or the node of an edge.
func (r *run) pageItems(buf []byte, f *field, src *source) ([]byte, bool) {
	p := src.page
	switch {
	case f.op == opNode && p.Dependencies != nil:
		r.count(f, 1)
		return r.below(buf, f, src)
	case f.op == opNode: // resourceOn counts it
		return r.resourceOn(buf, f, &p.items[src.index])
	}
	r.count(f, len(p.items))
	r.push(f)
	buf = append(buf, '[')
	ok, element := true, source{page: p}
	for i := range p.items {
		if i > 0 {
			buf = append(buf, ',')
		}
		r.element(f)
		r.pushIndex(i)
		on := f.sub
		if element.index = i; f.op == opNodes && p.Dependencies == nil {
			element.item = &p.items[i]
			on = f.on(element.item.kind)
		}
		var some bool
		buf, some = r.object(buf, on, &element)
		ok = ok && some // elements are never null
		r.pop()
	}
	r.pop()
	return append(buf, ']'), ok
}

// pageField writes another field of a page or an edge.
func (r *run) pageField(buf []byte, f *field, src *source) ([]byte, bool) {
	if src.namespaces != nil {
		return r.namespacePageField(buf, f, src)
	}
	p := src.page
	switch f.op {
	case opPageInfo:
		return r.below(buf, f, src)
	case opCursor:
		buf = p.AppendCursor(append(buf, '"'), src.index)
		return append(buf, '"'), true
	case opPageChangeCursor:
		return r.text(buf, p.ChangeCursor())
	case opStartCursor:
		return r.text(buf, p.PageInfo().StartCursor())
	case opEndCursor:
		return r.text(buf, p.PageInfo().EndCursor())
	case opTotalCount:
		n, err := p.TotalCount(r.ctx)
		if err != nil {
			return r.null(buf, f, err)
		}
		return strconv.AppendInt(buf, int64(min(n, 1<<31-1)), 10), true
	case opHiddenCount:
		n, err := p.Hidden(r.ctx)
		if err != nil {
			return r.null(buf, f, err)
		}
		return strconv.AppendInt(buf, int64(n), 10), true
	case opUnreadableCount:
		n, err := p.Unreadable(r.ctx)
		if err != nil {
			return r.null(buf, f, err)
		}
		return strconv.AppendInt(buf, int64(n), 10), true
	}
	more := p.PageInfo().HasNextPage
	if f.op == opHasPreviousPage {
		more = p.PageInfo().HasPreviousPage
	}
	yes, err := more(r.ctx)
	if err != nil {
		return r.null(buf, f, err)
	}
	return strconv.AppendBool(buf, yes), true
}

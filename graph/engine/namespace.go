package engine

import "strconv"

// namespaceItems writes the edges or the nodes of a page of namespaces, or the node of an edge.
func (r *run) namespaceItems(buf []byte, f *field, src *source) ([]byte, bool) {
	if f.op == opNode {
		return r.below(buf, f, src)
	}
	p := src.namespaces
	r.count(f, len(p.Namespaces))
	return r.list(buf, f, len(p.Namespaces), func(i int) source { return source{namespaces: p, group: i} }), true
}

// namespacePageField writes another field of a page of namespaces or of an edge.
func (r *run) namespacePageField(buf []byte, f *field, src *source) ([]byte, bool) {
	p := src.namespaces
	switch f.op {
	case opPageInfo:
		return r.below(buf, f, src)
	case opCursor:
		return appendText(buf, p.Cursor(src.group)), true
	case opHasNextPage:
		return strconv.AppendBool(buf, p.More), true
	case opHasPreviousPage:
		return strconv.AppendBool(buf, p.Before), true
	case opStartCursor, opEndCursor:
		at, last := 0, len(p.Namespaces)-1
		if last < 0 {
			return buf, false
		}
		if f.op == opEndCursor {
			at = last
		}
		return appendText(buf, p.Cursor(at)), true
	}
	n, err := p.TotalCount(r.ctx)
	if err != nil {
		return r.null(buf, f, err)
	}
	return strconv.AppendInt(buf, int64(n), 10), true
}

// namespaceField writes a field of a namespace or of a count.
func (r *run) namespaceField(buf []byte, f *field, src *source) ([]byte, bool) {
	ns := &src.namespaces.Namespaces[src.group]
	switch f.op {
	case opNamespaceName:
		return appendText(buf, ns.Name), true
	case opCountKind:
		return appendText(buf, ns.Counts[src.index].Kind), true
	case opCount:
		return strconv.AppendInt(buf, int64(ns.Counts[src.index].Count), 10), true
	}
	p, group := src.namespaces, src.group
	return r.list(buf, f, len(ns.Counts), func(i int) source { return source{namespaces: p, group: group, index: i} }), true
}

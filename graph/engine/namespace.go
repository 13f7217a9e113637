package engine

import (
	"context"

	"github.com/sluicegw/sluice/backend/service/query"
)

func namespacesRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveNamespaces, write: writeRootObject}
}

func resolveNamespaces(ctx context.Context, r *run, _ *field, a *resolved, args *arguments) (err error) {
	a.namespaces, err = r.engine.svc.Reader.Namespaces(
		ctx,
		count(args.values, "first"),
		optional[string](args.values, "after"),
	)
	return err
}

func namespaceConnectionFields() fieldTable {
	return fieldTable{
		"edges":      {write: writeNamespaces},
		"nodes":      {write: writeNamespaces},
		"pageInfo":   {write: writeBelow},
		"totalCount": {write: counted(countNamespaces)},
	}
}

func namespaceEdgeFields() fieldTable {
	return fieldTable{
		"cursor": {write: text(func(src source) string { return src.root.namespaces.Cursor(src.group) })},
		"node":   {write: writeBelow},
	}
}

func namespaceFields() fieldTable {
	return fieldTable{
		"name":   {write: text(func(src source) string { return src.namespace().Name })},
		"counts": {write: writeNamespaceCounts},
	}
}

// namespaceCountFields returns the fields of the number of resources of one kind in a namespace.
func namespaceCountFields() fieldTable {
	return fieldTable{
		"kind":  {write: text(func(src source) string { return src.namespace().Counts[src.index].Kind })},
		"count": {write: integer(func(src source) int { return src.namespace().Counts[src.index].Count })},
	}
}

func (src source) namespace() *query.Namespace { return &src.root.namespaces.Namespaces[src.group] }

func countNamespaces(ctx context.Context, src source) (int, error) {
	return src.root.namespaces.TotalCount(ctx)
}

// writeNamespaces writes the edges or the nodes of a page of namespaces.
func writeNamespaces(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	n := len(src.root.namespaces.Namespaces)
	r.count(f, n)
	return r.list(ctx, buf, f, n, func(i int) source { return source{root: src.root, group: i} }), true
}

func writeNamespaceCounts(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.list(ctx, buf, f, len(src.namespace().Counts), func(i int) source {
		return source{root: src.root, group: src.group, index: i}
	}), true
}

// appendNamespaceCursor appends the cursor of a namespace on a page; null if the page is empty.
func appendNamespaceCursor(buf []byte, p *query.NamespacePage, i int) ([]byte, bool) {
	if len(p.Namespaces) == 0 {
		return buf, false
	}
	return appendText(buf, p.Cursor(i)), true
}

package engine

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// changesRootField returns the entry of a subscription to changes. It has no function resolve, because the stream
// passes each change to the run.
func changesRootField() derivedField {
	return derivedField{compile: compileArguments, write: writeRootObject}
}

// changeFields returns the fields of an event in a stream of changes.
func changeFields() fieldTable {
	return fieldTable{
		"type":       {write: text(func(src source) string { return string(src.root.change.Type) })},
		"cursor":     {write: optionalText(func(src source) string { return src.root.change.Cursor })},
		"revision":   {write: optionalText(func(src source) string { return src.root.change.Revision })},
		"resourceId": {write: writeChangedID},
		singularName: {write: writeChanged},
		"resource":   {write: writeChanged},
	}
}

func writeChangedID(_ context.Context, r *run, buf []byte, _ *field, src source) ([]byte, bool) {
	key := src.root.change.Key
	if key == (backend.Key{}) {
		return buf, false
	}
	return r.appendID(buf, key), true
}

// writeChanged writes the changed resource, after reading its links.
func writeChanged(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	b, err := src.root.change.Body()
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	if b == nil {
		return buf, false
	}
	it := r.newItem(b, f)
	r.resolve(ctx)
	return r.resource(ctx, buf, f, it)
}

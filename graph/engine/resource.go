package engine

import (
	"context"
	"encoding/base64"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// manifestObjects is the number of objects that a manifest is charged as, because rendering it costs as much.
const manifestObjects = 20

// resourceFields returns the fields that resources of all kinds have; see [derivedField] for how to add one.
func resourceFields() fieldTable {
	return fieldTable{
		"id":           {write: writeID},
		"kind":         {write: writeConstant, compile: compileKindName},
		"subKind":      {write: writeSubKind},
		"apiVersion":   {write: writeAPIVersion},
		"metadata":     {write: writeMetadata},
		"spec":         {write: writeObject, compile: compileSpec},
		"status":       {write: writeObject, compile: compileStatus},
		"manifest":     {write: writeManifest, compile: compileArguments},
		"specJSON":     {write: writeSpecJSON},
		"statusJSON":   {write: writeStatusJSON},
		"conditions":   {write: writeConditions, compile: compileConditions},
		"allowed":      {write: writeAllowed},
		"dependencies": {write: writeLink, compile: compileDependencies(query.Dependencies)},
		"dependents":   {write: writeLink, compile: compileDependencies(query.Dependents)},
		"blockedBy":    {write: writeLink, compile: compileDependencies(query.BlockedBy)},
	}
}

func writeID(_ context.Context, r *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return r.appendID(buf, src.item.body.Stored.Key), true
}

func compileKindName(_ *compiler, f *field, on *typeInfo) { f.constant = on.kind.quoted }

func writeSubKind(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	b := src.item.body
	value := b.Text(b.At(body.Root, body.SlotSubKind))
	return appendText(buf, value), value != ""
}

func writeAPIVersion(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	b := src.item.body
	version := b.Text(b.At(body.Root, body.SlotVersion))
	return appendText(buf, src.item.kind.APIVersionOf(version)), true
}

func writeMetadata(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.below(ctx, buf, f, source{item: src.item})
}

func compileSpec(_ *compiler, f *field, on *typeInfo) {
	f.slot = body.SlotSpec
	f.inside = on.kind.spec
}

func compileStatus(_ *compiler, f *field, on *typeInfo) {
	f.slot = body.SlotStatus
	f.inside = on.kind.status
}

func writeManifest(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	args, err := r.arguments(ctx, f)
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	out, err := r.manifestOf(ctx, f, src.item.body.Stored, service.ManifestFormat(value[string](args, "format")))
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	if len(out) > longValue {
		buf = r.room(ctx, f, buf, len(out))
	}
	return appendText(buf, out), true
}

func writeSpecJSON(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.partJSON(ctx, buf, f, src.item.body.Stored, r.engine.svc.SpecJSON)
}

func writeStatusJSON(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.partJSON(ctx, buf, f, src.item.body.Stored, r.engine.svc.StatusJSON)
}

// writeLink writes the next link of the resource.
func writeLink(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	it := src.item
	it.at++
	return r.linked(ctx, buf, f, it.links[it.at-1])
}

// linked writes the resource or the page of a link.
func (r *run) linked(ctx context.Context, buf []byte, f *field, l link) ([]byte, bool) {
	switch {
	case l.err != nil:
		return r.null(ctx, buf, f, l.err)
	case l.page != nil:
		return r.connection(ctx, buf, f, l.page)
	case l.item == nil:
		return buf, false
	}
	return r.resource(ctx, buf, f, l.item)
}

// compileConditions compiles the field conditions, whose value is in the status.
func compileConditions(_ *compiler, f *field, on *typeInfo) {
	if on.kind.Conditions() == nil {
		f.write = writeConstant
		f.constant = []byte("null")
		return
	}
	f.slot = body.SlotStatus
	f.inner, _ = on.kind.body.Fields[body.SlotStatus].Shape.Slot("conditions")
	f.inside = on.kind.status.below[f.inner]
}

// writeConditions writes the conditions of the status; an empty list if there are none yet.
func writeConditions(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	b := src.item.body
	if status := b.At(body.Root, f.slot); !status.IsZero() {
		if list := b.At(b.Object(status), f.inner); !list.IsZero() {
			return r.objects(ctx, buf, f, src.item, list)
		}
	}
	return append(buf, "[]"...), true
}

// writeAllowed writes the verbs that the caller may use on a resource.
func writeAllowed(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	rights, err := r.engine.svc.Reader.Rights(ctx)
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	r.charge(f, budget.Rights)
	buf = append(buf, '[')
	for i, v := range rights.Verbs(src.item.kind.Kind, src.item.body.Stored.Key) {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, string(v))
	}
	return append(buf, ']'), true
}

type manifest struct {
	of     *backend.Resource
	format service.ManifestFormat
	text   string
}

// manifestOf returns the manifest of a resource. It is rendered only once if several aliases select it.
func (r *run) manifestOf(
	ctx context.Context, f *field, stored *backend.Resource, format service.ManifestFormat,
) (string, error) {
	for i := range r.manifests {
		if m := &r.manifests[i]; m.of == stored && m.format == format {
			return m.text, nil
		}
	}
	r.count(f, manifestObjects)
	r.element(ctx, f)
	steps := len(stored.Body) / budget.JSONBytes
	if format != service.JSON {
		steps = budget.YAMLByte * len(stored.Body)
	}
	r.charge(f, steps)
	text, err := r.engine.svc.Manifest(stored, format)
	if err == nil {
		r.manifests[1] = r.manifests[0]
		r.manifests[0] = manifest{stored, format, text}
	}
	return text, err
}

// partJSON writes the spec or the status as JSON with stored names. read returns that JSON.
func (r *run) partJSON(ctx context.Context,
	buf []byte, f *field, stored *backend.Resource, read func(*backend.Resource) ([]byte, error),
) ([]byte, bool) {
	r.count(f, manifestObjects)
	r.element(ctx, f)
	r.charge(f, len(stored.Body)/budget.JSONBytes)
	raw, err := read(stored)
	if err != nil {
		return r.null(ctx, buf, f, err)
	}
	buf = r.room(ctx, f, buf, len(raw))
	return append(buf, raw...), raw != nil
}

// appendID appends a global id; see [kind.GlobalID].
func (r *run) appendID(buf []byte, key backend.Key) []byte {
	r.scratch = kind.AppendGlobalID(r.scratch[:0], key)
	buf = base64.RawURLEncoding.AppendEncode(append(buf, '"'), r.scratch)
	return append(buf, '"')
}

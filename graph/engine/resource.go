package engine

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// manifestObjects is the number of objects that a manifest counts as, by its cost.
const manifestObjects = 20

// resourceField writes a field of every kind, or a link.
func (r *run) resourceField(buf []byte, f *field, it *item) ([]byte, bool) {
	b := it.body
	switch f.op {
	case opID:
		return r.appendID(buf, b.Stored.Key), true
	case opSubKind:
		text := b.Text(b.At(body.Root, body.SlotSubKind))
		return appendText(buf, text), text != ""
	case opAPIVersion:
		return appendText(buf, f.kind.APIVersionOf(b.Text(b.At(body.Root, body.SlotVersion)))), true
	case opMetadata:
		return r.below(buf, f, &source{item: it})
	case opManifest:
		args, err := r.arguments(f)
		if err != nil {
			return r.null(buf, f, err)
		}
		text, err := r.manifestOf(f, b.Stored, service.ManifestFormat(value[string](args, "format")))
		if err != nil {
			return r.null(buf, f, err)
		}
		if len(text) > longValue {
			buf = r.room(f, buf, len(text))
		}
		return appendText(buf, text), true
	case opConditions:
		return r.conditions(buf, f, it)
	case opAllowed:
		return r.allowed(buf, f, b.Stored.Key)
	case opSpecJSON:
		return r.partJSON(buf, f, b.Stored, r.engine.svc.SpecJSON)
	case opStatusJSON:
		return r.partJSON(buf, f, b.Stored, r.engine.svc.StatusJSON)
	}
	it.at++
	return r.linked(buf, f, it.links[it.at-1])
}

// linked writes what a link leads to.
func (r *run) linked(buf []byte, f *field, l link) ([]byte, bool) {
	switch {
	case l.err != nil:
		return r.null(buf, f, l.err)
	case l.page != nil:
		return r.connection(buf, f, l.page)
	case l.item == nil:
		return buf, false
	}
	return r.resource(buf, f, l.item)
}

// conditions writes the conditions of the status, an empty list if it has none yet.
func (r *run) conditions(buf []byte, f *field, it *item) ([]byte, bool) {
	if status := it.body.At(body.Root, f.slot); !status.IsZero() {
		if list := it.body.At(it.body.Object(status), f.inner); !list.IsZero() {
			return r.objects(buf, f, it, list)
		}
	}
	return append(buf, "[]"...), true
}

// allowed writes the verbs that the caller may use on a resource.
func (r *run) allowed(buf []byte, f *field, key backend.Key) ([]byte, bool) {
	rights, err := r.engine.svc.Rights(r.ctx)
	if err != nil {
		return r.null(buf, f, err)
	}
	r.charge(f, budget.Rights)
	buf = append(buf, '[')
	for i, v := range rights.Verbs(f.kind.Kind, key) {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, string(v))
	}
	return append(buf, ']'), true
}

// manifest is a rendered manifest.
type manifest struct {
	of     *backend.Resource
	format service.ManifestFormat
	text   string
}

// manifestOf returns a manifest. It is rendered once for all aliases in a resource.
func (r *run) manifestOf(f *field, stored *backend.Resource, format service.ManifestFormat) (string, error) {
	for i := range r.manifests {
		if m := &r.manifests[i]; m.of == stored && m.format == format {
			return m.text, nil
		}
	}
	r.count(f, manifestObjects)
	r.element(f)
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

// partJSON writes the spec or the status in stored form.
func (r *run) partJSON(buf []byte, f *field, stored *backend.Resource, read func(*backend.Resource) ([]byte, error)) ([]byte, bool) {
	r.count(f, manifestObjects)
	r.element(f)
	r.charge(f, len(stored.Body)/budget.JSONBytes)
	raw, err := read(stored)
	if err != nil {
		return r.null(buf, f, err)
	}
	buf = r.room(f, buf, len(raw))
	return append(buf, raw...), raw != nil
}

// appendID writes a global id: see [kind.GlobalID].
func (r *run) appendID(buf []byte, key backend.Key) []byte {
	r.scratch = kind.AppendGlobalID(r.scratch[:0], key)
	buf = base64.RawURLEncoding.AppendEncode(append(buf, '"'), r.scratch)
	return append(buf, '"')
}

// metadataField writes a field of the metadata.
func (r *run) metadataField(buf []byte, f *field, b *body.Body) ([]byte, bool) {
	stored := b.Stored
	switch f.op {
	case opNamespace:
		return appendText(buf, stored.Namespace), stored.Namespace != ""
	case opName:
		return appendText(buf, stored.Name), true
	case opUID:
		return appendText(buf, stored.UID), true
	case opRevision:
		return append(appendRevision(append(buf, '"'), stored.Revision), '"'), true
	case opCreatedAt:
		return appendTime(buf, stored.CreatedAt)
	case opUpdatedAt:
		return appendTime(buf, stored.UpdatedAt)
	case opExpiresAt:
		return appendTime(buf, stored.ExpiresAt)
	}
	at := func(slot int) body.Span {
		if s := b.At(body.Root, body.SlotMetadata); !s.IsZero() {
			return b.At(b.Object(s), slot)
		}
		return body.Span{}
	}
	switch f.op {
	case opLabels:
		return r.entries(buf, f, sortedEntries(b, at(body.SlotLabels)))
	case opAnnotations:
		return r.entries(buf, f, sortedEntries(b, at(body.SlotAnnotations)))
	case opDescription:
		text := b.Text(at(body.SlotDescription))
		return appendText(buf, text), text != ""
	case opUpdatedBy:
		text := b.Text(at(body.SlotUpdatedBy))
		return appendText(buf, text), text != ""
	case opFinalizers:
		return appendScalars(buf, f, b, at(body.SlotFinalizers)), true
	case opDeletionRequestedAt:
		s := at(body.SlotDeletionRequestedAt)
		if s.IsZero() {
			return buf, false
		}
		return appendStoredTime(buf, b.Bytes(s))
	}
	if s := at(body.SlotGeneration); !s.IsZero() {
		return appendScalar(buf, b.Bytes(s)), true
	}
	return append(buf, '0'), true
}

func appendRevision(buf []byte, r backend.Revision) []byte {
	if r.IsZero() {
		return buf
	}
	buf = strconv.AppendUint(buf, r.Epoch, 10)
	return strconv.AppendUint(append(buf, '-'), r.Seq, 10)
}

// sortedEntries returns the entries of a map, by key.
func sortedEntries(b *body.Body, s body.Span) []entry {
	var out []entry
	for k, v := range b.Entries(s) {
		out = append(out, entry{k, v})
	}
	slices.SortStableFunc(out, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	// If a key is stored twice, the last value counts.
	for i := len(out) - 1; i > 0; i-- {
		if out[i].key == out[i-1].key {
			out = slices.Delete(out, i-1, i)
		}
	}
	return out
}

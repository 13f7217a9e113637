package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// metadataFields returns the fields of the metadata of a resource.
func metadataFields() fieldTable {
	return fieldTable{
		"namespace":           {write: writeNamespace},
		"name":                {write: writeName},
		"uid":                 {write: writeUID},
		"revision":            {write: writeRevision},
		"generation":          {write: writeGeneration},
		"labels":              {write: writeLabels},
		"annotations":         {write: writeAnnotations},
		"description":         {write: metadataText(body.SlotDescription)},
		"createdAt":           {write: writeCreatedAt},
		"updatedAt":           {write: writeUpdatedAt},
		"expiresAt":           {write: writeExpiresAt},
		"deletionRequestedAt": {write: writeDeletionRequestedAt},
		"finalizers":          {write: writeFinalizers},
		"updatedBy":           {write: metadataText(body.SlotUpdatedBy)},
	}
}

func writeNamespace(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	namespace := src.item.body.Stored.Namespace
	return appendText(buf, namespace), namespace != ""
}

func writeName(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendText(buf, src.item.body.Stored.Name), true
}

func writeUID(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendText(buf, src.item.body.Stored.UID), true
}

func writeRevision(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return append(appendRevision(append(buf, '"'), src.item.body.Stored.Revision), '"'), true
}

func writeCreatedAt(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendTime(buf, src.item.body.Stored.CreatedAt)
}

func writeUpdatedAt(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendTime(buf, src.item.body.Stored.UpdatedAt)
}

func writeExpiresAt(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendTime(buf, src.item.body.Stored.ExpiresAt)
}

// metadataSpan returns the position of a value in the stored metadata; zero if it is absent.
func metadataSpan(b *body.Body, slot int) body.Span {
	if s := b.At(body.Root, body.SlotMetadata); !s.IsZero() {
		return b.At(b.Object(s), slot)
	}
	return body.Span{}
}

// metadataText returns the writer of a string in the stored metadata.
func metadataText(slot int) fieldWriter {
	return optionalText(func(src source) string {
		return src.item.body.Text(metadataSpan(src.item.body, slot))
	})
}

func writeLabels(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	b := src.item.body
	return r.entries(ctx, buf, f, sortedEntries(b, metadataSpan(b, body.SlotLabels)))
}

func writeAnnotations(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	b := src.item.body
	return r.entries(ctx, buf, f, sortedEntries(b, metadataSpan(b, body.SlotAnnotations)))
}

func writeFinalizers(_ context.Context, _ *run, buf []byte, f *field, src source) ([]byte, bool) {
	b := src.item.body
	return appendScalars(buf, f, b, metadataSpan(b, body.SlotFinalizers)), true
}

func writeDeletionRequestedAt(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	b := src.item.body
	s := metadataSpan(b, body.SlotDeletionRequestedAt)
	if s.IsZero() {
		return buf, false
	}
	return appendStoredTime(buf, b.Bytes(s))
}

func writeGeneration(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	b := src.item.body
	if s := metadataSpan(b, body.SlotGeneration); !s.IsZero() {
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

// sortedEntries returns the entries of a map, sorted by key.
func sortedEntries(b *body.Body, s body.Span) []entry {
	var out []entry
	for k, v := range b.Entries(s) {
		out = append(out, entry{k, v})
	}
	slices.SortStableFunc(out, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	// If a key is repeated, its last value counts.
	for i := len(out) - 1; i > 0; i-- {
		if out[i].key == out[i-1].key {
			out = slices.Delete(out, i-1, i)
		}
	}
	return out
}

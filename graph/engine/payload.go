package engine

import (
	"context"
	"encoding/json"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// written is the result of a mutation. The payload is written from it.
type written struct {
	*service.Written
	field      *field
	mutationID *string
	// item is the stored resource or, in a dry run, the resource that would be stored. It is nil if the resource cannot
	// be read, or if the caller may not read it.
	item *item
	// blockers has a page of the resources that prevent a deletion for each field that selects such resources.
	blockers map[*field]link
}

// payloadFields returns the fields of the payload of a mutation.
func payloadFields() fieldTable {
	return fieldTable{
		"clientMutationId": {write: writeMutationID},
		singularName:       {write: writeWritten, read: readWritten},
		"resource":         {write: writeWritten, read: readWritten},
		"preview":          {write: writePreview},
		"warnings":         {write: writeWarnings},
		"outcome":          {write: text(func(src source) string { return string(src.root.written.Outcome) })},
		"dryRun":           {write: boolean(func(src source) bool { return src.root.written.DryRun })},
		"created": {write: boolean(func(src source) bool {
			return src.root.written.Outcome == service.Created
		})},
		"state":             {write: text(func(src source) string { return string(src.root.written.Deletion) })},
		deletedIDName:       {write: writeDeletedID},
		"deletedResourceId": {write: writeDeletedID},
		"blockedBy":         {write: writeBlockers, read: readBlockers, compile: compileConnection},
	}
}

func warningFields() fieldTable {
	return fieldTable{
		"code":    {write: text(func(src source) string { return string(src.warning().Code) })},
		"message": {write: text(func(src source) string { return src.warning().Message })},
		"path":    {write: writeWarningPath},
		"field":   {write: writeWarningField},
	}
}

// previewFields returns the fields of a preview, the resource that a dry run would have stored.
func previewFields() fieldTable {
	return fieldTable{
		"kind":       {write: writePreviewKind},
		"namespace":  {write: writeNamespace},
		"name":       {write: writeName},
		"uid":        {write: optionalText(func(src source) string { return src.item.body.Stored.UID })},
		"generation": {write: writeGeneration},
		"specJSON":   {write: writeSpecJSON},
		"statusJSON": {write: writeStatusJSON},
		"manifest":   {write: writeManifest, compile: compileArguments},
	}
}

func writeMutationID(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendOptional(buf, src.root.written.mutationID)
}

// readWritten adds the stored resource of a mutation to the next level of the answer.
func readWritten(_ context.Context, r *run, f *field, w *written) {
	if w.item != nil && !w.DryRun {
		r.enqueue(w.item, f.on(w.item.kind))
	}
}

func writeWritten(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	w := src.root.written
	switch {
	case w.DryRun:
		return buf, false
	case w.item != nil:
		return r.resourceOn(ctx, buf, f, w.item)
	case w.Deletion == "" && w.Resource != nil:
		return r.null(ctx, buf, f, unreadable(w))
	}
	return buf, false
}

func writePreview(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	w := src.root.written
	if !w.DryRun || w.item == nil {
		return buf, false
	}
	r.count(f, 1)
	return r.below(ctx, buf, f, source{item: w.item})
}

func writePreviewKind(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return append(buf, src.item.kind.quoted...), true
}

func writeDeletedID(_ context.Context, r *run, buf []byte, _ *field, src source) ([]byte, bool) {
	w := src.root.written
	if w.Resource == nil || w.DryRun || w.Deletion != service.Deleted {
		return buf, false
	}
	return r.appendID(buf, w.Resource.Stored.Key), true
}

// readBlockers reads a page of the resources that prevent a deletion.
func readBlockers(ctx context.Context, r *run, f *field, w *written) {
	w.blockers[f] = r.blockers(ctx, f, w.Written)
}

func writeBlockers(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.linked(ctx, buf, f, src.root.written.blockers[f])
}

func writeWarnings(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	return r.list(ctx, buf, f, len(src.root.written.Warnings), func(i int) source {
		return source{root: src.root, index: i}
	}), true
}

func (src source) warning() *failure.Warning { return &src.root.written.Warnings[src.index] }

// warningPath returns the path of a warning, beginning with an argument; nil if it has none.
func warningPath(src source) []any {
	return inArguments(src.root.written.field, src.warning().Path)
}

func writeWarningPath(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	path := warningPath(src)
	if path == nil {
		return buf, false
	}
	raw, _ := json.Marshal(path) // names and indexes always marshal
	return append(buf, raw...), true
}

func writeWarningField(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	path := warningPath(src)
	if path == nil {
		return buf, false
	}
	return appendText(buf, failure.Text(path)), true
}

// unreadable returns the error of a resource that was stored but cannot be read.
func unreadable(w *written) error {
	err := failure.Of(backend.ErrUnreadable, w.Resource.Stored.Key)
	err.Outcome = failure.OutcomeApplied
	return err
}

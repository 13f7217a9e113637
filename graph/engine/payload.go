package engine

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// written is the result of a mutation.
type written struct {
	*service.Written
	field      *field
	mutationID *string
	// item is the resource that was stored, or with DryRun would be; nil if there is none to show: it cannot be read, or the
	// caller may not read it.
	item *item
	// blockers are the pages of the resources for which a deletion waits, by the fields that show them.
	blockers map[*field]link
}

// payloadField writes a field of the payload of a mutation.
func (r *run) payloadField(buf []byte, f *field, w *written) ([]byte, bool) {
	switch f.op {
	case opMutationID:
		return r.text(buf, w.mutationID)
	case opWritten:
		switch {
		case w.DryRun:
			return buf, false
		case w.item != nil:
			return r.resourceOn(buf, f, w.item)
		case w.Deletion == "" && w.Resource != nil:
			return r.null(buf, f, unreadable(w))
		}
		return buf, false
	case opPreview:
		if !w.DryRun || w.item == nil {
			return buf, false
		}
		r.count(f, 1)
		return r.below(buf, f, &source{item: w.item})
	case opWarnings:
		return r.list(buf, f, len(w.Warnings), func(i int) source { return source{warning: &w.Warnings[i], written: w} }), true
	case opOutcome:
		return appendText(buf, string(w.Outcome)), true
	case opDryRun:
		return strconv.AppendBool(buf, w.DryRun), true
	case opCreated:
		return strconv.AppendBool(buf, w.Outcome == service.Created), true
	}
	switch {
	case f.op == opDeletion:
		return appendText(buf, string(w.Deletion)), true
	case f.op == opBlockers:
		return r.linked(buf, f, w.blockers[f])
	case w.Resource == nil || w.DryRun || w.Deletion != service.Deleted:
		return buf, false
	}
	return r.appendID(buf, w.Resource.Stored.Key), true // opDeletedID
}

// warningField writes a field of a warning.
func (r *run) warningField(buf []byte, f *field, src *source) ([]byte, bool) {
	path := inArguments(src.written.field, src.warning.Path)
	switch {
	case f.op == opWarningCode:
		return appendText(buf, string(src.warning.Code)), true
	case f.op == opMessage:
		message := src.warning.Message
		if stored := src.warning.Path; stored != "" {
			message = strings.ReplaceAll(message, stored, inAPI(src.written.field, stored))
		}
		return appendText(buf, message), true
	case path == nil:
		return buf, false
	case f.op == opPlaceText:
		return appendText(buf, failure.Text(path)), true
	}
	raw, _ := json.Marshal(path) // names and indexes always marshal
	return append(buf, raw...), true
}

// previewField writes a field that only previews have.
func previewField(buf []byte, f *field, it *item) ([]byte, bool) {
	if f.op == opPreviewKind {
		return append(buf, it.kind.quoted...), true
	}
	uid := it.body.Stored.UID
	return appendText(buf, uid), uid != ""
}

// unreadable returns the error of a resource that was stored and cannot be read back.
func unreadable(w *written) error {
	err := failure.Of(backend.ErrUnreadable, w.Resource.Stored.Key)
	err.Outcome = failure.OutcomeApplied
	return err
}

// changeField writes a field of an event of a stream of changes.
func (r *run) changeField(buf []byte, f *field, c *change.Change) ([]byte, bool) {
	switch f.op {
	case opChangeType:
		return appendText(buf, string(c.Type)), true
	case opChangeCursor:
		return appendText(buf, c.Cursor), c.Cursor != ""
	case opChangeRevision:
		return appendText(buf, c.Revision), c.Revision != ""
	case opChangeID:
		if c.Key == (backend.Key{}) {
			return buf, false
		}
		return r.appendID(buf, c.Key), true
	}
	b, err := c.Body()
	if err != nil {
		return r.null(buf, f, err)
	}
	if b == nil {
		return buf, false
	}
	it := r.newItem(b, f)
	r.resolve()
	return r.resource(buf, f, it)
}

package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// A resource is damaged if it cannot be read. Either its record does not decode, or its body does not match the
// declaration of its kind. If the record does not decode, the store knows only its key and returns
// [backend.ErrUnreadable]. Each damaged resource is counted and logged once: see [kind.Unreadable].
//
//	get         returns UNREADABLE
//	list        leaves the resource out and does not count it
//	stream      DELETED is sent without a body; the body of another event is UNREADABLE
//	update,     return UNREADABLE: the stored state is needed, and so is its revision
//	patch
//	upsert,     without an expected revision: replace the whole resource. A record that does not
//	apply       decode is deleted first, and created by the next attempt
//	delete      with an expected revision: UNREADABLE if the record does not decode.
//	            Without: deletes it; which resources rely on it cannot be known if the record
//	            does not decode
//	reference   a target that does not decode counts as not ready, so the referrer waits. No batch
//	            checks the target, because a store cannot check conditions of such a record
//	guard       a referrer that does not decode counts as bound to the resource, so the deletion
//	            of the resource waits
//	reconcile   skips the resource
//
// Sensitive values are damaged if their record does not decode or belongs to another resource. If only their key is
// missing, they are not damaged ([backend.ErrEncrypted]): the key may come back, so every write keeps them unless it
// replaces all of them.

// replaceable reports whether a write may replace a resource that could not be read because of err. It may if the
// resource is damaged and the write expects no revision.
func replaceable(err error, expected *string) bool {
	return expected == nil && errors.Is(err, backend.ErrUnreadable)
}

// present returns the resource for the answer to a write. The resource has no body if parts that the write kept cannot
// be read. Another version of the gateway may have stored such parts.
func (wr *Writer) present(k *kind.Kind, stored *backend.Resource) *query.Resource {
	b, err := k.Body.Read(stored)
	if err != nil {
		wr.unreadable.Note(stored, err)
	}
	return &query.Resource{Stored: stored, Body: b}
}

// deleteUnreadable deletes a resource whose record does not decode.
func (w *write) deleteUnreadable(ctx context.Context) (*Written, error) {
	wr := w.writer
	unreadable := &storedResource{Resource: &backend.Resource{Key: w.key}}
	if err := wr.loader.loadSensitive(ctx, w.kind, unreadable); err != nil {
		return nil, err
	}
	actions := []backend.Action{{Key: w.key, If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}}
	deleted, err := wr.send(ctx, append(actions, unreadable.removalOfSensitive()...)...)
	if err != nil {
		return nil, w.failed(err)
	}
	return &Written{Resource: wr.present(w.kind, deleted), Deletion: Deleted}, nil
}

// discard deletes a resource whose record does not decode, if the write that replaces it is valid. Then it returns
// errRaced, so that the next attempt creates the resource. In a dry run it deletes nothing and returns the answer.
func (w *write) discard(ctx context.Context) (*Written, error) {
	if err := w.validateNew(ctx); err != nil {
		return nil, err
	}
	if w.dryRun {
		return w.wouldDiscard(ctx)
	}
	if w.isOwned() {
		return nil, w.replaceUnreadable(ctx)
	}
	if _, err := w.deleteUnreadable(ctx); err != nil && !errors.Is(err, backend.ErrNotFound) {
		return nil, err
	}
	return nil, errRaced
}

// wouldDiscard returns the answer to a dry run of discard: the resource that would be created.
func (w *write) wouldDiscard(ctx context.Context) (*Written, error) {
	a := w.attempt(nil)
	a.next = w.newState()
	would, err := a.commit(ctx)
	if err != nil {
		return nil, failure.Of(err, w.key)
	}
	out := &Written{
		Outcome:  Updated,
		Warnings: a.warnings,
		DryRun:   true,
		Resource: w.writer.present(w.kind, would),
	}
	return out, nil
}

// overwrite replaces a resource whose body cannot be read by the content of the request. It keeps only the stored
// expiry, unless the caller sets one.
func (a *attempt) overwrite(ctx context.Context) (*Written, error) {
	if err := a.validateNew(ctx); err != nil {
		return nil, err
	}
	a.next = a.newState()
	a.next.Meta.Generation = 0 // storeChange increments it
	if !a.meta.expiresAt.Set {
		a.next.ExpiresAt = a.current.ExpiresAt
	}
	a.specChanged = true
	return a.storeChange(ctx)
}

package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// A resource is damaged if it cannot be read: its record does not decode, so that the store
// knows nothing of it but the key and answers [backend.ErrUnreadable]; or its body is not
// what its kind declares. Each is counted and logged once: see [kind.Unreadable].
//
//	get         UNREADABLE
//	list        left out, and not counted
//	stream      DELETED is an event without a body; the body of any other is UNREADABLE
//	update,     UNREADABLE: what cannot be read cannot be changed, nor compared with
//	patch       a revision
//	upsert,     without a revision: replaced as a whole. A record that does not decode is
//	apply       deleted first, and created by the next attempt
//	delete      with a revision: as update, if the record does not decode. Without: deleted; of
//	            a record that does not decode nobody can tell who relies on it
//	reference   a target that does not decode is waited for, as one that is not ready; no
//	            batch checks it, for a store can judge no condition of it
//	guard       a referrer that does not decode counts as bound to the resource, whose
//	            deletion waits for it
//	reconcile   passed over
//
// Sensitive values are damaged if their record does not decode, or is not of this resource.
// Without their key they are encrypted, not damaged ([backend.ErrEncrypted]): the key may
// come back, so they are kept by all writes that do not replace all of them.

// replaceable reports whether a write may replace a damaged resource: it expects no revision.
func replaceable(err error, expected *string) bool {
	return expected == nil && errors.Is(err, backend.ErrUnreadable)
}

// present returns the resource for the answer to a write. If parts that were kept cannot
// be read, because another version of the gateway stored them, it has no body.
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

// discard deletes a resource whose record does not decode, so that the next attempt can create it.
// It returns errRaced after success, or the error of the write or the store.
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

// wouldDiscard answers the dry run of discard with the resource that would be created.
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

// overwrite replaces a body that cannot be read by what was sent, without keeping anything.
func (a *attempt) overwrite(ctx context.Context) (*Written, error) {
	if err := a.validateNew(ctx); err != nil {
		return nil, err
	}
	a.next = a.newState()
	a.next.Meta.Generation = 0 // storeChange counts it
	if !a.meta.expiresAt.Set {
		a.next.ExpiresAt = a.current.ExpiresAt
	}
	a.specChanged = true
	return a.storeChange(ctx)
}

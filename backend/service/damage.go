package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
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

// replaceable reports whether a write may replace a damaged resource: the caller expects no revision of
// it.
func replaceable(err error, expected *string) bool {
	return expected == nil && errors.Is(err, backend.ErrUnreadable)
}

// present returns the answer to a write. What was stored can be read, unless an older or
// newer gateway stored the parts that stay; then the answer has no body.
func (s *Service) present(k *kind.Kind, stored *backend.Resource) *query.Resource {
	b, err := k.Body.Read(stored)
	if err != nil {
		s.unreadable.Note(stored, err)
	}
	return &query.Resource{Stored: stored, Body: b}
}

// deleteDamaged deletes a resource whose record does not decode.
func (s *Service) deleteDamaged(ctx context.Context, k *kind.Kind, key backend.Key) (*Written, error) {
	damaged := &stored{Resource: &backend.Resource{Key: key}}
	if err := s.loadSensitive(ctx, k, damaged); err != nil {
		return nil, err
	}
	actions := []backend.Action{{Key: key, If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}}
	res, err := s.sender.Apply(ctx, append(actions, damaged.removalOfSensitive()...)...)
	if err != nil {
		return nil, answerTo(err, key)
	}
	return &Written{Resource: s.present(k, res.Resources[0]), Deletion: Deleted}, nil
}

// discard deletes a resource whose record does not decode, so that the intent can create it:
// it returns errRaced, or the error of the intent or the store.
func (s *Service) discard(ctx context.Context, in *intent) (*Written, error) {
	if err := in.judge(ctx, nil).Err(in.key); err != nil {
		return nil, err
	}
	if in.dryRun {
		would, err := s.storeState(ctx, in.newWrite(), in.newState(), true)
		if err != nil {
			return nil, failure.Of(err, in.key)
		}
		return &Written{Outcome: Updated, Warnings: in.warnings, DryRun: true, Resource: s.present(in.kind, would)}, nil
	}
	if _, err := s.deleteDamaged(ctx, in.kind, in.key); err != nil && !errors.Is(err, backend.ErrNotFound) {
		return nil, err
	}
	return nil, errRaced
}

// rewrite stores an intent in the place of a damaged body, of which nothing can be kept.
func (s *Service) rewrite(ctx context.Context, in *intent, damaged *stored) (*Written, error) {
	if err := in.judge(ctx, nil).Err(in.key); err != nil {
		return nil, err
	}
	next := &kind.State{SubKind: in.subKind, Spec: in.spec, Meta: in.meta.applyTo(body.Metadata{}), ExpiresAt: damaged.ExpiresAt}
	if in.meta.expiresAt.Set {
		next.ExpiresAt = in.meta.expiresAt.Value
	}
	return s.save(ctx, in, damaged, next, true)
}

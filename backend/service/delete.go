package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// Delete removes a resource. One that others rely on, or that finalizers hold, stays
// until they do not: its deletion is requested.
func (s *Service) Delete(ctx context.Context, req DeleteRequest) (*Written, error) {
	k, key, err := s.kinds.Resolve(req.Identity)
	if err != nil {
		return nil, err
	}
	if _, err := s.authorize(ctx, k, descriptor.VerbDelete, key); err != nil {
		return nil, err
	}
	if err := s.awaitBindings(ctx, key); err != nil {
		return nil, err
	}
	if req.DryRun {
		return s.requestDeletion(ctx, k, key, req)
	}
	return s.repeat(ctx, key, func() (*Written, error) {
		// The store knows which resources are bound to this one, even by references that this
		// gateway's catalogue does not declare.
		actions := []backend.Action{{Key: key, If: backend.Condition{Presence: backend.Present, Unreferenced: true, Unfinalized: true}, Op: backend.OpDelete}}
		var current *stored
		if req.ExpectedRevision != nil || k.Sensitive {
			var err error
			if current, err = s.loadForDelete(ctx, k, key, req.ExpectedRevision); err != nil {
				return nil, err
			}
			if current == nil {
				return s.deleteDamaged(ctx, k, key)
			}
			actions[0].If.Revision = current.Revision
			actions = append(actions, current.removalOfSensitive()...)
		}
		res, err := s.sender.Apply(ctx, actions...)
		switch {
		case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrFinalized):
			return s.requestDeletion(ctx, k, key, req)
		case current == nil && replaceable(err, req.ExpectedRevision):
			return s.deleteDamaged(ctx, k, key)
		case err != nil:
			return nil, answerTo(err, key)
		}
		return &Written{Resource: s.present(k, res.Resources[0]), Deletion: Deleted}, nil
	})
}

// awaitBindings waits until the store guards a resource by the newest declarations.
func (s *Service) awaitBindings(ctx context.Context, key backend.Key) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RetryTimeout)
	defer cancel()
	return s.reconciler.AwaitBindings(ctx, key)
}

// Rebinding reports whether references of a kind are still to be taken by the declarations of this gateway's catalogue,
// which is the newest: until then the store guards what the earlier declarations guard.
func (s *Service) Rebinding(ctx context.Context, name string) (bool, error) {
	k, err := s.kinds.Find(name)
	if err != nil {
		return false, err
	}
	yes, err := s.reconciler.Rebinding(ctx, k)
	if err != nil {
		return false, failure.Of(err, backend.Key{Kind: k.Name})
	}
	return yes, nil
}

// loadForDelete loads the resource that is to be deleted, at the expected revision if there is one; nil
// for a record that does not decode.
func (s *Service) loadForDelete(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*stored, error) {
	current, err := s.load(ctx, k, key)
	switch {
	case replaceable(err, expected):
		return nil, nil
	case err != nil:
		return nil, err
	case current == nil:
		return nil, failure.Of(backend.ErrNotFound, key)
	case expected != nil:
		return current, expect(*expected, current.Resource)
	}
	return current, nil
}

// deletionOf returns how far a deletion would come now: Pending while others rely on it, Finalizing while
// only finalizers hold it.
func (s *Service) deletionOf(ctx context.Context, r *backend.Resource) (Deletion, error) {
	page, err := s.cfg.Store.Range(ctx, backend.Range{Referenced: &r.Key, BoundOnly: true, Limit: 2, Bare: true})
	switch {
	case err != nil:
		return "", failure.Of(err, r.Key)
	case len(page.Unreadable) > 0 || slices.ContainsFunc(page.Resources, func(o *backend.Resource) bool { return o.Key != r.Key }):
		return Pending, nil
	case r.Finalizers > 0:
		return Finalizing, nil
	}
	return Deleted, nil
}

// requestDeletion notes that a resource is to go once nothing holds it. It answers
// errRaced if it changed meanwhile, and if nothing holds it any more. A dry run gets the answer that a delete
// would get.
func (s *Service) requestDeletion(ctx context.Context, k *kind.Kind, key backend.Key, req DeleteRequest) (*Written, error) {
	current, err := s.loadForDelete(ctx, k, key, req.ExpectedRevision)
	switch {
	case err != nil:
		return nil, err
	case current == nil && req.DryRun:
		return &Written{DryRun: true, Deletion: Deleted}, nil
	case current == nil:
		return s.deleteDamaged(ctx, k, key)
	}
	stored := current.Resource
	deletion, err := s.deletionOf(ctx, stored)
	switch {
	case err != nil, req.DryRun:
	case deletion == Deleted:
		err = errRaced
	case !stored.Deleting:
		stored, err = s.markDeleting(ctx, k, current, deletion == Finalizing)
	}
	if err != nil {
		return nil, err
	}
	return &Written{DryRun: req.DryRun, Deletion: deletion, Resource: s.present(k, stored)}, nil
}

// markDeleting stores that the deletion of a resource was requested; with finalizing
// also that it waits for finalizers alone.
func (s *Service) markDeleting(ctx context.Context, k *kind.Kind, current *stored, finalizing bool) (*backend.Resource, error) {
	was, err := kind.StateOf(current.Resource)
	if err != nil {
		return nil, failure.Of(err, current.Key)
	}
	next := was.WithMetadata(was.Meta)
	next.Meta.DeletionRequestedAt = s.clock().UTC().Truncate(time.Millisecond)
	if finalizing {
		next = s.reconciler.Finalizing(k, next)
	}
	put, err := reconcile.Rewrite(k, current.Resource, next)
	if err != nil {
		return nil, failure.Of(err, current.Key)
	}
	put.Put.Deleting, put.If.Unreferenced = true, finalizing
	res, err := s.sender.Apply(ctx, put)
	switch {
	case errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return nil, errRaced
	case err != nil:
		return nil, answerTo(err, current.Key)
	}
	return res.Resources[0], nil
}

package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/attempt"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// Delete removes a resource. One that others rely on, or that finalizers hold, stays
// until they do not: its deletion is requested.
func (s *Service) Delete(ctx context.Context, c access.Caller, req DeleteRequest) (*Written, error) {
	k, key, err := s.kinds.Resolve(req.Identity)
	if err != nil {
		return nil, err
	}
	if err := access.Authorize(ctx, c, k.Kind, descriptor.VerbDelete); err != nil {
		return nil, err
	}
	if req.DryRun {
		return s.wouldDelete(ctx, k, key, req.ExpectedRevision)
	}
	return s.repeat(ctx, key, func() (*Written, error) {
		actions := []backend.Action{{Key: key, If: removable(), Op: backend.OpDelete}}
		var current *stored
		if req.ExpectedRevision != nil || k.Sensitive {
			var err error
			if current, err = s.loadForDelete(ctx, k, key, req.ExpectedRevision); err != nil {
				return nil, err
			}
			if actions, err = s.removal(ctx, k, key, current); err != nil {
				return nil, err
			}
		}
		res, err := s.sender.Apply(ctx, actions...)
		switch {
		case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrFinalized):
			return s.requestDeletion(ctx, k, key, req.ExpectedRevision)
		case errors.Is(err, backend.ErrUnreadable) && current == nil && req.ExpectedRevision == nil:
			return s.deleteDamaged(ctx, k, key)
		case attempt.Raced(err, key):
			return nil, errRaced
		case errors.Is(err, attempt.ErrLost):
			return nil, err
		case err != nil:
			return nil, failure.Of(err, key)
		}
		return &Written{Resource: s.present(k, res.Resources[0]), Deletion: Deleted}, nil
	})
}

// removable is the condition for deleting a resource at once. The store knows which resources
// are bound to it, even by references that this gateway's catalogue does not declare.
func removable() backend.Condition {
	return backend.Condition{Presence: backend.Present, Unreferenced: true, Unfinalized: true}
}

// loadForDelete loads what is to be deleted, at the revision that is expected, if one is;
// nil for what does not decode.
func (s *Service) loadForDelete(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*stored, error) {
	current, err := s.load(ctx, k, key)
	switch {
	case errors.Is(err, backend.ErrUnreadable) && expected == nil:
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

// wouldDelete says what a delete would remove, or would wait for.
func (s *Service) wouldDelete(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*Written, error) {
	current, err := s.loadForDelete(ctx, k, key, expected)
	if err != nil {
		return nil, err
	}
	out := &Written{DryRun: true, Deletion: Deleted}
	if current == nil {
		return out, nil
	}
	out.Resource = s.present(k, current.Resource)
	held, err := s.relied(ctx, key)
	switch {
	case err != nil:
		return nil, failure.Of(err, key)
	case held:
		out.Deletion = Pending
	case current.Finalizers > 0:
		out.Deletion = Finalizing
	}
	return out, nil
}

// relied says whether others rely on a resource.
func (s *Service) relied(ctx context.Context, key backend.Key) (bool, error) {
	page, err := s.cfg.Store.Range(ctx, backend.Range{Referenced: &key, BoundOnly: true, Limit: 2, Bare: true})
	if err != nil {
		return false, err
	}
	return len(page.Unreadable) > 0 || slices.ContainsFunc(page.Resources, func(r *backend.Resource) bool { return r.Key != key }), nil
}

// removal deletes what the store has of a resource, nil for what does not decode, if
// that is still what is there.
func (s *Service) removal(ctx context.Context, k *kind.Kind, key backend.Key, current *stored) ([]backend.Action, error) {
	if current == nil {
		return s.removalOfDamaged(ctx, k, key)
	}
	condition := removable()
	condition.Revision = current.Revision
	out := []backend.Action{{Key: key, If: condition, Op: backend.OpDelete}}
	return append(out, current.removalOfSensitive()...), nil
}

// removalOfDamaged deletes a resource that does not decode.
func (s *Service) removalOfDamaged(ctx context.Context, k *kind.Kind, key backend.Key) ([]backend.Action, error) {
	damaged := &stored{Resource: &backend.Resource{Key: key}}
	if err := s.loadSensitive(ctx, k, damaged); err != nil {
		return nil, err
	}
	out := []backend.Action{{Key: key, If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}}
	return append(out, damaged.removalOfSensitive()...), nil
}

// deleteDamaged deletes a resource that does not decode, of which nobody can say what
// relies on it.
func (s *Service) deleteDamaged(ctx context.Context, k *kind.Kind, key backend.Key) (*Written, error) {
	actions, err := s.removalOfDamaged(ctx, k, key)
	if err != nil {
		return nil, err
	}
	res, err := s.sender.Apply(ctx, actions...)
	switch {
	case attempt.Raced(err, key):
		return nil, errRaced
	case errors.Is(err, attempt.ErrLost):
		return nil, err
	case err != nil:
		return nil, failure.Of(err, key)
	}
	return &Written{Resource: s.present(k, res.Resources[0]), Deletion: Deleted}, nil
}

// requestDeletion notes that a resource is to go once nothing holds it. It answers
// errRaced if it changed meanwhile, and if nothing holds it any more.
func (s *Service) requestDeletion(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*Written, error) {
	current, err := s.loadForDelete(ctx, k, key, expected)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return s.deleteDamaged(ctx, k, key)
	}
	held, err := s.relied(ctx, key)
	if err != nil {
		return nil, failure.Of(err, key)
	}
	out := &Written{Deletion: Pending}
	switch {
	case !held && current.Finalizers == 0:
		return nil, errRaced
	case !held:
		out.Deletion = Finalizing
	}
	stored := current.Resource
	if !current.Deleting {
		if stored, err = s.markDeleting(ctx, k, current, !held); err != nil {
			return nil, err
		}
	}
	out.Resource = s.present(k, stored)
	return out, nil
}

// markDeleting stores that the deletion of a resource was requested; with finalizing
// also that it waits for finalizers alone.
func (s *Service) markDeleting(ctx context.Context, k *kind.Kind, current *stored, finalizing bool) (*backend.Resource, error) {
	was, err := kind.StateOf(current.Resource)
	if err != nil {
		return nil, failure.Of(err, current.Key)
	}
	state := *was
	next := &state
	next.Meta.DeletionRequestedAt = s.cfg.Clock().UTC().Truncate(time.Millisecond)
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
	case attempt.Raced(err, current.Key), errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return nil, errRaced
	case errors.Is(err, attempt.ErrLost):
		return nil, err
	case err != nil:
		return nil, failure.Of(err, current.Key)
	}
	return res.Resources[0], nil
}

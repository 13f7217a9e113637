package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// Rewrite returns the action that replaces a stored resource by a state with the same spec. The action fails if the
// resource has changed.
func Rewrite(k *kind.Kind, stored *backend.Resource, next *kind.State) (backend.Action, error) {
	put, err := next.Put(k, stored.Key, stored, failure.StoredNames)
	return backend.Action{
		Key: stored.Key,
		Op:  backend.OpPut,
		If:  backend.Condition{Presence: backend.Present, Revision: stored.Revision},
		Put: put,
	}, err
}

// IsBound reports whether another resource is bound to the resource with a key. A referring resource that cannot be
// read counts as bound.
func (r *Reconciler) IsBound(ctx context.Context, key backend.Key) (bool, error) {
	page, err := r.cfg.Store.Range(ctx, backend.Range{Referenced: &key, BoundOnly: true, Limit: 2, Bare: true})
	if err != nil {
		return false, err
	}
	another := func(o *backend.Resource) bool { return o.Key != key }
	return len(page.Unreadable) > 0 || slices.ContainsFunc(page.Resources, another), nil
}

// IsGuarded reports whether other resources can be bound to resources of a kind. They can if the kind is the target of
// a guarded reference.
func (r *Reconciler) IsGuarded(kind string) bool { return len(r.guarding(kind)) > 0 }

// Finish deletes a resource whose deletion was requested, if nothing holds the resource any more. If only finalizers
// hold it, Finish stores conditions that name the finalizers, once. For a resource that a service owns, it calls
// Config.Remove instead. Several gateways may call Finish at the same time.
func (r *Reconciler) Finish(ctx context.Context, key backend.Key) error {
	k, err := r.cfg.Kinds.Find(key.Kind)
	if err != nil {
		return nil // this gateway does not know the kind; one that does finishes
	}
	if k.Service != "" {
		if r.cfg.Remove != nil {
			r.cfg.Remove(k, key)
		}
		return nil
	}
	for range maxAttempts {
		got, err := r.cfg.Store.Get(ctx, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			return nil
		case err != nil:
			return err
		case got[0] == nil || !got[0].Deleting:
			return nil
		}
		current := got[0]
		condition := backend.Condition{
			Presence:     backend.Present,
			UID:          current.UID,
			Deleting:     true,
			Unreferenced: true,
			Unfinalized:  true,
		}
		actions := []backend.Action{{Key: key, If: condition, Op: backend.OpDelete}}
		if k.Sensitive {
			got, err := r.cfg.Store.Get(ctx, key.Sensitive())
			if err != nil && !errors.Is(err, backend.ErrUnreadable) {
				return err
			}
			if err != nil || got[0] != nil {
				actions = append(
					actions,
					backend.Action{
						Key: key.Sensitive(),
						If:  backend.Condition{Presence: backend.Present},
						Op:  backend.OpDelete,
					},
				)
			}
		}
		_, err = r.cfg.Apply(ctx, actions...)
		switch {
		case errors.Is(err, backend.ErrFinalized):
			if done, err := r.announce(ctx, k, current); done || err != nil {
				return r.logUnstorable(key, err)
			}
		case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrNotFound),
			errors.Is(err, backend.ErrNotDeleting):
			return nil
		case errors.Is(err, sender.ErrLost), sender.Raced(err, key):
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// announce stores the conditions of a resource that only finalizers hold, unless the resource has them already. done is
// false if another writer has changed the resource meanwhile.
func (r *Reconciler) announce(ctx context.Context, k *kind.Kind, current *backend.Resource) (done bool, err error) {
	was, err := kind.StateOf(current)
	if err != nil || was.Meta.Finalizing {
		return true, nil
	}
	put, err := Rewrite(k, current, r.Finalizing(k, was))
	if err != nil {
		return true, err
	}
	put.If.Unreferenced = true
	_, err = r.cfg.Apply(ctx, put)
	switch {
	case errors.Is(err, sender.ErrLost), sender.Raced(err, current.Key):
		return false, nil
	case errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return true, nil
	}
	return true, err
}

// unstorable reports whether an error is caused by the state to be stored. Then a retry would fail too.
func unstorable(err error) bool {
	var known *failure.Error
	return errors.Is(err, backend.ErrTooLarge) || errors.Is(err, backend.ErrInvalid) ||
		errors.As(err, &known) && !known.Retryable
}

// logUnstorable handles an error which means that the new state of a resource cannot be stored: it logs the error and
// returns nil, so that other resources are still handled. It returns other errors.
func (r *Reconciler) logUnstorable(key backend.Key, err error) error {
	if !unstorable(err) {
		return err
	}
	r.cfg.Logger.Error("what a resource waits for cannot be stored", zap.Stringer("key", key), zap.Error(err))
	return nil
}

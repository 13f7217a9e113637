package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// Conclude looks at resources that were created and wait for nothing: a gateway that did not
// know yet whether a controller owns their kind may have said otherwise.
func (s *Service) Conclude(ctx context.Context, created []*backend.Resource) error {
	if err := s.knowOwners(ctx); err != nil {
		return err
	}
	for _, r := range created {
		k, err := s.kinds.Find(r.Kind)
		if err != nil || k.Conditions == nil || r.Deleting {
			continue
		}
		st, err := kind.StateOf(r)
		if err != nil || len(st.Meta.Waits) > 0 {
			continue
		}
		if !s.owners.controlled(k.Name) {
			if _, err := s.Settle(ctx, []*backend.Resource{r}, nil); err != nil && !errors.Is(err, reconcile.ErrNotNewest) { // the change wakes who waits for it
				return err
			}
			continue
		}
		if _, said := dependency.Renumbered(st.StoredStatus(), st.Meta.Generation, st.Meta.Generation, true); !said {
			continue
		}
		status := dependency.In(st.Status(), k.Conditions, dependency.Released(st.Meta.Generation), s.cfg.Clock())
		put, err := s.rewritten(k, r, st, st.WithStatus(status))
		if err == nil {
			_, err = s.apply(ctx, put...)
		}
		var failed *backend.ConditionError
		switch {
		case unstorable(err):
			s.passOver(r.Key, err)
		case err != nil && !errors.As(err, &failed): // else somebody has written since
			return err
		}
	}
	return nil
}

// Finish deletes a resource whose deletion waits, if nothing holds it any more. If
// finalizers alone do, its conditions say so, once. It is right whoever else does the
// same at the same time.
func (s *Service) Finish(ctx context.Context, key backend.Key) error {
	k, err := s.kinds.Find(key.Kind)
	if err != nil {
		return nil // this gateway does not know the kind; one that does finishes
	}
	for range maxSettleAttempts {
		condition := backend.Condition{Presence: backend.Present, Deleting: true, Unreferenced: true, Unfinalized: true}
		actions := []backend.Action{{Key: key, If: condition, Op: backend.OpDelete}}
		current, err := s.load(ctx, k, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			return nil
		case err != nil:
			return err
		case current == nil || !current.Deleting:
			return nil
		}
		actions[0].If.UID = current.UID
		actions = append(actions, current.removalOfSensitive()...)
		_, err = s.apply(ctx, actions...)
		switch {
		case errors.Is(err, backend.ErrFinalized):
			done, err := s.announce(ctx, k, current)
			if unstorable(err) {
				s.passOver(key, err)
				return nil
			}
			if done || err != nil {
				return err
			}
		case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrNotDeleting):
			return nil
		case errors.Is(err, errLost), raced(err, key):
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// announce says in the conditions of a resource that finalizers alone hold it, unless
// they have said so.
func (s *Service) announce(ctx context.Context, k *kind.Kind, current *stored) (done bool, err error) {
	was, err := kind.StateOf(current.Resource)
	if err != nil || was.Meta.Finalizing {
		return true, nil
	}
	put, err := s.rewritten(k, current.Resource, was, s.finalizing(k, was))
	if err != nil {
		return true, err
	}
	put[0].If.Unreferenced = true
	_, err = s.apply(ctx, put...)
	switch {
	case errors.Is(err, errLost), raced(err, current.Key):
		return false, nil
	case errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return true, nil
	}
	return true, err
}

package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Delete removes a resource.
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
		actions := []backend.Action{{Key: key, If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}}
		if req.ExpectedRevision != nil || k.Sensitive {
			var err error
			if actions, err = s.removal(ctx, k, key, req.ExpectedRevision); err != nil {
				return nil, err
			}
		}
		res, err := s.apply(ctx, actions...)
		switch {
		case raced(err):
			return nil, errRaced
		case errors.Is(err, errLost):
			return nil, err
		case err != nil:
			return nil, failure.Of(err, key)
		}
		return &Written{Resource: s.present(k, res.Resources[0])}, nil
	})
}

// doomed loads what is to be deleted, at the revision that is expected, if one is;
// nil for what does not decode.
func (s *Service) doomed(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*stored, error) {
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

// wouldDelete says what a delete would remove.
func (s *Service) wouldDelete(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) (*Written, error) {
	current, err := s.doomed(ctx, k, key, expected)
	if err != nil {
		return nil, err
	}
	out := &Written{DryRun: true}
	if current != nil {
		out.Resource = s.present(k, current.Resource)
	}
	return out, nil
}

// removal deletes what the store has of a resource, if it is still what is there
// now and has the revision that is expected, if one is.
func (s *Service) removal(ctx context.Context, k *kind.Kind, key backend.Key, expected *string) ([]backend.Action, error) {
	current, err := s.doomed(ctx, k, key, expected)
	switch {
	case err != nil:
		return nil, err
	case current == nil:
		return s.removalOfDamaged(ctx, k, key)
	}
	out := []backend.Action{{Key: key, If: backend.Condition{Presence: backend.Present, Revision: current.Revision}, Op: backend.OpDelete}}
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

// raced says whether a batch failed since another writer came in between.
func raced(err error) bool {
	var failed *backend.ConditionError
	return errors.Is(err, backend.ErrConflict) || errors.As(err, &failed) && failed.Key.IsSensitive()
}

package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Controlled reports whether a controller declares the resources of a kind ready.
func (s *Service) Controlled(ctx context.Context, name string) (bool, error) {
	k, err := s.kinds.Find(name)
	if err != nil {
		return false, err
	}
	yes, err := s.reconciler.Controlled(ctx, k)
	if err != nil {
		return false, failure.Of(err, backend.Key{})
	}
	return yes, nil
}

// SetControlled gives the resources of a kind to a controller, or takes them back.
// Other gateways of the store follow within seconds.
func (s *Service) SetControlled(ctx context.Context, c access.Caller, name string, controlled bool) error {
	k, err := s.kinds.Find(name)
	if err != nil {
		return err
	}
	rights, err := s.Rights(ctx, c)
	if err == nil {
		err = failure.About(rights.UseAll(k.Kind, descriptor.VerbControl), "kind")
	}
	if err != nil {
		return err
	}
	err = s.reconciler.SetControlled(ctx, k, controlled)
	switch {
	case errors.Is(err, backend.ErrConflict):
		return failure.Of(err, backend.Key{Kind: k.Name})
	case err != nil:
		return failure.Of(err, backend.Key{})
	}
	s.cfg.Controlled(ctx, k.Name, controlled)
	return nil
}

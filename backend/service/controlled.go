package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Controlled reports whether a controller declares the resources of a kind ready.
func (s *Service) Controlled(ctx context.Context, c access.Caller, name string) (bool, error) {
	k, err := s.kindFor(ctx, c, name, access.ReadKind)
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
	k, err := s.kindFor(ctx, c, name, access.ChangeKind)
	if err != nil {
		return err
	}
	if controlled && k.Conditions == nil {
		return failure.BadInput("controlled", "kind %s has no conditions by which a controller could say that a resource is ready", k.Name)
	}
	err = s.reconciler.SetControlled(ctx, k, controlled)
	switch {
	case errors.Is(err, backend.ErrConflict):
		return failure.Of(err, backend.Key{Kind: k.Name})
	case err != nil:
		return failure.Of(err, backend.Key{})
	}
	return nil
}

// kindFor returns the kind of a name, if the caller may do something with it.
func (s *Service) kindFor(ctx context.Context, c access.Caller, name string, may access.KindVerb) (*kind.Kind, error) {
	k, err := s.kinds.Find(name)
	if err != nil {
		return nil, err
	}
	return k, access.AuthorizeKind(ctx, c, k.Kind, may)
}

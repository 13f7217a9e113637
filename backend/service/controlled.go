package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Controlled reports whether a controller, not the gateway, sets the condition Available of a kind's resources.
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

// SetControlled hands the resources of a kind to a controller, or takes them back for the gateway. Other gateways of
// the same store apply this within seconds.
func (wr *Writer) SetControlled(ctx context.Context, name string, controlled bool) error {
	k, err := wr.kinds.Find(name)
	if err != nil {
		return err
	}
	rights, err := wr.reader.Rights(ctx)
	if err == nil {
		err = failure.About(rights.UseAll(k.Kind, descriptor.VerbControl), "kind")
	}
	if err != nil {
		return err
	}
	if err := wr.reconciler.SetControlled(ctx, k, controlled); err != nil {
		return failure.Of(err, backend.Key{Kind: k.Name})
	}
	wr.cfg.Controlled(ctx, k.Name, controlled)
	return nil
}

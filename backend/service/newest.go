package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// rebindTime is how long after a look at the newest catalogue the store may still begin to
// apply a rebind. A gateway whose catalogue has become the newest waits that long before
// its own pass over the references, so no rebind of an older gateway comes after the pass.
// A rebind has no log entry by which it would be found.
const rebindTime = time.Second

// Newest reports whether the store has accepted no other catalogue after this gateway's.
// References are taken by the declarations of the newest.
func (s *Service) Newest(ctx context.Context) (bool, error) {
	hash, err := catalogue.Newest(ctx, s.cfg.Store)
	if err == nil && hash == "" { // the store was emptied: whoever records its catalogue last has the newest
		if err = (catalogue.Gate{Store: s.cfg.Store, Clock: s.cfg.Clock, Logger: s.cfg.Logger}).Accept(ctx, catalogue.Candidate{Kinds: s.cfg.Kinds, AllowBreaking: true}); err == nil {
			hash, err = catalogue.Newest(ctx, s.cfg.Store)
		}
	}
	switch {
	case errors.Is(err, backend.ErrFormat): // a newer release keeps the record
		return false, nil
	case err != nil:
		return false, err
	}
	return hash == s.catalogue, nil
}

// JudgedBy names what decides what the resources of a kind refer to, wait for and rely on.
// When the name changes, all of them are re-evaluated.
func (s *Service) JudgedBy(ctx context.Context, k *kind.Kind) (string, error) {
	if err := s.knowOwners(ctx); err != nil {
		return "", err
	}
	name := fmt.Sprint(k.Declared, k.Conditions != nil, s.owners.controlled(k.Name))
	for _, r := range k.References {
		if to, err := s.kinds.Find(r.Kind); err == nil {
			name += fmt.Sprint(" ", to.Conditions != nil)
		}
	}
	return name, nil
}

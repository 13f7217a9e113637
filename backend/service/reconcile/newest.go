package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// rebindTime is how long after the check that a gateway's catalogue is the newest its rebinds may be
// applied. A gateway whose catalogue has become the newest waits that long before it scans, so that no
// rebind of another gateway follows its scan: a rebind has no log entry by which it would be found.
const rebindTime = time.Second

// Newest reports whether the store has accepted no other catalogue after this gateway's. In
// a store that was emptied it records this gateway's catalogue first.
func (r *Reconciler) Newest(ctx context.Context) (bool, error) {
	hash, err := catalogue.Newest(ctx, r.cfg.Store)
	if err == nil && hash == "" {
		if err = (catalogue.Gate{Store: r.cfg.Store, Clock: r.cfg.Clock, Logger: r.cfg.Logger}).Accept(ctx, catalogue.Candidate{Kinds: r.cfg.Descriptors, AllowBreaking: true}); err == nil {
			hash, err = catalogue.Newest(ctx, r.cfg.Store)
		}
	}
	switch {
	case errors.Is(err, backend.ErrFormat): // a newer release keeps the record
		return false, nil
	case err != nil:
		return false, err
	}
	return hash == r.hash, nil
}

// fingerprint returns a text that changes whenever all resources of a kind have to be
// re-evaluated. It is stored in records.
func (r *Reconciler) fingerprint(ctx context.Context, k *kind.Kind) (string, error) {
	if err := r.loadControllers(ctx); err != nil {
		return "", err
	}
	name := fmt.Sprint(k.Declared, k.Conditions != nil, r.controllers.owns(k.Name))
	for _, ref := range k.References {
		if to, err := r.cfg.Kinds.Find(ref.Kind); err == nil {
			name += fmt.Sprint(" ", to.Conditions != nil)
		}
	}
	return name, nil
}

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

// rebindTime is how long after a look at the newest catalogue the store may still begin to
// apply a rebind. A gateway whose catalogue has become the newest waits that long before
// its own pass over the references, so no rebind of an older gateway comes after the pass.
// A rebind has no log entry by which it would be found.
const rebindTime = time.Second

// Newest reports whether the store has accepted no other catalogue after this gateway's.
// References are taken by the declarations of the newest.
func (r *Reconciler) Newest(ctx context.Context) (bool, error) {
	hash, err := catalogue.Newest(ctx, r.cfg.Store)
	if err == nil && hash == "" { // the store was emptied: the catalogue that is recorded last is the newest
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
	return hash == r.catalogue, nil
}

// judgedBy names what decides what the resources of a kind refer to, wait for and rely on.
// When the name changes, all of them are re-evaluated.
func (r *Reconciler) judgedBy(ctx context.Context, k *kind.Kind) (string, error) {
	if err := r.knowControllers(ctx); err != nil {
		return "", err
	}
	name := fmt.Sprint(k.Declared, k.Conditions != nil, r.controllers.control(k.Name))
	for _, ref := range k.References {
		if to, err := r.cfg.Kinds.Find(ref.Kind); err == nil {
			name += fmt.Sprint(" ", to.Conditions != nil)
		}
	}
	return name, nil
}

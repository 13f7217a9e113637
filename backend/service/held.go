package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
)

// heldBytes is what a resource holds beside what is stored of it: its record, the
// table of its body, its place on a page.
const heldBytes = 512

// estimate is what a read of so many resources of a kind will hold, as far as it is
// known: no read returns more than a page.
func (k *kind) estimate(resources int) int {
	mean := max(int(k.mean.Load()), 2*heldBytes)
	return min(resources*mean, backend.MaxPageBytes)
}

// learn notes how large resources of the kind are.
func (k *kind) learn(bytes, resources int) {
	if resources > 0 {
		k.mean.Store((k.mean.Load() + int64(bytes/resources)) / 2)
	}
}

// hold charges what was read to the budget of the operation. It may wait for memory.
func hold(ctx context.Context, resources []*backend.Resource) error {
	return budget.From(ctx).Hold(ctx, size(resources))
}

// size is what resources hold; of those that are not there nothing.
func size(resources []*backend.Resource) (n int) {
	for _, r := range resources {
		if r != nil {
			n += heldBytes + r.Size()
		}
	}
	return n
}

// sizeOf is what the resources of edges hold.
func sizeOf(edges []Edge) (n int) {
	for i := range edges {
		n += heldBytes + edges[i].Resource.Stored.Size()
	}
	return n
}

// held is an error of [hold]: that of a context in the words of the service.
func held(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return translate(err, backend.Key{})
	}
	return err
}

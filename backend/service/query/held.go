package query

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

const (
	// heldBytes is what a resource holds beside its body: its record and key, the table
	// of the body, its place on a page.
	heldBytes = 640
	// rowBytes is what an index row or a reference of a resource holds.
	rowBytes = 64
)

// sizes are how large the resources of kinds are on average, in bytes, by names of
// kinds; 0 where none was read.
type sizes map[string]*atomic.Int64

func newSizes(kinds kind.Catalogue) sizes {
	out := sizes{}
	for _, k := range kinds.All() {
		out[k.Name] = &atomic.Int64{}
	}
	return out
}

// estimate is what a read of so many resources of a kind will hold, as far as it is
// known: no read returns more than a page.
func (s sizes) estimate(k *kind.Kind, resources int) int {
	return min(resources*s.mean(k), backend.MaxPageBytes)
}

// mean is how large a resource of a kind is, as far as it is known; k may be nil.
func (s sizes) mean(k *kind.Kind) int {
	if k == nil {
		return 2 * heldBytes
	}
	return max(int(s[k.Name].Load()), 2*heldBytes)
}

// learn notes how large resources of a kind are.
func (s sizes) learn(k *kind.Kind, bytes, resources int) {
	if resources > 0 {
		mean := s[k.Name]
		mean.Store((mean.Load() + int64(bytes/resources)) / 2)
	}
}

// hold charges what a step brought to the scans that asked. It may wait for memory.
func (s sizes) hold(ctx context.Context, scans []*scan, asked []int, pages []backend.Page) error {
	held := 0
	for n, i := range asked {
		bytes := size(pages[n].Resources)
		s.learn(scans[i].query.kind, bytes, len(pages[n].Resources))
		held += bytes
	}
	return budget.From(ctx).Hold(ctx, held)
}

// hold charges what was read to the budget of the operation. It may wait for memory.
func hold(ctx context.Context, resources []*backend.Resource) error {
	return budget.From(ctx).Hold(ctx, size(resources))
}

// size is what resources hold; of those that are not there nothing.
func size(resources []*backend.Resource) (n int) {
	for _, r := range resources {
		if r != nil {
			n += sizeOf(r)
		}
	}
	return n
}

// sizeOf is what a resource holds.
func sizeOf(r *backend.Resource) int {
	return heldBytes + len(r.Body) + rowBytes*len(r.Refs)
}

// sizeOfEdges is what the resources of edges hold.
func sizeOfEdges(edges []Edge) (n int) {
	for i := range edges {
		n += sizeOf(edges[i].Resource.Stored)
	}
	return n
}

// held is an error of holding: that of a context in the words of the service.
func held(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failure.Of(err, backend.Key{})
	}
	return err
}

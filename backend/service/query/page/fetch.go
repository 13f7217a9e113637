package page

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Resource is a stored resource with its decoded body. Body is nil if it cannot be read.
type Resource struct {
	Stored *backend.Resource
	Body   *body.Body
}

// Fetcher reads resources from a store, and charges them to the budgets of operations. It is safe for concurrent use.
type Fetcher struct {
	Store      backend.Store
	unreadable *kind.Unreadable
	sizes      sizes
}

// NewFetcher returns a fetcher for resources of a catalogue's kinds.
func NewFetcher(store backend.Store, kinds kind.Catalogue, tracker *kind.Unreadable) *Fetcher {
	r := &Fetcher{Store: store, unreadable: tracker, sizes: sizes{}}
	for _, k := range kinds.All() {
		r.sizes[k.Name] = &atomic.Int64{}
	}
	return r
}

// Read decodes the body of a resource. If the body cannot be decoded, Read notes the resource as unreadable and returns
// nil.
func (r *Fetcher) Read(a *body.Arena, k *kind.Kind, stored *backend.Resource) *body.Body {
	b, err := a.Read(k.Body, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return nil
	}
	return b
}

// RangeRequest is a range to read. Its memory is estimated by the mean size of resources of Kind, which may be nil.
type RangeRequest struct {
	backend.Range
	Kind *kind.Kind
}

// Ranges reads ranges in one call. It charges the read resources to the budget, and waits until there is memory for
// them. The caller charges [budget.Scan] and the resources that are only counted.
func (r *Fetcher) Ranges(ctx context.Context, requests ...RangeRequest) ([]backend.Page, error) {
	spent := budget.From(ctx)
	ranges := make([]backend.Range, len(requests))
	expected := 0
	pages := false
	for i := range requests {
		one := &requests[i]
		ranges[i] = one.Range
		if !one.Count {
			pages = true
			expected += r.Estimate(one.Kind, one.Limit)
		}
	}
	if pages && spent.Left(budget.Rows) == 0 {
		if err := spent.Spend(budget.Rows, 1); err != nil {
			return nil, err
		}
	}
	var out []backend.Page
	err := r.call(ctx, min(expected, backend.MaxPageBytes), func() (err error) {
		out, err = backend.Ranges(ctx, r.Store, ranges)
		return err
	})
	if err != nil {
		return nil, Failure(err, backend.Key{Kind: requests[0].Range.Kind})
	}
	rows, held := 0, 0
	for i := range out {
		n := Size(out[i].Resources)
		rows, held = rows+len(out[i].Resources), held+n
		if k := requests[i].Kind; k != nil && k.Name == ranges[i].Kind {
			r.sizes.learn(k, n, len(out[i].Resources))
		}
	}
	if err := spent.Spend(budget.Rows, rows); err != nil {
		return nil, err
	}
	return out, Failure(spent.Hold(ctx, held), backend.Key{})
}

// Keys returns the resources with the given keys, in the order of the keys. An element is nil if the resource is absent
// or cannot be read. The caller charges a row for each key.
func (r *Fetcher) Keys(ctx context.Context, keys []backend.Key, kindOf func(i int) *kind.Kind) ([]*Resource, error) {
	out := make([]*Resource, len(keys))
	var arena body.Arena
	for begin := 0; begin < len(keys); {
		part := keys[begin:min(begin+backend.MaxKeys, len(keys))]
		var got []*backend.Resource
		err := r.call(ctx, r.Estimate(kindOf(begin), len(part)), func() (err error) {
			got, err = backend.GetBare(ctx, r.Store, part...)
			return err
		})
		if len(part) == 1 && errors.Is(err, backend.ErrUnreadable) {
			begin++
			continue
		}
		if err == nil {
			err = budget.From(ctx).Hold(ctx, Size(got))
		}
		if err != nil {
			return nil, Failure(err, backend.Key{})
		}
		for i, stored := range got {
			if stored == nil {
				continue
			}
			if b := r.Read(&arena, kindOf(begin+i), stored); b != nil {
				out[begin+i] = &Resource{Stored: stored, Body: b}
			}
		}
		begin += len(got)
	}
	return out, nil
}

// call calls the store as soon as there is memory for the expected number of bytes. During the call the operation does
// not use its CPU slot.
func (r *Fetcher) call(ctx context.Context, expected int, do func() error) error {
	spent := budget.From(ctx)
	spent.Pace(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := spent.Expect(ctx, expected); err != nil {
		return err
	}
	spent.BeginWait()
	err := do()
	spent.EndWait(ctx)
	spent.Unexpect(expected)
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Failure converts an error of a read, or of waiting for memory, to an error for the caller. It returns errors of the
// budget unchanged.
func Failure(err error, key backend.Key) error {
	var over *budget.ExceededError
	if err == nil || errors.As(err, &over) || errors.Is(err, budget.ErrBusy) {
		return err
	}
	return failure.Of(err, key)
}

// One reads the resource with a key; nil if there is none. A resource that cannot be read is an error.
func (r *Fetcher) One(ctx context.Context, k *kind.Kind, key backend.Key) (*Resource, error) {
	var got []*backend.Resource
	err := r.call(ctx, 0, func() (err error) {
		got, err = backend.GetBare(ctx, r.Store, key)
		return err
	})
	if err == nil {
		err = budget.From(ctx).Hold(ctx, Size(got))
	}
	if err != nil || got[0] == nil {
		return nil, Failure(err, key)
	}
	b, err := k.Body.Read(got[0])
	if err != nil {
		r.unreadable.Note(got[0], err)
		return nil, failure.Of(err, key)
	}
	return &Resource{Stored: got[0], Body: b}, nil
}

// overhead is the memory of a resource besides its body, in bytes: its record, its key, the table of the body and its
// edge.
const overhead = 640

// sizes maps the name of a kind to the mean size of its latest read resources, in bytes.
type sizes map[string]*atomic.Int64

// learn updates the mean size of resources of a kind. A lost update by concurrent calls does no harm.
func (s sizes) learn(k *kind.Kind, bytes, resources int) {
	if resources > 0 {
		mean := s[k.Name]
		mean.Store((mean.Load() + int64(bytes/resources)) / 2)
	}
}

// Mean returns the estimated size of a resource of a kind, in bytes. k may be nil.
func (r *Fetcher) Mean(k *kind.Kind) int {
	if k == nil {
		return 2 * overhead
	}
	return max(int(r.sizes[k.Name].Load()), 2*overhead)
}

// Estimate returns the estimated memory, in bytes, for reading a number of resources of a kind. It is at most
// backend.MaxPageBytes, because no read returns more.
func (r *Fetcher) Estimate(k *kind.Kind, resources int) int {
	return min(resources*r.Mean(k), backend.MaxPageBytes)
}

// Size returns the memory of resources in bytes. A nil element counts as 0.
func Size(resources []*backend.Resource) (n int) {
	for _, r := range resources {
		if r != nil {
			n += SizeOf(r)
		}
	}
	return n
}

// SizeOf returns the memory of a resource in bytes.
func SizeOf(r *backend.Resource) int { return overhead + len(r.Body) }

package query

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// recordedStore is a store that records each read in the snapshot of the operation that makes it. The answer of such an
// operation has no [Basis], because nothing would report that it has become outdated.
type recordedStore struct{ backend.Store }

var (
	_ backend.Ranger     = recordedStore{}
	_ backend.BareGetter = recordedStore{}
)

// Get implements [backend.Store].
func (s recordedStore) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	readOutside(ctx)
	return s.Store.Get(ctx, keys...)
}

// GetBare implements [backend.BareGetter].
func (s recordedStore) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	readOutside(ctx)
	return backend.GetBare(ctx, s.Store, keys...)
}

// Range implements [backend.Store].
func (s recordedStore) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	readOutside(ctx)
	return s.Store.Range(ctx, r)
}

// Ranges implements [backend.Ranger].
func (s recordedStore) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	readOutside(ctx)
	return backend.Ranges(ctx, s.Store, rs)
}

// Position implements [backend.Store].
func (s recordedStore) Position(ctx context.Context) (backend.Position, error) {
	readOutside(ctx)
	return s.Store.Position(ctx)
}

package backend

import "context"

// BareGetter is implemented by a store that saves work where resources are read
// to be shown, see [Range.Bare].
type BareGetter interface {
	// GetBare is [Store.Get], but what [Range.Bare] says may be left out of the resources.
	GetBare(ctx context.Context, keys ...Key) ([]*Resource, error)
}

// GetBare gets resources to be shown: see [Range.Bare].
func GetBare(ctx context.Context, s Store, keys ...Key) ([]*Resource, error) {
	if bare, ok := s.(BareGetter); ok {
		return bare.GetBare(ctx, keys...)
	}
	return s.Get(ctx, keys...)
}

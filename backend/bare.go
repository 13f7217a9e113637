package backend

import "context"

// BareGetter is implemented by a store that can read resources without their references
// at less cost, see [Range.Bare].
type BareGetter interface {
	// GetBare is like [Store.Get], but may leave out the fields that [Range.Bare] names.
	GetBare(ctx context.Context, keys ...Key) ([]*Resource, error)
}

// GetBare reads the live resources under keys for display, see [Range.Bare]. It calls
// s.GetBare if s is a [BareGetter], and s.Get otherwise.
func GetBare(ctx context.Context, s Store, keys ...Key) ([]*Resource, error) {
	if bare, ok := s.(BareGetter); ok {
		return bare.GetBare(ctx, keys...)
	}
	return s.Get(ctx, keys...)
}

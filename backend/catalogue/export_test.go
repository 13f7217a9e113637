package catalogue

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// Accepted returns the hashes of the catalogues that a store has accepted, the newest last.
func Accepted(ctx context.Context, store backend.Store) ([]string, error) {
	list, _, err := Gate{Store: store}.list(ctx)
	return list.Hashes, err
}

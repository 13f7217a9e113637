package memory

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

var _ backend.Heads = (*Store)(nil)

// Head is [backend.Heads.Head].
func (s *Store) Head(ctx context.Context) (backend.Head, error) {
	at, err := s.Position(ctx)
	return backend.Head{Position: at, Now: s.Now()}, err
}

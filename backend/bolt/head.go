package bolt

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

var _ backend.Heads = (*Store)(nil)

// Head is [backend.Heads.Head]: the state of the log has all that was acknowledged,
// also while the file is being opened again.
func (s *Store) Head(ctx context.Context) (backend.Head, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Head{}, err
	}
	if at := s.core.place.Load(); at != nil {
		return backend.Head{Position: *at, Now: s.Now()}, nil
	}
	s.core.mu.Lock()
	at := s.core.state.Head()
	s.core.mu.Unlock()
	return backend.Head{Position: backend.NewPosition(at), Now: s.Now()}, nil
}

package service

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// maxUnreadable bounds how many unreadable resources a gateway remembers.
const maxUnreadable = 1000

// unreadable remembers which resources could not be read, for counts, which do
// not look at bodies. It is a hint: whether they still are is asked with each
// count. The zero value is ready; safe for concurrent use.
type unreadable struct {
	mu   sync.Mutex // guards keys
	keys map[backend.Key]bool
}

func (u *unreadable) add(key backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		u.keys = map[backend.Key]bool{}
	}
	if len(u.keys) < maxUnreadable {
		// The mark outlives the request and the page that the key may be a part of.
		key.Kind, key.Namespace, key.Name = strings.Clone(key.Kind), strings.Clone(key.Namespace), strings.Clone(key.Name)
		u.keys[key] = true
	}
}

func (u *unreadable) remove(key backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.keys, key)
}

// of returns those of a kind, in a namespace unless that is empty.
func (u *unreadable) of(kind, namespace string) (out []backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.keys {
		if key.Kind == kind && (namespace == "" || namespace == key.Namespace) {
			out = append(out, key)
		}
	}
	return out
}

// noteUnreadable counts, logs and remembers a stored body that breaks its kind's type.
func (s *Service) noteUnreadable(r *backend.Resource, err error) {
	s.cfg.Unreadable(r.Kind)
	s.cfg.Logger.Warn("stored resource is unreadable", zap.Stringer("key", r.Key), zap.Stringer("revision", r.Revision), zap.Error(err))
	s.unreadable.add(r.Key)
}

// countUnreadable is how many of the resources that could not be read still
// cannot. Lists leave them out, so counts do.
func (s *Service) countUnreadable(ctx context.Context, k *kind, namespace string) (int, error) {
	keys := s.unreadable.of(k.Name, namespace)
	if len(keys) == 0 {
		return 0, nil
	}
	got, err := backend.GetBare(ctx, s.cfg.Store, keys...)
	if errors.Is(err, backend.ErrUnreadable) {
		return len(keys), nil // the one that was asked for
	}
	if err != nil {
		return 0, translate(err, backend.Key{Kind: k.Name})
	}
	n := 0
	for i, stored := range got {
		if stored != nil {
			if _, err := k.body.Read(stored); err != nil {
				n++
				continue
			}
		}
		s.unreadable.remove(keys[i])
	}
	return n, nil
}

// Package unreadable notes which stored resources could not be read.
package unreadable

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// maxUnreadable bounds how many unreadable resources a gateway remembers.
const maxUnreadable = 1000

// Tracker notes which stored resources could not be read: for the log, for metrics,
// and for counts, which do not look at bodies. What it remembers is a hint: whether
// they still are unreadable is asked with each count. Safe for concurrent use.
type Tracker struct {
	store backend.Store
	log   *zap.Logger
	// counter outlives the tracker, which is the one of a catalogue.
	counter *Counter

	mu   sync.Mutex // guards keys
	keys map[backend.Key]bool
}

// New remembers nothing yet.
func New(store backend.Store, log *zap.Logger, counter *Counter) *Tracker {
	return &Tracker{store: store, log: log, counter: counter, keys: map[backend.Key]bool{}}
}

func (u *Tracker) add(key backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) < maxUnreadable {
		// The mark outlives the request and the page that the key may be a part of.
		key.Kind, key.Namespace, key.Name = strings.Clone(key.Kind), strings.Clone(key.Namespace), strings.Clone(key.Name)
		u.keys[key] = true
	}
}

func (u *Tracker) remove(key backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.keys, key)
}

// of returns those of a kind, in a namespace unless that is empty.
func (u *Tracker) of(kind, namespace string) (out []backend.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.keys {
		if key.Kind == kind && (namespace == "" || namespace == key.Namespace) {
			out = append(out, key)
		}
	}
	return out
}

// Note remembers a stored body that breaks its kind's type, and counts and logs it the
// first time.
func (u *Tracker) Note(r *backend.Resource, err error) {
	if u.counter.add(r) {
		u.log.Warn("stored resource is unreadable", zap.Stringer("key", r.Key), zap.Stringer("revision", r.Revision), zap.Error(err))
	}
	u.add(r.Key)
}

// Count is how many of the resources that could not be read still
// cannot. Lists leave them out, so counts do.
func (u *Tracker) Count(ctx context.Context, k *kind.Kind, namespace string) (int, error) {
	keys := u.of(k.Name, namespace)
	if len(keys) == 0 {
		return 0, nil
	}
	got, err := backend.GetBare(ctx, u.store, keys...)
	if errors.Is(err, backend.ErrUnreadable) {
		return len(keys), nil // the one that was asked for
	}
	if err != nil {
		return 0, failure.Of(err, backend.Key{Kind: k.Name})
	}
	n := 0
	for i, stored := range got {
		if stored != nil {
			if _, err := k.Body.Read(stored); err != nil {
				n++
				continue
			}
		}
		u.remove(keys[i])
	}
	return n, nil
}

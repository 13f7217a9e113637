package kind

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// maxUnreadable bounds how many unreadable resources a gateway remembers.
const maxUnreadable = 1000

// Unreadable remembers which stored resources could not be read: for the log, for
// metrics, and for counts, which do not look at bodies. It is only a hint: each count
// checks whether they are still unreadable. Safe for concurrent use.
type Unreadable struct {
	store backend.Store
	log   *zap.Logger
	// counter is shared by all catalogues of the gateway, each of which has its own
	// Unreadable.
	counter *UnreadableCounter

	mu   sync.Mutex // guards keys
	keys map[backend.Key]bool
}

// NewUnreadable returns an empty Unreadable.
func NewUnreadable(store backend.Store, log *zap.Logger, counter *UnreadableCounter) *Unreadable {
	return &Unreadable{store: store, log: log, counter: counter, keys: map[backend.Key]bool{}}
}

// Note remembers a stored body that breaks its kind's type, and counts and logs it the
// first time.
func (u *Unreadable) Note(r *backend.Resource, err error) {
	if u.counter.add(r) {
		u.log.Warn(
			"stored resource is unreadable", zap.Stringer("key", r.Key), zap.Stringer("revision", r.Revision),
			zap.Error(err),
		)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if key := r.Key; len(u.keys) < maxUnreadable {
		// The key is copied because it is kept longer than the request or page whose
		// memory it may share.
		key.Kind = strings.Clone(key.Kind)
		key.Namespace = strings.Clone(key.Namespace)
		key.Name = strings.Clone(key.Name)
		u.keys[key] = true
	}
}

// Count returns how many remembered resources of a kind still cannot be read, in a
// namespace or, if that is empty, in all. Counts subtract them because lists leave them
// out.
func (u *Unreadable) Count(ctx context.Context, k *Kind, namespace string) (int, error) {
	found, err := u.Find(ctx, k, namespace)
	return len(found), err
}

// Damaged is a stored resource that cannot be read, and why.
type Damaged struct {
	Key backend.Key
	Err error
}

// Find returns the resources that [Unreadable.Count] counts, in the order of their keys.
func (u *Unreadable) Find(ctx context.Context, k *Kind, namespace string) ([]Damaged, error) {
	var keys []backend.Key
	u.mu.Lock()
	for key := range u.keys {
		if key.Kind == k.Name && (namespace == "" || namespace == key.Namespace) {
			keys = append(keys, key)
		}
	}
	u.mu.Unlock()
	if len(keys) == 0 {
		return nil, nil
	}
	slices.SortFunc(keys, func(a, b backend.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	stored, err := backend.GetBare(ctx, u.store, keys...)
	if errors.Is(err, backend.ErrUnreadable) { // of one that the error does not tell
		return u.findEach(ctx, k, keys)
	}
	if err != nil {
		return nil, failure.Of(err, backend.Key{Kind: k.Name})
	}
	var out []Damaged
	for i, key := range keys {
		if err := u.check(k, key, stored[i]); err != nil {
			out = append(out, Damaged{Key: key, Err: err})
		}
	}
	return out, nil
}

// findEach is Find with one read per resource.
func (u *Unreadable) findEach(ctx context.Context, k *Kind, keys []backend.Key) (out []Damaged, err error) {
	for _, key := range keys {
		stored, err := backend.GetBare(ctx, u.store, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			out = append(out, Damaged{Key: key, Err: backend.ErrUnreadable})
			continue
		case err != nil:
			return nil, failure.Of(err, key)
		}
		if err := u.check(k, key, stored[0]); err != nil {
			out = append(out, Damaged{Key: key, Err: err})
		}
	}
	return out, nil
}

// check returns why a stored resource cannot be read. If it can be read or is gone, check
// forgets it.
func (u *Unreadable) check(k *Kind, key backend.Key, stored *backend.Resource) error {
	if stored != nil {
		if _, err := k.Body.Read(stored); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.keys, key)
	return nil
}

// maxCounted is the most resources that an [UnreadableCounter] counts. It keeps eight bytes for
// each.
const maxCounted = 1 << 17

// UnreadableCounter counts unreadable resources, each once however often it is read, up to a bound.
// A gateway has one for the services of all its catalogues, so that a reload counts
// nothing again. Safe for concurrent use.
type UnreadableCounter struct {
	count func(kind string)
	seed  maphash.Seed

	mu   sync.Mutex // guards seen
	seen map[uint64]struct{}
}

// NewUnreadableCounter returns a counter that calls count for each unreadable resource.
func NewUnreadableCounter(count func(kind string)) *UnreadableCounter {
	return &UnreadableCounter{count: count, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
}

// add counts a resource and reports whether it did. The UID distinguishes a resource that was
// created again under the same key.
func (c *UnreadableCounter) add(r *backend.Resource) bool {
	hash := maphash.Comparable(c.seed, struct {
		key backend.Key
		uid string
	}{r.Key, r.UID})
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[hash]; ok || len(c.seen) == maxCounted {
		return false
	}
	c.seen[hash] = struct{}{}
	c.count(r.Kind)
	return true
}

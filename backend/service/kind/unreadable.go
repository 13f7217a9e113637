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

// maxUnreadable is the maximum number of unreadable resources that are remembered.
const maxUnreadable = 1000

// Unreadable remembers which stored resources could not be read. It logs and counts them. It also provides the number
// that corrects the counts of lists, which do not read bodies. A remembered resource may have been repaired or deleted
// since, so Count and Find read it again. Unreadable is safe for concurrent use.
type Unreadable struct {
	store backend.Store
	log   *zap.Logger
	// counter is shared by the catalogues of a gateway.
	counter *UnreadableCounter

	mu   sync.Mutex // guards keys
	keys map[backend.Key]bool
}

// NewUnreadable returns an empty Unreadable.
func NewUnreadable(store backend.Store, log *zap.Logger, counter *UnreadableCounter) *Unreadable {
	return &Unreadable{store: store, log: log, counter: counter, keys: map[backend.Key]bool{}}
}

// Note remembers a resource whose body does not match its kind. It counts and logs the resource the first time.
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
		// The key is copied because it is kept longer than the page or request that it may share memory with.
		key.Kind = strings.Clone(key.Kind)
		key.Namespace = strings.Clone(key.Namespace)
		key.Name = strings.Clone(key.Name)
		u.keys[key] = true
	}
}

// Count returns how many remembered resources of a kind in a namespace still cannot be read. If namespace is empty, it
// counts all namespaces. Lists do not show such resources, so their counts subtract this number.
func (u *Unreadable) Count(ctx context.Context, k *Kind, namespace string) (int, error) {
	found, err := u.Find(ctx, k, namespace)
	return len(found), err
}

// Damaged is a stored resource that cannot be read. Err is the reason.
type Damaged struct {
	Key backend.Key
	Err error
}

// Find returns the resources that [Unreadable.Count] counts, sorted by key.
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
	if errors.Is(err, backend.ErrUnreadable) { // the error does not say which resource it is
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

// findEach is like Find, but reads each resource separately.
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

// check returns the reason why a stored resource cannot be read. If the resource can be read, or is nil, check forgets
// the key and returns nil.
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

// maxCounted is the maximum number of resources that an [UnreadableCounter] counts. Each takes eight bytes.
const maxCounted = 1 << 17

// UnreadableCounter counts unreadable resources, each of them once, up to maxCounted. The services of all catalogues of
// a gateway share one counter, so that a reload does not count resources again. It is safe for concurrent use.
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

// add counts a resource, and reports whether it was not counted before. The UID distinguishes resources that had the
// same key at different times.
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

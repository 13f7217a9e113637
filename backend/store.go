package backend

import (
	"context"
	"time"
)

// Store keeps resources and the log of their changes. All methods are safe for
// concurrent use, honour the context's deadline, and return ErrUnavailable
// when the store cannot answer or ErrClosed after it was closed.
type Store interface {
	// Apply checks all conditions and applies all actions in one atomic step. After a
	// *ConditionError, ErrDeadline, ErrInvalid, ErrTooLarge, ErrUnavailable or a bare
	// error of the context nothing was applied. ErrUnknown means that the outcome is not
	// known yet; together with ErrFormat it never will be.
	Apply(ctx context.Context, b Batch) (Result, error)
	// Get returns the live resources under keys, in their order, with nil for absent
	// ones. If they exceed MaxPageBytes it returns only the first ones that fit, at
	// least one, and the caller asks again for the rest. There are at most MaxKeys
	// keys. A resource that does not decode is ErrUnreadable if it is the only key, and
	// nil otherwise.
	Get(ctx context.Context, keys ...Key) ([]*Resource, error)
	// Range returns live resources in the order of their names, or the referrers of a
	// key.
	Range(ctx context.Context, r Range) (Page, error)
	// Watch delivers every change after a position exactly once, in order per shard,
	// and then follows the log. If the log cannot continue from the position, it fails
	// with ErrPositionExpired, here or from Next.
	Watch(ctx context.Context, w Watch) (Watcher, error)
	// Position returns the position of the last change. If it is asked for after a
	// batch's deadline, and the log up to it does not have the batch, the batch was not
	// applied and never will be. Position waits for a batch that is being applied.
	Position(ctx context.Context) (Position, error)
}

// Clock is implemented by a store whose clock is not the gateway's. The store's clock
// decides on deadlines and expiries.
type Clock interface{ Now() time.Time }

// ClockOf returns the clock of any store.
func ClockOf(s Store) func() time.Time {
	if c, ok := s.(Clock); ok {
		return c.Now
	}
	return time.Now
}

// Sharder is implemented by a store that has several shards. Every namespace
// lies in one; GLOBAL kinds, whose namespace is empty, all lie in shard 0.
type Sharder interface {
	// Shard returns the index of the namespace's shard in a [Position].
	Shard(namespace string) int
}

// ShardOf returns the index of the namespace's shard in a [Position] of the store.
func ShardOf(s Store, namespace string) int {
	if shards, ok := s.(Sharder); ok {
		return shards.Shard(namespace)
	}
	return 0
}

// SameShard reports whether two namespaces lie in one shard of a store.
func SameShard(s Store, a, b string) bool {
	shards, _ := s.(Sharder)
	return sameShard(shards, a, b)
}

func sameShard(shards Sharder, a, b string) bool {
	return a == b || shards == nil || shards.Shard(a) == shards.Shard(b)
}

// Heads is implemented by a store that can return the head of its log at less cost than
// [Store.Position], without waiting for a batch that is being applied.
type Heads interface {
	// Head returns a position that includes every change acknowledged before the call, through any
	// gateway.
	Head(ctx context.Context) (Position, error)
}

// HeadOf returns the head of any store.
func HeadOf(ctx context.Context, s Store) (Position, error) {
	if h, ok := s.(Heads); ok {
		return h.Head(ctx)
	}
	return s.Position(ctx)
}

// Syncer is implemented by a store whose log shows changes before they are as durable
// as acknowledged ones.
type Syncer interface {
	// Sync returns once everything that the log of the namespace's shard shows now is
	// as durable as an acknowledged batch, or ErrUnavailable.
	Sync(ctx context.Context, namespace string) error
}

// Limits of reads.
const (
	// MaxKeys of one Get.
	MaxKeys = 1001
	// MaxLimit of one Range.
	MaxLimit = 1001
	// MaxRanges of one call of [Ranger.Ranges].
	MaxRanges = 1000
	// MaxPageBytes is the most bytes of the resources of a page or of one Get
	// ([Resource.Size]); the first resource is always returned.
	MaxPageBytes = 1 << 20
	// MaxDeliveryBytes is the most bytes of the changes of a delivery ([Event.Size]);
	// the first change is always delivered.
	MaxDeliveryBytes = 8 << 20
)

// Watch describes where a watch begins and how far it may fall behind.
type Watch struct {
	// From is the position last seen; zero means now.
	From Position
	// MaxLag is the number of changes by which a watcher that has caught up may fall
	// behind before it is closed with a *LaggedError; 0 means DefaultMaxLag.
	MaxLag int
}

// DefaultMaxLag is the default of [Watch.MaxLag].
const DefaultMaxLag = 4096

// Watcher delivers changes. Only one goroutine calls Next; any may call Close, more than once.
type Watcher interface {
	// Next waits for the next changes, or until the position has moved past changes
	// that no watch delivers. It fails with ErrPositionExpired, a *LaggedError,
	// ErrClosed, ErrUnavailable or the context's error; all but the last end the watch.
	Next(ctx context.Context) (Delivery, error)
	Close()
}

// Delivery is a run of changes in order, of at most MaxDeliveryBytes.
type Delivery struct {
	// Events may be empty, if the delivery only has CaughtUp or moves the position.
	Events []Event
	// CaughtUp is true in exactly one delivery of a watch: the one that reached the head of the
	// log.
	CaughtUp bool
	// Position is the position after this delivery. It also moves past changes that are
	// not delivered, so that the position of a watch without events does not expire.
	Position Position
}

package backend

import (
	"context"
	"time"
)

// Store keeps resources and the log of their changes. All methods are safe for
// concurrent use, honour the context's deadline, and return ErrUnavailable
// when the store cannot answer or ErrClosed after it was closed.
type Store interface {
	// Apply judges all conditions and applies all actions in one atomic step. A
	// *ConditionError, ErrDeadline, ErrInvalid, ErrTooLarge and ErrUnavailable
	// say that nothing was applied, and so does a bare error of the context.
	// ErrUnknown says that nobody can tell yet, or not at all if it is an ErrFormat too.
	Apply(ctx context.Context, b Batch) (Result, error)
	// Get returns the live resources under keys, in their order, nil where there
	// is none: those of all keys, or of as many of the first as MaxPageBytes allow,
	// at least one. The caller asks again for the rest. At most MaxKeys keys. One
	// that does not decode is ErrUnreadable if it is the only key, and else left
	// out, nil, so that it does not take the others with it.
	Get(ctx context.Context, keys ...Key) ([]*Resource, error)
	// Range returns live resources in the order of their names, or
	// those that refer to a key.
	Range(ctx context.Context, r Range) (Page, error)
	// Watch delivers every change after a position exactly once, in order per
	// shard, and follows. A position that the log cannot continue from is
	// ErrPositionExpired, here or from Next.
	Watch(ctx context.Context, w Watch) (Watcher, error)
	// Position is the place of the last change. A batch that is not in the log up
	// to a position which was asked for after the batch's deadline was not applied
	// and never will be; Position waits for one that is still being applied.
	Position(ctx context.Context) (Position, error)
}

// Clock is implemented by a store whose clock is not the gateway's. Deadlines
// and expiries are judged by it.
type Clock interface{ Now() time.Time }

// ClockOf is the clock of any store.
func ClockOf(s Store) func() time.Time {
	if c, ok := s.(Clock); ok {
		return c.Now
	}
	return time.Now
}

// Sharder is implemented by a store that has several shards. Every namespace
// lies in one; GLOBAL kinds, whose namespace is empty, all lie in shard 0.
type Sharder interface {
	// Shard is the index of the namespace's shard in a [Position].
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

// Heads is implemented by a store that tells how far its log goes for less than [Store.Position]
// costs: it waits for no batch that is still being applied.
type Heads interface {
	// Head has at least every change that was acknowledged before it was asked for, whichever gateway
	// made it: the primaries answer.
	Head(ctx context.Context) (Position, error)
}

// HeadOf is the head of any store.
func HeadOf(ctx context.Context, s Store) (Position, error) {
	if h, ok := s.(Heads); ok {
		return h.Head(ctx)
	}
	return s.Position(ctx)
}

// Syncer is implemented by a store that acknowledges a batch only when it is
// more durable than the log shows at once.
type Syncer interface {
	// Sync returns when all that the log of the namespace's shard shows now is as
	// durable as an acknowledged batch, or ErrUnavailable.
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
	// MaxPageBytes is the most that the resources of a page, or of one Get, count
	// ([Resource.Size]); the first one is always returned.
	MaxPageBytes = 1 << 20
	// MaxDeliveryBytes is the most that the changes of a delivery count
	// ([Event.Size]); the first one is always delivered.
	MaxDeliveryBytes = 8 << 20
)

// Watch says where a watch begins and how far it may fall behind.
type Watch struct {
	// From is the position last seen; zero means now.
	From Position
	// MaxLag is the number of changes a watcher that has caught up may fall
	// behind before it is closed with a *LaggedError; 0 means DefaultMaxLag.
	MaxLag int
}

// DefaultMaxLag is the default of [Watch.MaxLag].
const DefaultMaxLag = 4096

// Watcher delivers changes. Only one goroutine calls Next; any may call Close, more than once.
type Watcher interface {
	// Next waits for the next changes, or until the position has moved on past
	// what no watch delivers. It fails with ErrPositionExpired, a
	// *LaggedError, ErrClosed, ErrUnavailable or the context's error; all but the
	// last end the watch.
	Next(ctx context.Context) (Delivery, error)
	Close()
}

// Delivery is a run of changes in order, of at most MaxDeliveryBytes.
type Delivery struct {
	// Events may be empty: then the delivery is the mark, or moves the position alone.
	Events []Event
	// CaughtUp is true in exactly one delivery of a watch: the one whose end was the head of the log.
	CaughtUp bool
	// Position has seen all changes up to the end of this delivery. A watcher that
	// is told of nothing moves on all the same, so that its place never falls off
	// the log by what it is not told of.
	Position Position
}

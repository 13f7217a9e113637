package backend

import (
	"context"
	"time"
)

// Store keeps resources and the log of their changes. All methods are safe for concurrent use and honour the deadline
// of the context. They return ErrUnavailable when the store cannot answer, and ErrClosed after it was closed.
type Store interface {
	// Apply checks all conditions and applies all actions in one atomic step. Nothing was applied if it returns a
	// *ConditionError, ErrDeadline, ErrInvalid, ErrTooLarge, ErrUnavailable, or the context's error itself. ErrUnknown
	// means that the outcome is not known yet; together with ErrFormat, that it will never be known.
	Apply(ctx context.Context, b Batch) (Result, error)
	// Get returns the live resources under at most MaxKeys keys, in the order of the keys. Absent ones are nil. If they
	// have more than MaxPageBytes, Get returns only the first resources that fit, at least one, and the caller must get
	// the rest in another call. For a resource that cannot be decoded, Get returns ErrUnreadable if it is the only key,
	// and otherwise nil in its place.
	Get(ctx context.Context, keys ...Key) ([]*Resource, error)
	// Range returns the live resources of a range, in its order.
	Range(ctx context.Context, r Range) (Page, error)
	// Watch delivers every change after a position exactly once, in order for each shard, and then follows the log. If
	// the log cannot continue from the position, Watch or the first Next fails with ErrPositionExpired.
	Watch(ctx context.Context, w Watch) (Watcher, error)
	// Position returns the position of the last change. It waits for a batch that is being applied. Therefore, if it is
	// called after the deadline of a batch, and the log up to the returned position does not have the batch, the batch
	// was not applied and never will be.
	Position(ctx context.Context) (Position, error)
}

// Clock is implemented by a store that does not use the clock of the gateway for deadlines and expiry. Now returns the
// time of the store's clock.
type Clock interface{ Now() time.Time }

// ClockOf returns the clock of a store: its own if it is a [Clock], otherwise the clock of this process.
func ClockOf(s Store) func() time.Time {
	if c, ok := s.(Clock); ok {
		return c.Now
	}
	return time.Now
}

// Sharder is implemented by a store with several shards. Each namespace lies in one shard. GLOBAL kinds, whose
// namespace is empty, lie in shard 0.
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

// HeadOf returns the head of the log of any store.
func HeadOf(ctx context.Context, s Store) (Position, error) {
	if h, ok := s.(Heads); ok {
		return h.Head(ctx)
	}
	return s.Position(ctx)
}

// Syncer is implemented by a store whose log shows changes before they are as durable
// as acknowledged ones.
type Syncer interface {
	// Sync waits until everything that the log of the namespace's shard shows now is as durable as an acknowledged
	// batch. If that cannot be known, it returns ErrUnavailable.
	Sync(ctx context.Context, namespace string) error
}

// The limits of reads.
const (
	// MaxKeys is the maximum number of keys of one Get.
	MaxKeys = 1001
	// MaxLimit is the maximum of Range.Limit.
	MaxLimit = 1001
	// MaxRanges is the maximum number of ranges in one call of [Ranger.Ranges].
	MaxRanges = 1000
	// MaxPageBytes is the maximum size of the resources of a page, or of one Get, in bytes ([Resource.Size]). The first
	// resource is returned even if it is larger.
	MaxPageBytes = 1 << 20
	// MaxDeliveryBytes is the maximum size of the changes in a delivery, in bytes ([Event.Size]). The first change is
	// delivered even if it is larger.
	MaxDeliveryBytes = 8 << 20
)

// Watch describes where a watch begins and how far it may fall behind.
type Watch struct {
	// From is the position after which the watch begins. The zero value means now.
	From Position
	// MaxLag is the number of changes by which a watcher may fall behind, once it has caught up, before it is closed
	// with a *LaggedError. Default: DefaultMaxLag.
	MaxLag int
}

// DefaultMaxLag is the default of [Watch.MaxLag].
const DefaultMaxLag = 4096

// Watcher delivers changes. Only one goroutine may call Next. Any goroutine may call Close, also more than once.
type Watcher interface {
	// Next waits until there are changes to deliver, or until the position has moved past changes that no watch
	// delivers. Its errors are ErrPositionExpired, a *LaggedError, ErrClosed, ErrUnavailable and the context's error.
	// All but the context's error end the watch.
	Next(ctx context.Context) (Delivery, error)
	Close()
}

// Delivery is a sequence of changes, in order, of at most MaxDeliveryBytes.
type Delivery struct {
	// Events are the changes. There may be none, if the delivery only sets CaughtUp or moves the position.
	Events []Event
	// CaughtUp is set in exactly one delivery of a watch: the first that has reached the head of the log.
	CaughtUp bool
	// Position is the position after this delivery. It also moves past changes that are
	// not delivered, so that the position of a watch without events does not expire.
	Position Position
}

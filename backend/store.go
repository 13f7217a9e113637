package backend

import (
	"context"
	"fmt"
	"time"
)

// Store keeps resources and the log of their changes. All methods are safe for
// concurrent use, honour the context's deadline, and return ErrUnavailable
// when the store cannot answer or ErrClosed after it was closed.
type Store interface {
	// Apply judges all conditions and applies all deeds in one atomic step. A
	// *ConditionError, ErrDeadline, ErrInvalid, ErrTooLarge and ErrUnavailable
	// say that nothing was applied. ErrUnknown says that nobody can tell yet.
	Apply(ctx context.Context, b Batch) (Result, error)
	// Get returns the live resources under keys, in their order, nil where there
	// is none. At most MaxKeys keys.
	Get(ctx context.Context, keys ...Key) ([]*Resource, error)
	// Range returns live resources of one kind in the order of their names or of an index.
	Range(ctx context.Context, r Range) (Page, error)
	// Watch delivers every change after a position exactly once, in order per
	// shard, and follows. A position that the log cannot continue from is
	// ErrPositionExpired, here or from Next.
	Watch(ctx context.Context, w Watch) (Watcher, error)
	// Position is the place of the last change.
	Position(ctx context.Context) (Position, error)
}

// Clock is implemented by a store whose clock is not the gateway's. Deadlines
// and expiries are judged by it.
type Clock interface{ Now() time.Time }

// Limits of reads.
const (
	// MaxKeys of one Get.
	MaxKeys = 1001
	// MaxLimit of one Range.
	MaxLimit = 1001
	// MaxPageBytes is the most that the resources of a page count ([Resource.Size]); the first one is always returned.
	MaxPageBytes = 8 << 20
)

// Range asks for resources of one kind. Start and End bound the order tuple,
// half-open: (namespace, name) without an index, value + (namespace, name)
// with one. Nil leaves that side open.
type Range struct {
	Kind string
	// Index orders by the rows of that name and leaves out resources without one;
	// a resource with several rows comes, and counts, once for each. Empty orders
	// by (namespace, name).
	Index string
	// Namespace, if set, leaves out all others.
	Namespace  string
	Start, End []byte
	Reverse    bool
	// Limit is the number of resources wanted, 1 to MaxLimit.
	Limit int
	// Count asks for the number of live resources in the range instead of a page; Limit is ignored.
	Count bool
}

// Page is a part of a range.
type Page struct {
	Resources []*Resource
	// More says that the range holds resources after the last one of the page.
	More bool
	// Count is the number asked for by Range.Count.
	Count int
}

// Validate says what is wrong with the range itself: ErrInvalid.
func (r Range) Validate() error {
	if r.Kind == "" {
		return fmt.Errorf("range: no kind: %w", ErrInvalid)
	}
	if !r.Count && (r.Limit < 1 || r.Limit > MaxLimit) {
		return fmt.Errorf("range: limit %d, 1 to %d wanted: %w", r.Limit, MaxLimit, ErrInvalid)
	}
	return nil
}

// OrderTuple is the place of a resource in the order of its names, a bound for Range.
func OrderTuple(namespace, name string) []byte {
	return AppendString(AppendString(nil, namespace), name)
}

// Bounds returns the absolute half-open interval of the range under the given
// prefix, the tuple (kind) or (kind, index).
func (r Range) Bounds(prefix []byte) (start, end []byte) {
	start = append(append(start, prefix...), r.Start...)
	if r.Index == "" && r.Namespace != "" {
		ns := AppendString(append([]byte(nil), prefix...), r.Namespace)
		start = maxBytes(start, ns)
		end = PrefixEnd(ns)
	} else {
		end = PrefixEnd(prefix)
	}
	if r.End != nil {
		end = minBytes(end, append(append([]byte(nil), prefix...), r.End...))
	}
	return start, end
}

func maxBytes(a, b []byte) []byte {
	if string(a) < string(b) {
		return b
	}
	return a
}

func minBytes(a, b []byte) []byte {
	if string(a) < string(b) {
		return a
	}
	return b
}

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
	// Next waits for the next changes. It fails with ErrPositionExpired, a
	// *LaggedError, ErrClosed, ErrUnavailable or the context's error; all but the
	// last end the watch.
	Next(ctx context.Context) (Delivery, error)
	Close()
}

// Delivery is a run of changes in order.
type Delivery struct {
	Events []Event
	// CaughtUp is true in exactly one delivery of a watch: the one whose end was the head of the log.
	CaughtUp bool
	// Position has seen all changes up to the end of this delivery, also those no watch delivers.
	Position Position
}

// Ranger is implemented by a store that can answer several ranges in one call.
type Ranger interface {
	// Ranges answers each range as Range does; one that fails fails all.
	Ranges(ctx context.Context, rs []Range) ([]Page, error)
}

// Ranges answers several ranges, in one call where the store can.
func Ranges(ctx context.Context, s Store, rs []Range) ([]Page, error) {
	if many, ok := s.(Ranger); ok {
		return many.Ranges(ctx, rs)
	}
	out := make([]Page, len(rs))
	for i, r := range rs {
		var err error
		if out[i], err = s.Range(ctx, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

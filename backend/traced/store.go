// Package traced adds spans to the calls of a store.
package traced

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/span"
)

// Store calls another store. It adds a span to each call whose context has a recorded span. It implements all optional
// interfaces of a store. Where the other store does not implement one, it does the same as [backend.ClockOf],
// [backend.ShardOf], [backend.HeadOf], [backend.Ranges] and [backend.GetBare].
type Store struct {
	below backend.Store
	// begin is [span.Start] for a store in this process, and [span.StartCall] for a remote one.
	begin func(ctx context.Context, name string) (context.Context, span.Span)
	// system is the name of the store by the semantic conventions for databases.
	system attribute.KeyValue
	clock  func() time.Time
}

var (
	_ backend.Store      = (*Store)(nil)
	_ backend.Ranger     = (*Store)(nil)
	_ backend.BareGetter = (*Store)(nil)
	_ backend.Clock      = (*Store)(nil)
	_ backend.Sharder    = (*Store)(nil)
	_ backend.Syncer     = (*Store)(nil)
	_ backend.Heads      = (*Store)(nil)
)

// New returns a traced store. below is a store in this process.
func New(below backend.Store, system string) *Store {
	return &Store{below: below, begin: span.Start, system: span.System.String(system), clock: backend.ClockOf(below)}
}

// NewRemote returns a traced store. below is a client of a store in another process.
func NewRemote(below backend.Store, system string) *Store {
	out := New(below, system)
	out.begin = span.StartCall
	return out
}

// call begins a span if the context has a recorded one. Otherwise it returns a span that records nothing.
func (s *Store) call(ctx context.Context, name string) (context.Context, span.Span) {
	if !span.Of(ctx).Recording() {
		return ctx, span.Span{}
	}
	ctx, traced := s.begin(ctx, "store "+name)
	traced.Set(s.system, span.StoreCall.String(name))
	return ctx, traced
}

// end ends the span of a call. If err is not nil, the span records it.
func end(traced span.Span, err error) {
	if err != nil && traced.Recording() {
		code, fault := errorType(err)
		traced.Fail(code, fault)
	}
	traced.End()
}

// errorType returns the name of a store's error. fault reports whether it is a fault of the store, and not only the
// refusal of a batch.
func errorType(err error) (name string, fault bool) {
	for _, known := range []struct {
		err   error
		name  string
		fault bool
	}{
		{backend.ErrUnknown, "unknown", true},
		{backend.ErrConflict, "conflict", false},
		{backend.ErrExists, "exists", false},
		{backend.ErrNotFound, "not_found", false},
		{backend.ErrReferenced, "referenced", false},
		{backend.ErrFinalized, "finalized", false},
		{backend.ErrDeleting, "deleting", false},
		{backend.ErrNotDeleting, "not_deleting", false},
		{backend.ErrDeadline, "deadline", true},
		{backend.ErrNoSpace, "no_space", true},
		{backend.ErrUnreadable, "unreadable", true},
		{backend.ErrUnavailable, "unavailable", true},
		{backend.ErrTooLarge, "too_large", false},
		{backend.ErrInvalid, "invalid", true},
		{backend.ErrClosed, "closed", true},
		{context.Canceled, "cancelled", false},
		{context.DeadlineExceeded, "timeout", true},
	} {
		if errors.Is(err, known.err) {
			return known.name, known.fault
		}
	}
	return "_OTHER", true
}

// Apply implements [backend.Store].
func (s *Store) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	ctx, traced := s.call(ctx, "Apply")
	if traced.Recording() {
		traced.Set(
			span.BatchSize.Int(len(b.Actions)),
			span.Bytes.Int(b.Size()),
			span.Shard.Int(backend.ShardOf(s.below, b.Namespace())),
		)
	}
	res, err := s.below.Apply(ctx, b)
	end(traced, err)
	return res, err
}

// Get implements [backend.Store].
func (s *Store) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	ctx, traced := s.call(ctx, "Get")
	if traced.Recording() {
		traced.Set(span.BatchSize.Int(len(keys)))
	}
	out, err := s.below.Get(ctx, keys...)
	end(traced, err)
	return out, err
}

// GetBare implements [backend.BareGetter].
func (s *Store) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	ctx, traced := s.call(ctx, "Get")
	if traced.Recording() {
		traced.Set(span.BatchSize.Int(len(keys)))
	}
	out, err := backend.GetBare(ctx, s.below, keys...)
	end(traced, err)
	return out, err
}

// Range implements [backend.Store].
func (s *Store) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	ctx, traced := s.call(ctx, "Range")
	out, err := s.below.Range(ctx, r)
	if traced.Recording() {
		traced.Set(span.BatchSize.Int(1), span.Resources.Int(len(out.Resources)))
	}
	end(traced, err)
	return out, err
}

// Ranges implements [backend.Ranger].
func (s *Store) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	ctx, traced := s.call(ctx, "Range")
	out, err := backend.Ranges(ctx, s.below, rs)
	if traced.Recording() {
		found := 0
		for i := range out {
			found += len(out[i].Resources)
		}
		traced.Set(span.BatchSize.Int(len(rs)), span.Resources.Int(found))
	}
	end(traced, err)
	return out, err
}

// Watch implements [backend.Store]. It has no span, because deliveries do not belong to a call.
func (s *Store) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	return s.below.Watch(ctx, w)
}

// Position implements [backend.Store].
func (s *Store) Position(ctx context.Context) (backend.Position, error) {
	ctx, traced := s.call(ctx, "Position")
	out, err := s.below.Position(ctx)
	end(traced, err)
	return out, err
}

// Head implements [backend.Heads].
func (s *Store) Head(ctx context.Context) (backend.Position, error) {
	ctx, traced := s.call(ctx, "Head")
	out, err := backend.HeadOf(ctx, s.below)
	end(traced, err)
	return out, err
}

// Sync implements [backend.Syncer]. It returns immediately if the other store does not implement it.
func (s *Store) Sync(ctx context.Context, namespace string) error {
	below, ok := s.below.(backend.Syncer)
	if !ok {
		return nil
	}
	ctx, traced := s.call(ctx, "Sync")
	err := below.Sync(ctx, namespace)
	end(traced, err)
	return err
}

// Now implements [backend.Clock].
func (s *Store) Now() time.Time { return s.clock() }

// Shard implements [backend.Sharder].
func (s *Store) Shard(namespace string) int { return backend.ShardOf(s.below, namespace) }

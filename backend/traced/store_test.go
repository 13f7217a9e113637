package traced_test

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/traced"
	"github.com/sluicegw/sluice/internal/span"
)

// newTracer returns a tracer that samples everything, and what it exports.
func newTracer(tb testing.TB) (*span.Tracer, *tracetest.InMemoryExporter) {
	exported := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported), sdktrace.WithIDGenerator(span.IDs{}))
	tb.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return span.NewTracer(provider, func(trace.SpanContext, trace.TraceID) bool { return true }), exported
}

// suiteStore is a traced store with the methods that the suite wants besides, each call of which has a span.
type suiteStore struct {
	*traced.Store
	below  *memory.Store
	tracer *span.Tracer
}

var _ backendtest.Store = (*suiteStore)(nil)

func (s *suiteStore) Run(ctx context.Context) error          { return s.below.Run(ctx) }
func (s *suiteStore) Purge(ctx context.Context) (int, error) { return s.below.Purge(ctx) }
func (s *suiteStore) Close() error                           { return s.below.Close() }
func (s *suiteStore) begin(ctx context.Context) context.Context {
	ctx, _, _ = s.tracer.Request(ctx, "suite", span.NewTraceparent(), true)
	return ctx
}

func (s *suiteStore) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	return s.Store.Apply(s.begin(ctx), b)
}

func (s *suiteStore) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.Store.Get(s.begin(ctx), keys...)
}

func (s *suiteStore) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return s.Store.GetBare(s.begin(ctx), keys...)
}

func (s *suiteStore) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	return s.Store.Range(s.begin(ctx), r)
}

func (s *suiteStore) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	return s.Store.Ranges(s.begin(ctx), rs)
}

func (s *suiteStore) Position(ctx context.Context) (backend.Position, error) {
	return s.Store.Position(s.begin(ctx))
}

func (s *suiteStore) Head(ctx context.Context) (backend.Position, error) {
	return s.Store.Head(s.begin(ctx))
}

func open(tb testing.TB, o backendtest.Options) backendtest.Instance {
	data := &memory.Data{}
	tracer, _ := newTracer(tb)
	wrap := func(below *memory.Store) *suiteStore {
		return &suiteStore{Store: traced.New(below, "memory"), below: below, tracer: tracer}
	}
	return backendtest.Instance{
		Open: func() (backendtest.Store, error) {
			below, err := memory.Open(memory.Config{
				Data: data, Clock: o.Clock, Rand: o.Rand,
				LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, PurgeInterval: o.PurgeInterval,
			})
			if err != nil {
				return nil, err
			}
			return wrap(below), nil
		},
		Handle: func(s backendtest.Store) backendtest.Store { return wrap(s.(*suiteStore).below.Handle()) },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, open) }

func put(name string) backend.Batch {
	return backend.Batch{
		RequestID: name, Deadline: time.Now().Add(time.Hour),
		Actions: []backend.Action{{
			Key: backend.Key{Kind: "Thing", Namespace: "secret-namespace", Name: name},
			If:  backend.Condition{Presence: backend.Absent}, Op: backend.OpPut,
			Put: backend.Put{UID: name, Body: []byte(`{"secret":"value"}`)},
		}},
	}
}

func TestStore_CallsAreSpansOfThoseWhoCall(t *testing.T) {
	below, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = below.Close() })
	tracer, exported := newTracer(t)
	store := traced.NewRemote(below, "redis")
	if _, err := store.Apply(t.Context(), put("untraced")); err != nil {
		t.Fatal(err)
	}
	if n := len(exported.GetSpans()); n != 0 {
		t.Errorf("%d spans of a request that is not traced", n)
	}
	ctx, request, _ := tracer.Request(t.Context(), "request", span.NewTraceparent(), true)
	if _, err := store.Apply(ctx, put("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(ctx, put("a")); err == nil {
		t.Fatal("it is there already")
	}
	request.End()
	spans := exported.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	for i, want := range []string{"", "exists"} {
		s := spans[i]
		got := map[string]string{}
		for _, a := range s.Attributes {
			got[string(a.Key)] = a.Value.String()
		}
		if s.Name != "store Apply" || s.SpanKind != trace.SpanKindClient || s.Parent.SpanID() != spans[2].SpanContext.SpanID() ||
			got["db.system.name"] != "redis" || got["db.operation.batch.size"] != "1" || got["error.type"] != want {
			t.Errorf("%s %s %v", s.Name, s.SpanKind, got)
		}
	}
}

package span

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Tracer begins the spans that have no parent in this process. Nil traces nothing.
type Tracer struct {
	tracer trace.Tracer
	// sample decides whether a trace is recorded; parent is invalid for a trace that begins here.
	sample func(parent trace.SpanContext, id trace.TraceID) bool
}

// tracing is true once a [Tracer] was made. Until then no context has a span, and none is looked for: that would walk
// through all values of the context several times in each request.
var tracing atomic.Bool

// NewTracer returns a tracer of a provider that records every span, and takes its ids from [IDs].
func NewTracer(p trace.TracerProvider, sample func(parent trace.SpanContext, id trace.TraceID) bool) *Tracer {
	tracing.Store(true)
	return &Tracer{tracer: p.Tracer(Scope), sample: sample}
}

// Request begins the span of a request. traceparent is the trace that the request came with, or else, with begins, the
// new one that it is to have. The traceparent that is returned is the one of the span, or says that the request is not
// recorded.
func (t *Tracer) Request(
	ctx context.Context, name, traceparent string, begins bool,
) (within context.Context, s Span, now string) {
	if t == nil {
		return ctx, Span{}, traceparent
	}
	parent := Parse(traceparent)
	id := parent.TraceID()
	if begins {
		parent = trace.SpanContext{}
	}
	if !t.sample(parent, id) {
		return ctx, Span{}, unsampled(traceparent)
	}
	if begins {
		ctx = context.WithValue(ctx, newIDKey{}, id)
	} else {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, begun := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{begun}, Traceparent(begun.SpanContext())
}

// Resume begins a span of a request whose own span has ended, as that of a WebSocket has when it is open: below
// traceparent, if that is recorded. If the span of ctx is recorded, the new one is below that. Its work has begun at
// begin.
func (t *Tracer) Resume(ctx context.Context, name, traceparent string, begin time.Time) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if !Of(ctx).Recording() {
		if !Sampled(traceparent) {
			return ctx, Span{}
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, Parse(traceparent))
	}
	ctx, begun := t.tracer.Start(ctx, name, trace.WithTimestamp(begin))
	return ctx, Span{begun}
}

// Linked begins the span of work that follows from others, which may be of other processes: a trace of its own with a
// link to each of them. It is recorded if one of them is, and the sampler does not refuse a request that comes from it.
func (t *Tracer) Linked(
	ctx context.Context, name string, kind trace.SpanKind, causes ...string,
) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	id := newTraceID()
	var links []trace.Link
	for _, traceparent := range causes {
		cause := Parse(traceparent)
		if cause.IsSampled() && t.sample(cause, id) {
			links = append(links, trace.Link{SpanContext: cause})
		}
	}
	if len(links) == 0 {
		return ctx, Span{}
	}
	ctx = context.WithValue(ctx, newIDKey{}, id)
	ctx, begun := t.tracer.Start(
		ctx, name, trace.WithNewRoot(), trace.WithSpanKind(kind), trace.WithLinks(links...),
	)
	return ctx, Span{begun}
}

// IDs makes the ids of spans and traces, as the SDK asks for them (sdk/trace.IDGenerator). A trace that a [Tracer]
// begins has the id that it was announced by.
type IDs struct{}

type newIDKey struct{}

// NewIDs returns the ids of a span that begins a trace.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(newIDKey{}).(trace.TraceID); ok {
		return id, newSpanID()
	}
	return newTraceID(), newSpanID()
}

// NewSpanID returns the id of another span.
func (IDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

package span

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Tracer begins spans that have no parent in this process. A nil Tracer does nothing.
type Tracer struct {
	tracer trace.Tracer
	// sample decides whether a trace is recorded. If the trace has begun in another process, parent is the span there.
	// It is invalid if the trace begins here.
	sample func(parent trace.SpanContext, id trace.TraceID) bool
}

// tracing is set once a [Tracer] was made. Before that, no context can have a span. Then [Of] need not search the
// context, which would take time, because it is called several times per request.
var tracing atomic.Bool

// NewTracer returns a tracer. The provider p must record every span and use [IDs]. sample decides which traces are
// recorded.
func NewTracer(p trace.TracerProvider, sample func(parent trace.SpanContext, id trace.TraceID) bool) *Tracer {
	tracing.Store(true)
	return &Tracer{tracer: p.Tracer(Scope), sample: sample}
}

// Request begins the span of a request. traceparent is the trace of the request. If begins is set, the trace begins
// with this request. Otherwise the client has sent the traceparent. now is the traceparent of the span. If the request
// is not recorded, there is no span, and now is traceparent without the flag for recorded traces.
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

// Resume begins another span for a request whose own span has ended, such as a WebSocket after it was opened. The
// parent is the span of ctx if it is recorded, otherwise the span in traceparent. begin is when the work of the new
// span has begun.
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

// Linked begins the span of work that has several causes, which may be in other processes. The span begins a new trace
// and has a link to each cause. It is recorded if one of the causes is recorded and the sampler does not refuse it.
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

// IDs generates the ids of spans and traces. It is an IDGenerator of the SDK. If a [Tracer] has already chosen the id
// of a trace, it uses this id.
type IDs struct{}

type newIDKey struct{}

// NewIDs returns the ids of a trace and of the first span in it.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(newIDKey{}).(trace.TraceID); ok {
		return id, newSpanID()
	}
	return newTraceID(), newSpanID()
}

// NewSpanID returns the id of a further span.
func (IDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

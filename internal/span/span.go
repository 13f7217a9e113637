// Package span makes the spans of traces (OpenTelemetry), and carries traces between processes (W3C Trace Context).
//
// A [Tracer] asks the sampler once for each request, at its beginning. If the request is traced, its context carries
// a span, and what is called with that context begins spans below it ([Start], [Past]). If it is not, these functions
// find no span and do nothing: a caller makes attributes only if [Span.Recording] reports true.
//
//	Tracer.Request, Tracer.Resume, Tracer.Linked   ask the sampler
//	Start, Past                                    below a span that is recorded
package span

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/sluicegw/sluice"

// Span is a span that is recorded. The zero value is none, and its methods do nothing.
type Span struct{ span trace.Span }

// Recording reports whether there is a span.
func (s Span) Recording() bool { return s.span != nil }

// Set adds attributes.
func (s Span) Set(attributes ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Fail notes the code of the error with which the work of the span has ended. fault reports whether it is a fault of
// the gateway or of what it calls, and not of the caller; the status of the span is an error only then.
func (s Span) Fail(code string, fault bool) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(ErrorType.String(code))
	if fault {
		s.span.SetStatus(codes.Error, "")
	}
}

// Rename gives the span another name.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// EndAt ends the span at a time that has passed.
func (s Span) EndAt(at time.Time) {
	if s.span != nil {
		s.span.End(trace.WithTimestamp(at))
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Traceparent returns the span as the parent of others, in the form of the header of that name; empty for none.
func (s Span) Traceparent() string {
	if s.span == nil {
		return ""
	}
	return Traceparent(s.span.SpanContext())
}

// Start begins a span below the one of ctx, and returns the context of what happens within it. Without a span in ctx
// it returns ctx and no span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// StartCall is [Start] for a call of another process.
func StartCall(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindClient)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := Of(ctx)
	if !parent.Recording() {
		return ctx, Span{}
	}
	ctx, s := tracerOf(parent.span).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{s}
}

func tracerOf(s trace.Span) trace.Tracer { return s.TracerProvider().Tracer(Scope) }

// Detach returns a context without the span of ctx, for what goes on after that span has ended.
func Detach(ctx context.Context) context.Context {
	if !Of(ctx).Recording() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, nil)
}

// Of returns the span of ctx that is recorded.
func Of(ctx context.Context) Span {
	if !tracing.Load() {
		return Span{}
	}
	s := trace.SpanFromContext(ctx)
	if !s.IsRecording() {
		return Span{}
	}
	return Span{s}
}

// Past adds a span for work that has ended already below the one of ctx, if there is one.
func Past(ctx context.Context, name string, begin, end time.Time, attributes ...attribute.KeyValue) {
	parent := Of(ctx)
	if !parent.Recording() {
		return
	}
	_, s := tracerOf(parent.span).Start(
		ctx, name, trace.WithSpanKind(trace.SpanKindInternal), trace.WithTimestamp(begin), trace.WithAttributes(attributes...),
	)
	s.End(trace.WithTimestamp(end))
}

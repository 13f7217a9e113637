// Package span makes spans of traces (OpenTelemetry), and passes traces between processes (W3C Trace Context).
//
// A [Tracer] decides at the beginning of each request whether it is traced. If it is, the context of the request has a
// span. Code that is called with this context adds spans below this span, by [Start] and [Past]. If the request is not
// traced, these functions do nothing. Callers need to compute attributes only if [Span.Recording] returns true.
//
//	Tracer.Request, Tracer.Resume, Tracer.Linked   decide whether to trace
//	Start, Past                                    add spans below a recorded one
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

// Span is a recorded span. The zero value stands for no span; its methods do nothing.
type Span struct{ span trace.Span }

// Recording reports whether s is a span, and not the zero value.
func (s Span) Recording() bool { return s.span != nil }

// Set adds attributes.
func (s Span) Set(attributes ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Fail sets the code of the error with which the work of the span has ended. If fault is set, the gateway or
// something that it calls is at fault, not the caller. Only then is the status of the span an error.
func (s Span) Fail(code string, fault bool) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(ErrorType.String(code))
	if fault {
		s.span.SetStatus(codes.Error, "")
	}
}

// Rename changes the name of the span.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// EndAt ends the span with a time in the past.
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

// Traceparent returns the value of a traceparent header whose parent is the span. It returns "" for the zero value.
func (s Span) Traceparent() string {
	if s.span == nil {
		return ""
	}
	return Traceparent(s.span.SpanContext())
}

// Start begins a span below the span of ctx. It returns a context with the new span, which is for the work within the
// span. If ctx has no recorded span, it returns ctx and the zero Span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// StartCall is like [Start] for a call of another process.
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

// Detach returns a context without a span. It is for work that continues after the span of ctx has ended.
func Detach(ctx context.Context) context.Context {
	if !Of(ctx).Recording() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, nil)
}

// Of returns the recorded span of ctx; the zero Span if there is none.
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

// Past adds a span for work that has already ended, below the span of ctx. If ctx has no recorded span, it does
// nothing.
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

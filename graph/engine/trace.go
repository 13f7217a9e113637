package engine

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/internal/span"
)

// traceRead begins a span for a root field of a query, if the operation is traced.
func (r *run) traceRead(ctx context.Context, f *field) (context.Context, span.Span) {
	if !r.traced || r.oc.Operation.Operation != ast.Query { // a mutation has spans of its verbs
		return ctx, span.Span{}
	}
	ctx, s := span.Start(ctx, span.Read)
	s.Set(span.Field.String(f.node.Name))
	if f.kind != nil {
		s.Set(span.Kind.String(f.kind.Name))
	}
	return ctx, s
}

// traceLevel begins a span for the reads of one level, if the operation is traced.
func (r *run) traceLevel(ctx context.Context, resources, pages int) (context.Context, span.Span) {
	if !r.traced {
		return ctx, span.Span{}
	}
	ctx, s := span.Start(ctx, span.Level)
	s.Set(span.Resources.Int(resources), span.Pages.Int(pages))
	return ctx, s
}

// traceDelivery begins a span for the answer to a change, if the request that made the change was traced. The span
// begins a new trace with a link to the write, which another gateway may have made. Subscriptions that share an
// execution share the span.
func (s *execution) traceDelivery(ctx context.Context, c *change.Change) (context.Context, span.Span) {
	tracer := s.engine.tracer
	if tracer == nil {
		return ctx, span.Span{}
	}
	written := c.Trace()
	if written == "" {
		return ctx, span.Span{}
	}
	ctx, traced := tracer.Linked(ctx, span.Deliver, trace.SpanKindConsumer, written)
	if !traced.Recording() {
		return ctx, traced
	}
	traced.Set(
		span.OperationType.String("subscription"),
		span.Kind.String(c.Key.Kind),
		span.Change.String(string(c.Type)),
		span.WriteTrace.String(span.TraceID(written)),
	)
	if c.Stored != nil {
		traced.Set(span.UID.String(c.Stored.UID))
	}
	if name := s.oc.Operation.Name; name != "" {
		traced.Set(span.OperationName.String(name[:min(len(name), maxTracedName)]))
	}
	return ctx, traced
}

// maxTracedName is the maximum length of an operation's name in a span, in bytes.
const maxTracedName = 64

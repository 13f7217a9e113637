package engine

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/internal/span"
)

// traceRead begins the span of a root field that reads, if the operation is traced.
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

// traceLevel begins the span of the calls that read one level of the answer, if the operation is traced.
func (r *run) traceLevel(ctx context.Context, resources, pages int) (context.Context, span.Span) {
	if !r.traced {
		return ctx, span.Span{}
	}
	ctx, s := span.Start(ctx, span.Level)
	s.Set(span.Resources.Int(resources), span.Pages.Int(pages))
	return ctx, s
}

// traceDelivery begins the span of the answer to a change, if the request that made the change was traced: in a trace
// of its own, with a link to the write, which may be one of another gateway. Subscriptions that share an execution
// share it.
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

// maxTracedName is the most bytes of the name of an operation in a span.
const maxTracedName = 64

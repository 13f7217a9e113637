package server

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/rpc"
	"github.com/sluicegw/sluice/internal/span"
)

// traceCall begins the span of a call of a method, by the semantic conventions of RPC.
func (e *methodsEdge) traceCall(ctx context.Context, of rpc.Call, begin time.Time) (context.Context, span.Span) {
	if e.cfg.Tracer == nil || !span.Sampled(access.CallerFrom(ctx).Trace) {
		return ctx, span.Span{}
	}
	ctx, s := e.cfg.Tracer.Resume(ctx, of.Service+"/"+of.Method, access.CallerFrom(ctx).Trace, begin)
	if !s.Recording() {
		return ctx, s
	}
	s.Set(
		span.RPCSystem.String(of.System),
		span.RPCService.String(of.Service),
		span.RPCMethod.String(of.Method),
		span.Kind.String(of.Kind),
	)
	if e.version != "" {
		s.Set(span.API.String(e.version))
	}
	return ctx, s
}

// endCall ends the span of a call. spent is nil for a stream, whose span ends when it has begun.
func endCall(ctx context.Context, s span.Span, of rpc.Call, failed *failure.Error, spent *budget.Budget) {
	if !s.Recording() {
		return
	}
	if spent != nil {
		s.Set(span.Steps.Int64(spent.Spent(budget.Steps)))
	}
	if status, some := statusOf(ctx, of, failed); some {
		s.Set(status)
	}
	if failed != nil {
		s.Fail(string(failed.Code), isFault(string(failed.Code)))
	}
	s.End()
}

// statusOf returns the status of a call in the form of its protocol. In Connect, only a call with an error has a
// status.
func statusOf(ctx context.Context, of rpc.Call, failed *failure.Error) (status attribute.KeyValue, some bool) {
	switch {
	case of.System == rpc.SystemGRPC && failed == nil:
		return span.GRPCStatus.Int(0), true
	case of.System == rpc.SystemGRPC:
		return span.GRPCStatus.Int(int(rpc.CodeOf(ctx, failed))), true
	case failed == nil:
		return attribute.KeyValue{}, false
	}
	return span.ConnectError.String(rpc.CodeOf(ctx, failed).String()), true
}

// codeText returns the code of a call in metrics.
func codeText(ctx context.Context, failed *failure.Error) string {
	if failed == nil {
		return "ok"
	}
	return rpc.CodeOf(ctx, failed).String()
}

// traceRefusedCall records in the span of a request that its call was refused before it was executed.
func traceRefusedCall(ctx context.Context, failed *failure.Error) {
	span.Of(ctx).Fail(string(failed.Code), isFault(string(failed.Code)))
}

package remote

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/internal/span"
)

// traceCall begins the span of a call, by the semantic conventions for RPCs. If the request is not traced, there is no
// span.
func traceCall(ctx context.Context, service, method string) span.Span {
	name := strings.Trim(servicePath, "/")
	_, s := span.StartCall(ctx, "service "+method)
	if s.Recording() {
		s.Set(
			span.RPCSystem.String("connect_rpc"),
			span.RPCService.String(name),
			span.RPCMethod.String(method),
			span.Service.String(service),
		)
	}
	return s
}

// endCall ends the span of a call.
func endCall(s span.Span, err error) {
	if err != nil {
		s.Fail(connect.CodeOf(err).String(), true)
	}
	s.End()
}

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/internal/span"
)

// Every request belongs to a trace: the one in its header traceparent, or a new one. The id of the trace is the request
// id, unless the client has sent another request id. If the trace is sampled, the request has a span:
//
//	edge           beginTrace, endTrace    until the answer is sent, or a stream or socket has begun
//	operation      traceOperation          child of the edge; on a socket, whose edge has ended, a sibling
//	subscription   traceSubscription       until the subscription has begun; for what is delivered later
//	                                       see engine.Config.Tracer

// beginTrace begins the trace of a request, and its span if it is sampled.
func (s *Server) beginTrace(r *http.Request) (ctx context.Context, edge span.Span, traceparent string) {
	traceparent = givenTrace(r.Header)
	begins := traceparent == ""
	if begins {
		traceparent = span.NewTraceparent()
	}
	if s.cfg.Tracer == nil || isProbe(r.URL.Path) {
		return r.Context(), edge, traceparent
	}
	return s.cfg.Tracer.Request(r.Context(), knownMethod(r.Method), traceparent, begins)
}

// givenTrace returns the trace in the header of a request; "" if there is none or more than one, or if it is not valid.
func givenTrace(header http.Header) string {
	given := header[traceHeader]
	if len(given) != 1 {
		return ""
	}
	return access.ParseTrace(given[0])
}

// isProbe reports whether a path is regularly requested by monitoring.
func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" || path == "/metrics" }

// knownMethod returns an HTTP method, or the value that the semantic conventions define for all other methods.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete,
		http.MethodPatch, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "_OTHER"
}

// endTrace ends the span of a request, with the attributes of the semantic conventions for HTTP. broken names the error
// of a request whose handler did not return; it is empty for others.
func endTrace(edge span.Span, a *recorder, r *http.Request, broken string) {
	if !edge.Recording() {
		return
	}
	method := knownMethod(r.Method)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	edge.Set(
		span.Method.String(method),
		span.Scheme.String(scheme),
		span.Protocol.String(strings.TrimPrefix(r.Proto, "HTTP/")),
	)
	if a.wrote || broken == "" {
		edge.Set(span.Status.Int(a.status))
	}
	known := factsOf(r.Context())
	if route := routeOf(r); route != "" { // other paths may be anything
		edge.Rename(method + " " + route)
		edge.Set(span.Route.String(route), span.Path.String(r.URL.Path))
	}
	if address := access.CallerFrom(r.Context()).Address; address.IsValid() {
		edge.Set(span.ClientAddress.String(address.String()))
	}
	if known.trace != "" {
		edge.Set(span.RequestID.String(known.id))
	}
	switch {
	case broken != "":
		edge.Fail(broken, true)
	case a.status >= http.StatusInternalServerError:
		edge.Fail(http.StatusText(a.status), true)
	}
	if !a.stream.IsZero() {
		edge.EndAt(a.stream)
		return
	}
	edge.End()
}

// routeOf returns the pattern that a request has matched, without the method; "" if it is only the pattern of all
// paths.
func routeOf(r *http.Request) string {
	route := r.Pattern
	if _, alone, found := strings.Cut(route, " "); found {
		route = alone
	}
	switch route {
	case "/":
		return ""
	case "/{$}": // the page
		return "/"
	}
	return route
}

// traceOperation begins the span of a query or mutation, by the semantic conventions for GraphQL.
func (a *api) traceOperation(ctx context.Context, op *graphql.OperationContext) context.Context {
	if a.cfg.Tracer == nil {
		return ctx
	}
	name, begin := string(op.Operation.Operation), op.Stats.OperationStart
	ctx, s := a.cfg.Tracer.Resume(ctx, name, access.CallerFrom(ctx).Trace, begin)
	if s.Recording() {
		a.setOperation(s, op)
	}
	return ctx
}

// setOperation sets the attributes that identify an operation. As in the log, the document and the variables are left
// out.
func (a *api) setOperation(s span.Span, op *graphql.OperationContext) {
	of := a.labels(op)
	hash := sha256.Sum256([]byte(op.RawQuery))
	s.Set(span.OperationType.String(of.typ), span.Document.String(hex.EncodeToString(hash[:])))
	if name := shortName(op.Operation.Name); name != "" {
		s.Set(span.OperationName.String(name))
	}
	if of.kind != none {
		s.Set(span.Kind.String(of.kind))
	}
	if a.version != "" {
		s.Set(span.API.String(a.version))
	}
}

// endOperation ends the span of a query or mutation, which is in ctx.
func (a *api) endOperation(
	ctx context.Context, op *graphql.OperationContext, res *graphql.Response, spent *budget.Budget,
) {
	if a.cfg.Tracer == nil || op.Operation.Operation == ast.Subscription {
		return
	}
	s := span.Of(ctx)
	if !s.Recording() {
		return
	}
	s.Set(span.Steps.Int64(spent.Spent(budget.Steps)))
	if op.Stats.GetExtension(engine.KeptExtension) != nil {
		s.Set(span.Kept.Bool(true))
	}
	if res != nil {
		failOperation(s, res.Errors)
	}
	s.End()
}

// failOperation records the first error of an answer in a span.
func failOperation(s span.Span, errs gqlerror.List) {
	if len(errs) == 0 {
		return
	}
	code, _ := errs[0].Extensions["code"].(string)
	s.Fail(code, isFault(code))
}

// isFault reports whether an error code means a fault of the gateway or of a system that it depends on.
func isFault(code string) bool {
	switch failure.Code(code) {
	case failure.CodeInternal, failure.CodeUnavailable, failure.CodeTimeout:
		return true
	}
	return false
}

// traceSubscription records the span of a subscription that has begun.
func (a *api) traceSubscription(ctx context.Context, op *graphql.OperationContext) {
	if !span.Sampled(access.CallerFrom(ctx).Trace) {
		return
	}
	span.Of(a.traceOperation(ctx, op)).End()
}

// traceRefused records in the span of a request that it was refused before there was an operation.
func traceRefused(ctx context.Context, errs gqlerror.List) {
	if s := span.Of(ctx); s.Recording() {
		failOperation(s, errs)
	}
}

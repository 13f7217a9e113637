package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/internal/span"
)

// facts are what the server knows about a request. They are part of the request's context.
type facts struct {
	id string
	// trace is the id of the request's trace, if it differs from id; else empty.
	trace string
	// api is the name of the API at the path of the request; empty for other paths.
	api string
	// address and client are the address and the name of the client. They are empty if there is no access log.
	address, client string
}

// The headers with the name of a client application, as clients of Apollo and of GraphQL Hive send them.
const (
	apolloClientHeader = "Apollographql-Client-Name"
	hiveClientHeader   = "X-Graphql-Client-Name"
)

// traceHeader is the header with the trace of a request (W3C Trace Context). Calls of resource services pass it on.
const traceHeader = "Traceparent"

// withFacts returns a request whose context has its facts, an anonymous caller, and a span if it is traced.
func (s *Server) withFacts(r *http.Request) (*http.Request, span.Span) {
	ctx, edge, trace := s.beginTrace(r)
	f := facts{id: givenID(r.Header.Get(requestIDHeader)), api: s.generation.Load().apiAt(r.URL.Path)}
	if f.id == "" {
		f.id = span.TraceID(trace)
	}
	f.trace = span.OtherID(trace, f.id)
	if s.cfg.AccessLog {
		f.address = r.RemoteAddr
		if len(s.cfg.Identities.Proxies) > 0 {
			f.address = s.cfg.Identities.Proxies.Address(r).String()
		}
		f.client = shortName(cmp.Or(r.Header.Get(apolloClientHeader), r.Header.Get(hiveClientHeader)))
	}
	caller := access.Caller{
		Address: s.cfg.Identities.Proxies.Address(r),
		Request: f.id,
		Trace:   trace,
		Decided: s.cfg.Tracer != nil || givenTrace(r.Header) != "",
	}
	return r.WithContext(access.WithCaller(context.WithValue(ctx, factsKey{}, f), caller)), edge
}

type factsKey struct{}

// factsOf returns the facts of the request in ctx.
func factsOf(ctx context.Context) facts {
	f, _ := ctx.Value(factsKey{}).(facts)
	return f
}

// lineFields is the usual number of fields in a line of the log about a request.
const lineFields = 6

// ids returns the fields that identify a request in the log, with capacity for the usual other fields.
func ids(ctx context.Context) []zap.Field {
	f := factsOf(ctx)
	fields := append(make([]zap.Field, 0, lineFields), zap.String("requestId", f.id))
	if f.trace != "" {
		fields = append(fields, zap.String("traceId", f.trace))
	}
	return fields
}

// setIDs sets the extensions that identify a request in its errors.
func setIDs(ctx context.Context, extensions map[string]any) {
	f := factsOf(ctx)
	extensions["requestId"] = f.id
	if f.trace != "" {
		extensions["traceId"] = f.trace
	}
}

// ofConnection returns a context for a connection that outlives its request. Of the request it keeps only the caller
// and the facts, because thousands of connections may be idle.
func ofConnection(ctx context.Context) context.Context {
	return access.WithCaller(context.WithValue(context.Background(), factsKey{}, factsOf(ctx)), access.CallerFrom(ctx))
}

// ended logs and measures a request after its answer.
func (s *Server) ended(a *recorder, r *http.Request) {
	s.metrics.observe(r, a.status, a.answered())
	if line := s.cfg.Logger.Check(zap.DebugLevel, "request"); line != nil {
		line.Write(append(
			ids(r.Context()),
			zap.String("method", r.Method),
			zap.String("path", r.URL.Path),
			zap.Int("status", a.status),
			zap.Float64("durationSeconds", time.Since(a.begin).Seconds()),
		)...)
	}
}

const (
	// requestIDHeader is the header with the request id, in requests and answers.
	requestIDHeader = "X-Request-Id"
	// traceIDHeader is the header with the id of the trace in answers, if it differs from the request id.
	traceIDHeader = "X-Trace-Id"
)

// givenID returns the request id that the client has sent, if it is short and has only letters, digits and -_.:
// characters; otherwise "".
func givenID(given string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, odd) {
		return given
	}
	return ""
}

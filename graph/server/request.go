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

// facts are what the server knows about a request. The request's context holds them.
type facts struct {
	id string
	// trace is the id of the request's trace if that is not id; else empty.
	trace string
	// api is the name of the API of the request's path; empty for other paths.
	api string
	// address and client are the address and the name of the client; empty without an access log.
	address, client string
}

// Headers that name a client application: those of Apollo's clients and of GraphQL Hive's.
const (
	apolloClientHeader = "Apollographql-Client-Name"
	hiveClientHeader   = "X-Graphql-Client-Name"
)

// traceHeader has the trace of a request (W3C Trace Context). It is passed on in calls of resource
// services.
const traceHeader = "Traceparent"

// withFacts returns a request whose context has its facts and an anonymous caller, and the request's
// span if it is traced.
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
		Decided: s.cfg.Tracer != nil || access.ParseTrace(r.Header.Get(traceHeader)) != "",
	}
	return r.WithContext(access.WithCaller(context.WithValue(ctx, factsKey{}, f), caller)), edge
}

type factsKey struct{}

// factsOf returns the facts of the request that ctx belongs to.
func factsOf(ctx context.Context) facts {
	f, _ := ctx.Value(factsKey{}).(facts)
	return f
}

// lineFields is how many fields a line of the log about a request has, as a rule.
const lineFields = 6

// ids returns the fields by which a line of the log names a request. There is room for those of the line.
func ids(ctx context.Context) []zap.Field {
	f := factsOf(ctx)
	fields := append(make([]zap.Field, 0, lineFields), zap.String("requestId", f.id))
	if f.trace != "" {
		fields = append(fields, zap.String("traceId", f.trace))
	}
	return fields
}

// setIDs sets the extensions by which an error names its request.
func setIDs(ctx context.Context, extensions map[string]any) {
	f := factsOf(ctx)
	extensions["requestId"] = f.id
	if f.trace != "" {
		extensions["traceId"] = f.trace
	}
}

// ofConnection returns a context for a connection that outlives its request. It keeps only the
// caller and the facts of the request, because thousands of connections may be idle.
func ofConnection(ctx context.Context) context.Context {
	return access.WithCaller(context.WithValue(context.Background(), factsKey{}, factsOf(ctx)), access.CallerFrom(ctx))
}

// ended logs and measures an answered request.
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
	// requestIDHeader has the request id, in requests and in answers.
	requestIDHeader = "X-Request-Id"
	// traceIDHeader has the id of the trace in answers, if that is not the request id.
	traceIDHeader = "X-Trace-Id"
)

// givenID returns the client's request id if it is short and has only plain characters, otherwise
// nothing.
func givenID(given string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, odd) {
		return given
	}
	return ""
}

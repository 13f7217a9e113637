package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
)

// facts are what the server knows about a request. The request's context holds them.
type facts struct {
	id string
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

// withFacts returns a request whose context has its facts and an anonymous caller.
func (s *Server) withFacts(r *http.Request) *http.Request {
	f := facts{id: newRequestID(r.Header.Get(requestIDHeader)), api: s.generation.Load().apiAt(r.URL.Path)}
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
		Trace:   access.ParseTrace(r.Header.Get(traceHeader)),
	}
	return r.WithContext(access.WithCaller(context.WithValue(r.Context(), factsKey{}, f), caller))
}

type factsKey struct{}

// factsOf returns the facts of the request that ctx belongs to.
func factsOf(ctx context.Context) facts {
	f, _ := ctx.Value(factsKey{}).(facts)
	return f
}

func requestID(ctx context.Context) string { return factsOf(ctx).id }

// ofConnection returns a context for a connection that outlives its request. It keeps only the
// caller and the facts of the request, because thousands of connections may be idle.
func ofConnection(ctx context.Context) context.Context {
	return access.WithCaller(context.WithValue(context.Background(), factsKey{}, factsOf(ctx)), access.CallerFrom(ctx))
}

// ended logs and measures an answered request.
func (s *Server) ended(a *recorder, r *http.Request) {
	s.metrics.observe(r, a.status, a.answered())
	if line := s.cfg.Logger.Check(zap.DebugLevel, "request"); line != nil {
		line.Write(
			zap.String("requestId", requestID(r.Context())),
			zap.String("method", r.Method),
			zap.String("path", r.URL.Path),
			zap.Int("status", a.status),
			zap.Float64("durationSeconds", time.Since(a.begin).Seconds()),
		)
	}
}

// requestIDHeader has the request id, in requests and in answers.
const requestIDHeader = "X-Request-Id"

// newRequestID returns the client's request id if it is short and has only plain characters,
// otherwise a new one.
func newRequestID(given string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, odd) {
		return given
	}
	return rand.Text()
}

package server

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
)

// facts are what the edge knows of a request. They are its context as well: one value
// for all of them.
type facts struct {
	context.Context
	// id of the request.
	id string
	// api is the name of the API of the request's path; empty for other paths.
	api string
}

type factsKey struct{}

// Value is part of [context.Context].
func (f *facts) Value(key any) any {
	if key == (factsKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// factsOf are those of the request that ctx belongs to; empty where there is none.
func factsOf(ctx context.Context) facts {
	if f, ok := ctx.Value(factsKey{}).(*facts); ok {
		return *f
	}
	return facts{}
}

func requestID(ctx context.Context) string { return factsOf(ctx).id }

// ofConnection is what a connection that lives longer than its request keeps of the
// request's context: who asks, for which API, and the id. The rest is much for one of
// thousands that are silent.
func ofConnection(ctx context.Context) context.Context {
	out := factsOf(ctx)
	out.Context = access.WithCaller(context.Background(), access.CallerFrom(ctx))
	return &out
}

// request is one request at the edge, with the recorder of its answer.
type request struct {
	facts
	recorder
	begin time.Time
	// header is the value of the header that has the id.
	header [1]string
}

// contextOf is the context of a request that the edge has begun, for which it is also the
// writer of the answer: nothing between the edge and the API may wrap that. An
// [http.Request] that has the context would be a copy of each.
func contextOf(w http.ResponseWriter, r *http.Request) context.Context {
	if q, ok := w.(*request); ok {
		return &q.facts
	}
	return r.Context()
}

// newRequest begins a request: its id and the headers that each answer has.
func (s *Server) newRequest(w http.ResponseWriter, r *http.Request) *request {
	q := &request{begin: time.Now()}
	q.facts = facts{Context: r.Context(), id: newRequestID(r.Header.Get(requestIDHeader)), api: s.cfg.Paths[r.URL.Path]}
	q.recorder = recorder{ResponseWriter: w, status: http.StatusOK}
	q.header[0] = q.id
	h := w.Header()
	h[requestIDHeader] = q.header[:]
	h["X-Content-Type-Options"] = noSniffing
	return q
}

// noSniffing is the value of X-Content-Type-Options that all answers share.
var noSniffing = []string{"nosniff"}

// ended notes what became of the request.
func (s *Server) ended(q *request, r *http.Request) {
	s.metrics.observe(r, q.status, q.answered(q.begin))
	if line := s.cfg.Logger.Check(zap.DebugLevel, "request"); line != nil {
		line.Write(zap.String("requestId", q.id), zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Int("status", q.status), zap.Duration("took", time.Since(q.begin)))
	}
}

// requestIDHeader carries the request id in both directions.
const requestIDHeader = "X-Request-Id"

// newRequestID takes a sane id of the client, or makes one.
func newRequestID(given string) string {
	sane := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r)
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, func(r rune) bool { return !sane(r) }) {
		return given
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], rand.Uint64()) // an id is no secret
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	var text [2 * len(b)]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

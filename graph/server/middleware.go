package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rs/cors"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

type contextKey int

const (
	requestIDKey contextKey = iota
	// overKey marks requests of a connection that is one too many.
	overKey
	// apiKey names the API of the request's path.
	apiKey
)

// ofConnection is what a connection that lives longer than its request keeps of the
// request's context: who asks, for which API, and the id. The rest is much for one of
// thousands that are silent.
func ofConnection(ctx context.Context) context.Context {
	out := access.WithCaller(context.Background(), access.CallerFrom(ctx))
	out = context.WithValue(out, requestIDKey, requestID(ctx))
	return context.WithValue(out, apiKey, ctx.Value(apiKey))
}

// requestIDHeader carries the request id in both directions.
const requestIDHeader = "X-Request-Id"

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// newRequestID takes a sane id of the client, or makes one.
func newRequestID(given string) string {
	sane := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r)
	}
	if given != "" && len(given) <= 64 && !strings.ContainsFunc(given, func(r rune) bool { return !sane(r) }) {
		return given
	}
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// edge gives every request an id, a log line, a metric and a guard against
// panics, and refuses foreign hosts and origins.
func (s *Server) edge(next http.Handler) http.Handler {
	next = s.crossOrigin(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := newRequestID(r.Header.Get(requestIDHeader))
		ctx := context.WithValue(r.Context(), requestIDKey, id)
		if name := s.cfg.Paths[r.URL.Path]; name != "" {
			ctx = context.WithValue(ctx, apiKey, name)
		}
		r = r.WithContext(ctx)
		w.Header().Set(requestIDHeader, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		begin := time.Now()
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.cfg.Logger.Error("panic", zap.String("requestId", id), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
				refuse(rec, r, http.StatusInternalServerError, failure.CodeInternal, "internal error")
			}
			s.metrics.observe(r, rec.status, rec.answered(begin))
			s.cfg.Logger.Debug("request", zap.String("requestId", id), zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Int("status", rec.status), zap.Duration("took", time.Since(begin)))
		}()
		switch {
		case s.overConnections(rec, r):
		case !s.hostAllowed(r.Host):
			refuse(rec, r, http.StatusForbidden, failure.CodeForbidden, "this Host is not served; add it to allowed-hosts")
		case !s.originAllowed(r):
			refuse(rec, r, http.StatusForbidden, failure.CodeForbidden, "this Origin is not served; add it to allowed-origins")
		default:
			next.ServeHTTP(rec, r)
		}
	})
}

// hostAllowed accepts IP addresses, localhost and what is configured: a foreign
// name that resolves to the gateway is a DNS rebinding attack. A request of
// HTTP/1.0 may have no Host; browsers always send one.
func (s *Server) hostAllowed(host string) bool {
	if host == "" {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || host == "localhost" || slices.Contains(s.cfg.AllowedHosts, host)
}

// originAllowed accepts requests that no page of another site makes.
func (s *Server) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(s.cfg.AllowedOrigins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// preflightAge is how long a browser may remember what it may send, in seconds.
const preflightAge = 600

// crossOrigin tells browsers that pages of the configured origins may read answers.
func (s *Server) crossOrigin(next http.Handler) http.Handler {
	if len(s.cfg.AllowedOrigins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: s.cfg.AllowedOrigins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"Accept", "Authorization", "Content-Type", "Last-Event-ID", requestIDHeader},
		ExposedHeaders: []string{requestIDHeader},
		MaxAge:         preflightAge,
	}).Handler(next)
}

// refuse answers a request that does not reach the API, in the form of the API.
func refuse(w http.ResponseWriter, r *http.Request, status int, code failure.Code, message string) {
	refuseWith(w, r, status, message, map[string]any{"code": code})
}

// refuseWith is refuse with extensions of the error.
func refuseWith(w http.ResponseWriter, r *http.Request, status int, message string, extensions map[string]any) {
	extensions["requestId"] = requestID(r.Context())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"message": message, "extensions": extensions}}})
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
	stream time.Time // when an answer began that goes on; zero if it is no stream
}

// answered is how long the answer took: of a stream, how long until it began.
func (r *recorder) answered(begin time.Time) time.Duration {
	if !r.stream.IsZero() {
		return r.stream.Sub(begin)
	}
	return time.Since(begin)
}

// Hijack hands the connection to WebSocket.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.status, r.wrote = http.StatusSwitchingProtocols, true
	}
	return conn, rw, err
}

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
		if strings.HasPrefix(r.Header().Get("Content-Type"), "text/event-stream") {
			r.stream = time.Now()
		}
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] reach hijacking, flushing and deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

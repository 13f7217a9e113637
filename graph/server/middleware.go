package server

import (
	"bufio"
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

	"github.com/sluicegw/sluice/backend/service/failure"
)

// overKey is the key in contexts that marks connections beyond the limit.
type overKey struct{}

// edge returns a handler that gives every request an id, a log line and a metric, recovers from panics, and refuses
// foreign hosts and origins. Pages of allowed origins may read the response headers named by exposed.
func (s *Server) edge(next http.Handler, exposed ...string) http.Handler {
	next = s.crossOrigin(next, exposed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, edge := s.withFacts(r)
		known := factsOf(r.Context())
		q := &recorder{ResponseWriter: w, status: http.StatusOK, begin: time.Now()}
		q.Header().Set(requestIDHeader, known.id)
		if known.trace != "" {
			q.Header().Set(traceIDHeader, known.trace)
		}
		q.Header().Set("X-Content-Type-Options", "nosniff")
		// The client should open another connection before this one is closed.
		if s.draining.Err() != nil && r.ProtoMajor == 1 {
			q.Header().Set("Connection", "close")
		}
		defer func() {
			broken, cut := s.endPanic(q, r, recover())
			if broken != errorAborted {
				s.ended(q, r)
			}
			endTrace(edge, q, r, broken)
			if cut {
				panic(http.ErrAbortHandler)
			}
		}()
		switch {
		case s.overConnections(q, r):
		case r.Host == "":
			s.forbid(q, r, "there is no Host; name the gateway in a header Host, as HTTP/1.1 wants it")
		case !s.hostAllowed(r.Host):
			s.forbid(q, r, "this Host is not served; add it to allowed-hosts")
		case !s.originAllowed(r):
			s.forbid(q, r, "this Origin is not served; add it to allowed-origins")
		default:
			next.ServeHTTP(q, r)
		}
	})
}

// The errors in the spans of requests whose handlers did not return.
const (
	// errorAborted means that the handler has aborted the answer.
	errorAborted = "aborted"
	errorPanic   = "panic"
)

// endPanic handles the value with which a handler has panicked. The value is nil if the handler has returned. broken
// names the error; it is empty for none. cut reports whether the connection must be cut, so that an incomplete answer
// does not look complete.
func (s *Server) endPanic(q *recorder, r *http.Request, panicked any) (broken string, cut bool) {
	switch panicked {
	case nil:
		return "", false
	case http.ErrAbortHandler:
		return errorAborted, true
	}
	s.cfg.Logger.Error("panic", append(
		ids(r.Context()),
		zap.Any("panic", panicked),
		zap.ByteString("stack", debug.Stack()),
	)...)
	if q.wrote {
		q.status = http.StatusInternalServerError // in metrics and logs
		return errorPanic, true
	}
	refuse(q, r, http.StatusInternalServerError, failure.CodeInternal, "internal error")
	return errorPanic, false
}

// hostAllowed reports whether a host is an IP address, localhost or an allowed name. A request with another name may be
// part of a DNS rebinding attack.
func (s *Server) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return net.ParseIP(name) != nil || name == "localhost" || slices.Contains(s.cfg.AllowedHosts, name)
}

// originAllowed reports whether the Origin of a request is missing, the gateway's own, or allowed. If a proxy
// terminates TLS, the gateway's own pages have an https origin although the gateway serves http. That origin is
// accepted unless the browser marks the request as cross-site, which it never does for a WebSocket. If the gateway
// itself uses TLS, an http origin is never its own.
func (s *Server) originAllowed(r *http.Request) bool {
	origins := r.Header["Origin"]
	switch {
	case len(origins) == 0:
		return true
	case len(origins) > 1:
		return false
	case slices.Contains(s.cfg.AllowedOrigins, strings.ToLower(origins[0])):
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	if r.TLS != nil {
		return u.Scheme == "https"
	}
	site := r.Header["Sec-Fetch-Site"]
	return u.Scheme == "http" || u.Scheme == "https" && (len(site) == 0 || slices.Equal(site, []string{"same-origin"}))
}

// preflightAge is how long browsers may cache the answer to a preflight, in seconds.
const preflightAge = 600

// crossOrigin returns a handler that lets pages of the allowed origins read answers and the exposed headers (CORS).
func (s *Server) crossOrigin(next http.Handler, exposed []string) http.Handler {
	if len(s.cfg.AllowedOrigins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: s.cfg.AllowedOrigins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"*"}, // pages with tracing send headers of their own
		ExposedHeaders: append([]string{
			requestIDHeader,
			traceIDHeader,
			"ETag",
			"Retry-After",
			"WWW-Authenticate",
			"Deprecation",
			"Sunset",
			"Link",
		}, exposed...),
		MaxAge: preflightAge,
	}).Handler(next)
}

// refuse answers a request that does not reach the API, with an error in the same form as errors of the API.
func refuse(w http.ResponseWriter, r *http.Request, status int, code failure.Code, message string) {
	refuseWith(w, r, status, message, map[string]any{"code": code})
}

// refuseWith is like refuse, with other extensions.
func refuseWith(w http.ResponseWriter, r *http.Request, status int, message string, extensions map[string]any) {
	setIDs(r.Context(), extensions)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{
		"message":    message,
		"extensions": extensions,
	}}})
}

// recorder is a response writer that records the status and the duration of an answer.
type recorder struct {
	http.ResponseWriter
	begin  time.Time
	status int
	wrote  bool
	stream time.Time // when an event stream began; zero for other answers
}

// answered returns the duration of the answer; for a stream, the time until it began.
func (r *recorder) answered() time.Duration {
	if !r.stream.IsZero() {
		return r.stream.Sub(r.begin)
	}
	return time.Since(r.begin)
}

// Hijack implements [http.Hijacker], for WebSocket connections.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.status, r.wrote = http.StatusSwitchingProtocols, true
	}
	return conn, rw, err
}

// streamBegins records that the answer written to w is a stream that has begun.
func streamBegins(w http.ResponseWriter) {
	for {
		if r, ok := w.(*recorder); ok {
			r.stream = time.Now()
			return
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = inner.Unwrap()
	}
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

// Unwrap lets [http.ResponseController] use the methods of the wrapped writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

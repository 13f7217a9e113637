package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/answer"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/transport"
)

// Server is the HTTP server of a gateway.
type Server struct {
	cfg       Config
	metrics   *metrics
	handler   http.Handler
	transport *transport.Transport
	// documents are the documents that clients can name instead of sending them. Each generation parses them.
	documents *transport.NamedDocuments
	// generation is the generation that is being served.
	generation atomic.Pointer[Generation]
	replaced   replaced
	// draining is a context that ends when the server begins to drain.
	draining      context.Context
	startDraining context.CancelFunc
	// methodStreams is a context that ends when streams of the standard methods must end, after the drain delay.
	methodStreams    context.Context
	endMethodStreams context.CancelFunc
	// memory is the memory that all requests share.
	memory *budget.Memory
	// work is the allowance of steps that the events of all subscriptions share.
	work *budget.Allowance
	// cpuSlots limits how many long operations run at once, so that one processor remains for the others.
	cpuSlots *budget.CPUSlots
	// answered counts the queries of all generations, by their results in the cache of answers.
	answered answer.Stats
	// callers counts what each caller uses.
	callers   *callers
	readiness readiness
	// unavailable and unready limit how often it is logged that clients got an error because the store was unavailable
	// or the gateway not ready.
	unavailable, unready rate.Sometimes
}

// New returns a server. It starts nothing; see [Server.Serve].
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	s := &Server{
		cfg:         cfg,
		cpuSlots:    budget.NewCPUSlots(max(runtime.GOMAXPROCS(0)-1, 1)),
		memory:      budget.NewMemory(cfg.Limits.Memory, cfg.Limits.Held+cfg.Limits.Answer),
		work:        budget.NewAllowance(cfg.Limits.Events),
		callers:     newCallers(cfg.Caller, DefaultCallerLimits(runtime.GOMAXPROCS(0)), time.Now),
		unavailable: rate.Sometimes{Interval: logInterval},
		unready:     rate.Sometimes{Interval: logInterval},
	}
	s.draining, s.startDraining = context.WithCancel(context.Background())
	s.methodStreams, s.endMethodStreams = context.WithCancel(context.Background())
	var err error
	if s.metrics, err = newMetrics(s); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if s.documents, err = transport.OpenNamedDocuments(cfg.Documents); err != nil {
		return nil, err
	}
	first, err := s.Prepare(cfg.Catalogue)
	if err != nil {
		return nil, err
	}
	s.Replace(first)
	if s.transport, err = s.newTransport(); err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	mux := http.NewServeMux()
	guarded := s.identified(s.sameOriginOnly(s.transport), s.transport.Refuse)
	mux.Handle(apiPath, guarded)
	mux.Handle(consoleEndpoint, guarded)
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.generation.Load().console.ServeHTTP(w, r)
	})
	mux.Handle("GET "+console.DataPath, s.identified(front, s.refuseCaller))
	for path, handler := range map[string]http.Handler{
		"/{$}": front, "/console/": front,
		"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }),
		"/readyz":  http.HandlerFunc(s.readyz),
		"/login":   http.HandlerFunc(s.login),
		"/metrics": s.identified(promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}), s.refuseCaller),
	} {
		mux.Handle("GET "+path, handler) // and HEAD
		mux.HandleFunc(path, refuseMethod("GET, HEAD", "use GET"))
	}
	if cfg.Reload != nil {
		mux.Handle("POST "+reloadPath, s.identified(s.sameOriginOnly(http.HandlerFunc(s.reload)), s.refuseCaller))
		mux.HandleFunc(reloadPath, refuseMethod("POST", "use POST"))
	}
	for path, handler := range map[string]http.Handler{exportPath: cfg.Export, backupPath: cfg.Backup} {
		if handler != nil {
			mux.Handle("GET "+path, s.identified(s.sameOriginOnly(s.exporting(handler)), s.refuseCaller))
			mux.HandleFunc(path, refuseMethod("GET", "use GET"))
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusNotFound, failure.CodeNotFound, s.generation.Load().nothingText())
	})
	s.handler = s.edge(s.versioned(guarded, mux))
	return s, nil
}

// refuseMethod returns a handler that refuses requests and names the methods that the path allows.
func refuseMethod(allowed, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		refuse(w, r, http.StatusMethodNotAllowed, failure.CodeBadUserInput, message)
	}
}

func (s *Server) newTransport() (*transport.Transport, error) {
	l, by := s.cfg.Limits, func(g prometheus.Gauge) func(int) { return func(delta int) { g.Add(float64(delta)) } }
	return transport.New(transport.Config{
		Executor:      s.executor,
		Ack:           s.ack,
		Logger:        s.cfg.Logger,
		Memory:        s.memory,
		Work:          s.work,
		Init:          s.initSocket,
		Admit:         s.admit,
		Keep:          ofConnection,
		Connections:   l.Sockets,
		Streams:       l.Sockets,
		Body:          l.Body,
		Message:       l.Body,
		Time:          l.Time,
		SocketsOpened: by(s.metrics.sockets),
		StreamsOpened: by(s.metrics.streams),
		Started:       by(s.metrics.operations),
		Closed:        func(code int) { s.metrics.closed.WithLabelValues(strconv.Itoa(code)).Inc() },
	})
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return s.handler }

// sendBuffer is the size of the kernel's send buffer for a connection, in bytes; Linux doubles it. By default the
// buffer of a client that does not read would grow to megabytes.
const sendBuffer = 256 << 10

// Serve accepts connections on l until ctx ends, and then drains: see [Config.DrainDelay]. It returns nil after a clean
// end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, edgeServer{handler: s.handler, drain: s.transport.Drain})
}

// edgeServer has the parts in which the servers of a gateway differ.
type edgeServer struct {
	handler http.Handler
	// protocols are the protocols to serve; nil for the defaults of package http.
	protocols *http.Protocols
	// drain ends what would otherwise go on for a long time, such as subscriptions; may be nil.
	drain func(context.Context)
}

// stuckTime is how long an HTTP/2 connection may accept no byte before it is closed. The deadline of a single write
// only resets its stream, and if nothing can be sent on the connection, the reset cannot be sent either.
const stuckTime = 10 * time.Second

func (s *Server) serve(ctx context.Context, l net.Listener, of edgeServer) error {
	base := context.WithoutCancel(ctx) // running requests may finish
	conns := &fresh{conns: map[net.Conn]struct{}{}}
	srv := &http.Server{
		ConnState:   conns.note,
		Handler:     of.handler,
		Protocols:   of.protocols,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secured, ok := c.(*tls.Conn); ok {
				c = secured.NetConn()
			}
			if c, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
				_ = c.SetWriteBuffer(sendBuffer)
			}
			return markConnection(ctx, c)
		},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      s.cfg.Limits.Time + time.Minute,
		IdleTimeout:       2 * time.Minute,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: stuckTime},
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.cfg.Logger.Named("http")),
	}
	done := make(chan error, 1)
	serve := srv.Serve
	if s.cfg.TLS != nil {
		srv.TLSConfig = s.cfg.TLS.Config()
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	go func() { done <- serve(&bounded{Listener: l, most: s.cfg.Limits.Connections}) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return s.drain(base, drained{server: srv, conns: conns, failed: done, streams: of.drain})
}

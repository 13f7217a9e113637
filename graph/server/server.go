package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/loader"
	v1 "github.com/sluicegw/sluice/graph/v1"
	resolvers "github.com/sluicegw/sluice/resolvers/v1"
)

// Server is the HTTP edge of one gateway.
type Server struct {
	cfg      Config
	metrics  *metrics
	handler  http.Handler
	draining atomic.Bool
	// sockets counts the WebSocket connections, which no http.Server waits for.
	sockets sync.WaitGroup
}

// New builds the handler. It starts nothing.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s := &Server{cfg: cfg, metrics: m}
	page, err := s.page()
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	api := s.api(v1.NewExecutableSchema(v1.Config{Resolvers: resolvers.New(cfg.Service)}))
	mux := http.NewServeMux()
	mux.Handle("/graphql", api)
	mux.Handle("/v1/graphql", api)
	mux.HandleFunc("GET /{$}", page)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusNotFound, service.CodeNotFound, "there is nothing here; the API is at /graphql and /v1/graphql")
	})
	s.handler = s.edge(mux)
	return s, nil
}

// Handler serves all paths.
func (s *Server) Handler() http.Handler { return s.handler }

// api serves one executable schema by gqlgen's stock transports.
func (s *Server) api(schema graphql.ExecutableSchema) http.Handler {
	delete(schema.Schema().Directives, "defer") // the transports cannot deliver it
	srv := handler.New(schema)
	srv.AddTransport(transport.Websocket{
		InitTimeout:      10 * time.Second,
		PayloadReadLimit: &s.cfg.Limits.Body,
		Implementation:   socketImplementation{},
	})
	srv.AddTransport(transport.GET{})
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](documentCache))
	srv.SetParserTokenLimit(s.cfg.Limits.Tokens)
	srv.SetErrorPresenter(s.present)
	srv.SetRecoverFunc(func(ctx context.Context, p any) error {
		s.cfg.Logger.Error("panic in a resolver", zap.String("requestId", requestID(ctx)), zap.Any("panic", p), zap.Stack("stack"))
		return &service.Error{Code: service.CodeInternal, Message: "internal error"}
	})
	srv.Use(newDocumentLimits(s.cfg.Limits))
	srv.Use(extension.Introspection{})
	srv.AroundOperations(refuseStreamOverHTTP)
	srv.AroundResponses(s.withLoaders)
	return s.bound(srv)
}

// withLoaders gives each response loaders of its own: each query, and each
// event of a subscription, reads afresh.
func (s *Server) withLoaders(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(loader.With(ctx, s.cfg.Service, service.Caller{}, s.cfg.LoaderWait))
}

// refuseStreamOverHTTP answers a subscription that comes by POST or GET, which
// cannot carry it, instead of waiting for its first event.
func refuseStreamOverHTTP(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	op := graphql.GetOperationContext(ctx).Operation
	if op != nil && op.Operation == ast.Subscription && !isStream(ctx) {
		return graphql.OneShot(&graphql.Response{Errors: gqlerror.List{{
			Message:    "subscriptions are served over WebSocket (graphql-transport-ws) on this path",
			Extensions: map[string]any{"code": string(service.CodeBadUserInput), "requestId": requestID(ctx)},
		}}})
	}
	return next(ctx)
}

// bound limits the bytes and the time of one request.
func (s *Server) bound(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			s.sockets.Add(1)
			defer s.sockets.Done()
			s.metrics.sockets.Inc()
			defer s.metrics.sockets.Dec()
			api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), streamKey, true)))
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			w.Header().Set("Allow", "GET, POST")
			refuse(w, r, http.StatusMethodNotAllowed, service.CodeBadUserInput, "use POST, or GET for queries")
			return
		}
		body, err := readBody(w, r, s.cfg.Limits.Body)
		if err != nil {
			refuse(w, r, http.StatusRequestEntityTooLarge, service.CodeLimitExceeded, fmt.Sprintf("the request has more than the %d bytes that are accepted (configuration key limit-body)", s.cfg.Limits.Body))
			return
		}
		r.Body = body
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Limits.Time)
		defer cancel()
		api.ServeHTTP(w, r.WithContext(ctx))
	})
}

// readyz says whether requests can be served now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	switch err := s.cfg.Ready(ctx); {
	case s.draining.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case err != nil:
		s.cfg.Logger.Warn("not ready", zap.Error(err))
		http.Error(w, "the store is not available", http.StatusServiceUnavailable)
	default:
		_, _ = w.Write([]byte("ok\n"))
	}
}

// Serve answers on the listener until ctx ends, then lets running requests
// finish within the drain time-out and closes sockets. It returns nil after a
// clean end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	srv := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      s.cfg.Limits.Time + time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.cfg.Logger.Named("http")),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout) // outlives base, which ends the sockets
	defer cancel()
	err := srv.Shutdown(limit)
	stop() // ends the sockets
	s.waitForSockets(limit)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not finish in %v: %w", s.cfg.DrainTimeout, err), srv.Close())
	}
	<-done
	return err
}

// waitForSockets lets the sockets say good-bye, for as long as ctx lasts.
func (s *Server) waitForSockets(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		s.sockets.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

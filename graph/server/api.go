package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/document"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/transport"
)

// api serves one version of the API over every transport.
type api struct {
	http    *transport.HTTP
	sockets *transport.Sockets
}

func (s *Server) newAPI(schema graphql.ExecutableSchema, named *document.Store) (*api, error) {
	delete(schema.Schema().Directives, "defer") // the transports do not deliver it
	exec := executor.New(schema)
	exec.SetQueryCache(parsed{})
	exec.SetErrorPresenter(s.present)
	exec.SetRecoverFunc(func(ctx context.Context, p any) error {
		s.cfg.Logger.Error("panic in a resolver", zap.String("requestId", requestID(ctx)), zap.Any("panic", p), zap.Stack("stack"))
		return &service.Error{Code: service.CodeInternal, Message: "internal error"}
	})
	exec.Use(oneStream{root: schema.Schema().Subscription.Name})
	exec.Use(objectLimit{most: s.cfg.Limits.Objects})
	exec.Use(extension.Introspection{})
	exec.AroundResponses(s.withLoaders)

	l := s.cfg.Limits
	e := transport.NewExecutor(transport.ExecutorConfig{
		Executor: exec, Named: named,
		Documents: &documents{schema: schema.Schema(), limits: l, hidden: s.cfg.HideSchema, cache: newDocumentCache(l.CachedTokens)},
	})
	bodies := transport.NewBudget(l.Bodies)
	if err := s.metrics.bodies(bodies.Used); err != nil {
		return nil, err
	}
	sockets, err := transport.NewSockets(transport.SocketConfig{
		Executor: e, Logger: s.cfg.Logger,
		Connections: l.Sockets, Waiting: l.SocketsWaiting, Operations: l.Operations, Message: l.Message, Time: l.Time,
		Queue: l.Queue, QueueBytes: l.QueueBytes, Messages: bodies, MessageTimeout: s.cfg.BodyTimeout,
		InitTimeout: s.cfg.InitTimeout, PingInterval: s.cfg.PingInterval, WriteTimeout: s.cfg.WriteTimeout,
		Opened: by(s.metrics.sockets), Started: by(s.metrics.operations),
		Closed: func(code int) { s.metrics.closed.WithLabelValues(strconv.Itoa(code)).Inc() },
	})
	if err != nil {
		return nil, err
	}
	return &api{sockets: sockets, http: &transport.HTTP{
		Executor: e, Body: l.Body, Bodies: bodies, BodyTimeout: s.cfg.BodyTimeout, Time: l.Time,
		Events: &transport.Events{
			Executor: e, Logger: s.cfg.Logger, Streams: l.Streams, Queue: l.Queue, QueueBytes: l.QueueBytes,
			WriteTimeout: s.cfg.WriteTimeout, Opened: by(s.metrics.streams),
		},
	}}, nil
}

// withLoaders gives each response loaders of its own: each query, and each
// event of a subscription, reads afresh.
func (s *Server) withLoaders(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(loader.With(ctx, s.cfg.Service, service.Caller{}, s.cfg.LoaderWait))
}

// drain ends all streams, so that their clients resume elsewhere, and waits
// until they have gone or ctx ends.
func (a *api) drain(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { a.sockets.Drain(ctx) })
	both.Go(func() { a.http.Events.Drain(ctx) })
	a.http.Drain(lateGrace)
	both.Wait()
}

// ServeHTTP hands a request to its transport.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		a.sockets.ServeHTTP(w, r)
		return
	}
	a.http.ServeHTTP(w, r)
}

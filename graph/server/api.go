package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/document"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/transport"
	"github.com/sluicegw/sluice/resolvers"
)

// api serves one version of the API over every transport.
type api struct {
	http    *transport.HTTP
	sockets *transport.Sockets
}

func (s *Server) newAPI(named *document.Store) (*api, error) {
	schema := s.cfg.Schema
	eng, err := engine.New(engine.Config{
		Service: s.cfg.Service, Schema: schema, LoaderWait: s.cfg.LoaderWait,
		Core: core.NewExecutableSchema(core.Config{Schema: schema, Resolvers: resolvers.New(s.cfg.Service)}),
	})
	if err != nil {
		return nil, err
	}
	exec := executor.New(eng)
	exec.SetQueryCache(parsed{})
	exec.SetErrorPresenter(s.present)
	exec.SetRecoverFunc(func(ctx context.Context, p any) error {
		s.cfg.Logger.Error("panic in a resolver", zap.String("requestId", requestID(ctx)), zap.Any("panic", p), zap.Stack("stack"))
		return &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
	})
	exec.Use(variables{schema: schema})
	exec.Use(oneStream{root: schema.Subscription.Name})
	exec.AroundResponses(s.bound)
	exec.Use(extension.Introspection{})

	l := s.cfg.Limits
	bodies := transport.NewBudget(l.Memory)
	e := transport.NewExecutor(transport.ExecutorConfig{
		Executor: exec, Named: named, Memory: bodies, Work: budget.NewAllowance(int64(l.Events)),
		Documents: &documents{schema: schema, limits: l, hidden: s.cfg.HideSchema, cache: newDocumentCache(l.CachedTokens, eng)},
	})
	if err := s.metrics.waits(bodies, s.turns); err != nil {
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
			Bodies: bodies, WriteTimeout: s.cfg.WriteTimeout, Opened: by(s.metrics.streams),
		},
	}}, nil
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

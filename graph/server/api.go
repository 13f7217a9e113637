package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicegw/sluice/graph/transport"
)

// api serves all versions of the API over every transport, as long as the server
// lives: the generations come and go behind it.
type api struct {
	http    *transport.HTTP
	sockets *transport.Sockets
}

func (s *Server) newAPI() (*api, error) {
	l, e := s.cfg.Limits, newest{s}
	if err := s.metrics.waits(s.memory, s.turns); err != nil {
		return nil, err
	}
	sockets, err := transport.NewSockets(transport.SocketConfig{
		Keep:     ofConnection,
		Executor: e, Logger: s.cfg.Logger,
		Connections: l.Sockets, Waiting: l.SocketsWaiting, Operations: l.Operations, Message: l.Message, Time: l.Time,
		Queue: l.Queue, QueueBytes: l.QueueBytes, Memory: s.memory, Work: s.work, MessageTimeout: s.cfg.BodyTimeout,
		InitTimeout: s.cfg.InitTimeout, PingInterval: s.cfg.PingInterval, WriteTimeout: s.cfg.WriteTimeout,
		Opened: by(s.metrics.sockets), Started: by(s.metrics.operations),
		Closed: func(code int) { s.metrics.closed.WithLabelValues(strconv.Itoa(code)).Inc() },
	})
	if err != nil {
		return nil, err
	}
	return &api{sockets: sockets, http: &transport.HTTP{
		Executor: e, Body: l.Body, Memory: s.memory, BodyTimeout: s.cfg.BodyTimeout, WriteTimeout: s.cfg.WriteTimeout, Time: l.Time,
		Events: &transport.Events{
			Executor: e, Logger: s.cfg.Logger, Streams: l.Streams, Queue: l.Queue, QueueBytes: l.QueueBytes,
			Memory: s.memory, Work: s.work, WriteTimeout: s.cfg.WriteTimeout, Opened: by(s.metrics.streams),
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
	ctx := contextOf(w, r)
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		a.sockets.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	a.http.Serve(ctx, w, r)
}

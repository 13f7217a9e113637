package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluicegw/sluice/graph/transport"
)

// fresh is the set of connections on which no request has arrived yet. [http.Server.Shutdown] alone would wait five
// seconds for each.
type fresh struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is the [http.Server.ConnState] hook.
func (f *fresh) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.conns[c] = struct{}{}
	} else {
		delete(f.conns, c)
	}
}

// close closes all connections in the set.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}

// drainTimeout is how long running requests may take after the server has stopped accepting connections.
const drainTimeout = 10 * time.Second

// drained is a server that is being shut down.
type drained struct {
	server *http.Server
	conns  *fresh
	failed <-chan error
	// streams ends what would otherwise go on for a long time, such as subscriptions; may be nil.
	streams func(context.Context)
}

// drain shuts a server down in order. During the drain delay it still serves, but reports that it is not ready, so that
// load balancers notice. Then it accepts no more connections: streams end, requests that have arrived are answered, and
// those that are still arriving are abandoned after transport.LateGrace.
func (s *Server) drain(ctx context.Context, of drained) error {
	s.startDraining()
	if s.cfg.DrainDelay > 0 {
		select {
		case <-time.After(s.cfg.DrainDelay):
		case err := <-of.failed:
			return fmt.Errorf("serve: %w", err)
		}
	}
	limit, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	late := time.AfterFunc(min(transport.LateGrace, drainTimeout/2), of.conns.close)
	defer late.Stop()
	var streams sync.WaitGroup
	if of.streams != nil {
		streams.Go(func() { of.streams(limit) })
	}
	err := of.server.Shutdown(limit)
	streams.Wait()
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not finish in %v: %w", drainTimeout, err), of.server.Close())
	}
	<-of.failed
	return err
}

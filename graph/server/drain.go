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
)

// fresh is the set of connections whose first request has not arrived yet.
type fresh struct {
	// some says that there are any: it is asked twice for each request.
	some atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is told of each change of a connection.
func (f *fresh) note(c net.Conn, state http.ConnState) {
	if state != http.StateNew && !f.some.Load() {
		return // the new ones are noted, this one too, before any of their requests
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.conns[c] = struct{}{}
	} else {
		delete(f.conns, c)
	}
	f.some.Store(len(f.conns) > 0)
}

// close closes them.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}

// lateGrace is how long clients have to send the rest of a request once the server
// shuts down.
const lateGrace = time.Second

// drain shuts the server down in order. First it reports that it is not ready, but
// goes on to serve for the drain delay, so that load balancers can notice. Then it
// accepts nothing more: streams end, requests that have arrived are answered, and
// those that are still arriving are abandoned after lateGrace.
func (s *Server) drain(ctx context.Context, srv *http.Server, conns *fresh, failed <-chan error) error {
	s.draining.Store(true)
	if s.cfg.DrainDelay > 0 {
		select {
		case <-time.After(s.cfg.DrainDelay):
		case err := <-failed:
			return fmt.Errorf("serve: %w", err)
		}
	}
	limit, cancel := context.WithTimeout(ctx, s.cfg.DrainTimeout)
	defer cancel()
	late := time.AfterFunc(min(lateGrace, s.cfg.DrainTimeout/2), conns.close)
	defer late.Stop()
	var streams sync.WaitGroup
	streams.Go(func() { s.api.drain(limit) })
	err := srv.Shutdown(limit)
	streams.Wait()
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not finish in %v: %w", s.cfg.DrainTimeout, err), srv.Close())
	}
	<-failed
	return err
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// fresh are the connections whose first request has not come.
type fresh struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is told of each change of a connection.
func (f *fresh) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.conns[c] = struct{}{}
	} else {
		delete(f.conns, c)
	}
}

// close closes them.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}

// lateGrace is how long clients may take to send the rest of a request when the
// server is to stop.
const lateGrace = time.Second

// drain ends the server in order. It is not ready from now on, but serves for
// another drain delay, so that whoever sends it requests can notice. Then it
// accepts nothing more: streams end, requests that are there are answered, and
// those that are still being sent are given up.
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

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// NotReadyError is the reason why a gateway is not ready yet, as shown by /readyz.
type NotReadyError struct{ Why string }

func (e *NotReadyError) Error() string { return e.Why }

// readyTime is the maximum time for finding out whether the gateway is ready.
const readyTime = 2 * time.Second

// errDraining is the reason why a gateway that is being stopped is not ready.
var errDraining = errors.New("draining")

// ready returns the reason why the gateway is not ready; nil if it is.
func (s *Server) ready(ctx context.Context) error {
	if s.draining.Err() != nil {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return s.cfg.Ready(ctx)
}

// readiness is the newest result of [Server.ready], for metrics. The zero value is not ready.
type readiness struct {
	mu sync.Mutex
	// checked is closed when the present check has ended; nil if there is none.
	checked chan struct{}
	ready   bool
}

// scrapePatience is how long a scrape waits for the result of a check. A scrape that waited for a store that does not
// answer would exceed its own time limit, and all metrics would be missing when they are needed most.
const scrapePatience = 100 * time.Millisecond

// isReady checks whether the gateway is ready, and returns the result. If the check takes too long, it returns the
// result of the previous check, and the next call returns the result of this check.
func (s *Server) isReady() bool {
	r := &s.readiness
	r.mu.Lock()
	if r.checked == nil {
		r.checked = make(chan struct{})
		go s.checkReady(r.checked)
	}
	checked := r.checked
	r.mu.Unlock()
	select {
	case <-checked:
	case <-time.After(scrapePatience):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready && s.draining.Err() == nil
}

// checkReady checks whether the gateway is ready, and closes checked.
func (s *Server) checkReady(checked chan struct{}) {
	err := s.ready(context.Background())
	s.readiness.mu.Lock()
	defer s.readiness.mu.Unlock()
	s.readiness.ready = err == nil
	s.readiness.checked = nil
	close(checked)
}

// readyz answers whether the gateway is ready.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	var details strings.Builder
	readOnly := ""
	if s.cfg.ReadOnly {
		readOnly = "\nread-only: changes are refused"
	}
	verbose := r.URL.Query().Has("verbose") && s.mayKnow(r)
	if verbose {
		for _, line := range slices.Concat(s.cfg.Filling(), s.cfg.Services()) {
			details.WriteString("\n" + line)
		}
	}
	switch err := s.ready(r.Context()); {
	case errors.Is(err, errDraining):
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case errors.Is(err, backend.ErrDamaged):
		http.Error(w, "the store is damaged; restore a copy", http.StatusServiceUnavailable)
	case errors.Is(err, backend.ErrNoSpace):
		http.Error(w, "the store has no space left and takes no changes", http.StatusServiceUnavailable)
	case errors.As(err, new(*NotReadyError)):
		http.Error(w, err.Error()+details.String(), http.StatusServiceUnavailable)
	case err != nil:
		s.unready.Do(func() { s.cfg.Logger.Warn("not ready", zap.Error(err)) })
		http.Error(w, "the store is not available", http.StatusServiceUnavailable)
	default:
		_, _ = w.Write([]byte("ok" + readOnly + details.String() + "\n"))
		if verbose {
			s.writeDetails(w)
		}
	}
}

// writeDetails writes a line for the current catalogue, and one for each older catalogue with streams.
func (s *Server) writeDetails(w io.Writer) {
	c := s.generation.Load().catalogue
	_, _ = fmt.Fprintf(w, "catalogue %s files %s\n", c.Hash, c.Files)
	older, _ := s.olderStreams()
	for _, one := range older {
		_, _ = fmt.Fprintf(w, "older catalogue %s\n", one)
	}
}

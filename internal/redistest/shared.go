package redistest

import (
	"crypto/rand"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package that inject no faults, in a
// variable of its test files. It starts at first use and keeps no files; TestMain
// ends it by Stop. The zero value is ready.
type Shared struct {
	mu     sync.Mutex // guards server
	server *Server
}

// Server returns the server for use by one test, which is not alone on it: see [Prefix].
func (p *Shared) Server(t testing.TB) *Server {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		s, err := start("", nil)
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		p.server = s
	}
	s := *p.server
	s.attach(t)
	return &s
}

// Stop ends the server, if it was ever used.
func (p *Shared) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.proc.kill()
		p.server = nil
	}
}

// Prefix returns a key prefix that nobody else uses.
func Prefix() string { return "test-" + rand.Text()[:12] + ":" }

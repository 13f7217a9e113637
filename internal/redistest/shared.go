package redistest

import (
	"crypto/rand"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package that inject no faults. A package declares it as a variable. The
// server starts at its first use and keeps no files. TestMain must call [Shared.Stop]. The zero value is ready to use.
type Shared struct {
	mu     sync.Mutex // guards server
	server *Server
}

// Server returns the server for use by a test. Other tests use the same server: see [Prefix].
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

// Stop kills the server, if it was started.
func (p *Shared) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.proc.kill()
		p.server = nil
	}
}

// Prefix returns a prefix of keys that no other test uses.
func Prefix() string { return "test-" + rand.Text()[:12] + ":" }

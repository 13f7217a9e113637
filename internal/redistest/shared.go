package redistest

import (
	"crypto/rand"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package that inject no faults, in a
// variable of its test files. It starts at first use and ends with the process;
// it keeps no files. The zero value is ready.
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

// Prefix returns a key prefix that nobody else uses.
func Prefix() string { return "test-" + rand.Text()[:12] + ":" }

package redistest

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// Promote makes a replica a primary. After a Restart, the server is still a primary.
func (s *Server) Promote() {
	s.t.Helper()
	s.Do("REPLICAOF", "NO", "ONE")
	s.Do("CONFIG", "REWRITE")
}

// Follow makes the server a replica of the server at addr, and returns when the replica is in sync. After a Restart,
// the server is still a replica.
func (s *Server) Follow(addr string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.t.Fatalf("redistest: follow: %v", err)
	}
	s.Do("REPLICAOF", host, port)
	s.Do("CONFIG", "REWRITE")
	s.awaitSync()
}

func (s *Server) awaitSync() {
	s.t.Helper()
	Await(s.t, "replica "+s.Addr, func() error { return s.has("replication", "master_link_status:up") })
}

// AwaitReplicas waits until n replicas of the server have everything that was written so far.
func (s *Server) AwaitReplicas(n int) {
	s.t.Helper()
	c := s.client.Conn()
	defer func() { _ = c.Close() }()
	Await(s.t, "replicas of "+s.Addr, func() error {
		// WAIT waits for the last write of its own connection. Publishing a message is such a write, and stores
		// nothing.
		if err := c.Publish(s.t.Context(), "redistest", "").Err(); err != nil {
			return err
		}
		reached, err := c.Wait(s.t.Context(), n, time.Second).Result()
		if err == nil && reached < int64(n) {
			err = fmt.Errorf("%d of %d are in sync", reached, n)
		}
		return err
	})
}

// has returns an error if a section of INFO does not have a line.
func (s *Server) has(section, line string) error {
	info, err := s.client.Info(s.t.Context(), section).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, line) {
		return fmt.Errorf("no %s in %q", line, info)
	}
	return nil
}

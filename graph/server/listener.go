package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// bounded is a listener that limits the number of connections. It accepts some more, whose requests are refused with a
// reason, and closes all others at once.
type bounded struct {
	net.Listener
	most int

	mu   sync.Mutex
	open int
}

// Accept waits for the next connection and returns it.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		over := b.open >= b.most
		refused := b.open >= b.most+max(b.most/10, 16)
		if !refused {
			b.open++
		}
		b.mu.Unlock()
		if refused {
			_ = conn.Close()
			continue
		}
		c := counted{Conn: conn, over: over, closed: sync.OnceFunc(b.leave)}
		if tcp, ok := conn.(tcpConn); ok {
			return &countedTCP{tcpConn: tcp, counted: c}, nil
		}
		return &c, nil
	}
}

func (b *bounded) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	over   bool // the limit had been reached when it arrived
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

func (c *counted) isOver() bool { return c.over }

// tcpConn has methods of [net.TCPConn] that package transport and [Server.Serve] use if a connection has them.
type tcpConn interface {
	SetWriteBuffer(bytes int) error
	SetLinger(seconds int) error
	syscall.Conn
}

// countedTCP is a TCP connection that is counted.
type countedTCP struct {
	counted
	tcpConn
}

// markConnection returns the context for requests of a connection. It marks connections beyond the limit.
func markConnection(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(interface{ isOver() bool }); ok && c.isOver() {
		return context.WithValue(ctx, overKey{}, true)
	}
	return ctx
}

// overConnections refuses the requests of a connection beyond the limit, except requests for health and metrics. It
// reports whether it has answered the request.
func (s *Server) overConnections(w http.ResponseWriter, r *http.Request) bool {
	if over, _ := r.Context().Value(overKey{}).(bool); !over {
		return false
	}
	w.Header().Set("Connection", "close")
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return false
	}
	w.Header().Set("Retry-After", "1")
	refuseWith(w, r, http.StatusServiceUnavailable, "the gateway has the connections that it accepts (limit-connections)", map[string]any{
		"code":      failure.CodeLimitExceeded,
		"limit":     s.cfg.Limits.Connections,
		"setting":   "limit-connections",
		"retryable": true,
	})
	return true
}

package redis

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// dialer makes the connections of a client: those that the client library makes, but
// with deadlines that are moved rarely.
func dialer(o *goredis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := goredis.NewDialer(o)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newLine(conn), nil
	}
}

// line is a connection whose deadlines may be later than they were set, by at most a
// tenth of the time until then. The runtime takes as long to move one as to send a small
// command, and may wake up a thread for it.
type line struct {
	net.Conn

	mu          sync.Mutex // guards all below
	read, write time.Time  // the deadlines of Conn
}

// checkedLine is a line that the client library can check before it uses it again.
type checkedLine struct {
	*line
	syscall.Conn
}

func newLine(conn net.Conn) net.Conn {
	l := &line{Conn: conn}
	if raw, ok := conn.(syscall.Conn); ok {
		return checkedLine{line: l, Conn: raw}
	}
	return l
}

// lateness is which part of the time until a deadline it may be late.
const lateness = 10

// SetDeadline is [net.Conn.SetDeadline].
func (l *line) SetDeadline(t time.Time) error {
	if err := l.SetReadDeadline(t); err != nil {
		return err
	}
	return l.SetWriteDeadline(t)
}

// SetReadDeadline is [net.Conn.SetReadDeadline].
func (l *line) SetReadDeadline(t time.Time) error {
	return l.move(&l.read, t, l.Conn.SetReadDeadline)
}

// SetWriteDeadline is [net.Conn.SetWriteDeadline].
func (l *line) SetWriteDeadline(t time.Time) error {
	return l.move(&l.write, t, l.Conn.SetWriteDeadline)
}

// move sets a deadline, unless the present one will do.
func (l *line) move(present *time.Time, t time.Time, set func(time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.IsZero() {
		late := max(time.Until(t), 0) / lateness
		if !present.Before(t) && !present.After(t.Add(late)) {
			return nil
		}
		t = t.Add(late / 2) // the same will do when it is set again
	}
	*present = t
	return set(t)
}

package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// unhurried is a connection whose deadlines are moved in the runtime only when they have
// to be: net/http moves them eight times a request, mostly further away. The one that is
// armed is never later than the one that was asked for; when it has passed too soon, the
// next is armed and nobody else hears of it. So the connection must recover from a
// time-out, as TCP does and TLS does not.
type unhurried struct {
	net.Conn
	reads, writes deadline
}

func newUnhurried(c net.Conn) *unhurried { return &unhurried{Conn: c, writes: deadline{ahead: true}} }

// deadline of one direction. Zero times are none.
type deadline struct {
	mu    sync.Mutex
	asked time.Time
	armed time.Time
	// ahead says that none is left armed that has passed: a write that does not wait, like
	// those of the workers of sockets, would fail on it.
	ahead bool
	// broken says that the armed one was in the past, to interrupt whoever waits.
	broken bool
}

// breather is how soon a deadline is armed after an interruption: before any that net/http
// may ask for next, so that those need not be armed.
const breather = 5 * time.Second

// move asks for another deadline, which arm sets where it has to be.
func (d *deadline) move(t time.Time, arm func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = t
	switch {
	case d.broken && t.IsZero():
		d.broken, d.armed = false, time.Now().Add(breather)
	case !d.broken && t.IsZero() && d.armed.IsZero():
		return nil
	case !d.broken && !d.armed.IsZero() && (t.IsZero() || !t.Before(d.armed)) && (!d.ahead || d.armed.After(time.Now())):
		return nil
	default:
		d.armed, d.broken = t, !t.IsZero() && !t.After(time.Now())
	}
	return arm(d.armed)
}

// passed says whether a time-out is one that was asked for. If not, it arms that.
func (d *deadline) passed(err error, arm func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.asked.IsZero() && !d.asked.After(time.Now()) {
		return true
	}
	d.armed = d.asked
	return arm(d.armed) != nil
}

// Read is part of [net.Conn].
func (c *unhurried) Read(b []byte) (n int, err error) {
	for {
		if n, err = c.Conn.Read(b); err == nil || n > 0 || c.reads.passed(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write is part of [net.Conn].
func (c *unhurried) Write(b []byte) (n int, err error) {
	for {
		var more int
		more, err = c.Conn.Write(b[n:])
		if n += more; err == nil || c.writes.passed(err, c.Conn.SetWriteDeadline) {
			return n, err
		}
	}
}

// SetDeadline is part of [net.Conn].
func (c *unhurried) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline is part of [net.Conn].
func (c *unhurried) SetReadDeadline(t time.Time) error {
	return c.reads.move(t, c.Conn.SetReadDeadline)
}

// SetWriteDeadline is part of [net.Conn].
func (c *unhurried) SetWriteDeadline(t time.Time) error {
	return c.writes.move(t, c.Conn.SetWriteDeadline)
}

package redistest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

// proxied is the connection of one client to the proxy, with the connection from the proxy to the server.
type proxied struct {
	p              *Proxy
	client, server net.Conn

	mu   sync.Mutex    // guards what is below
	sent int           // number of forwarded requests
	lose map[int]*rule // rules for replies that must be lost, by the number of the request
	gone bool          // no reply is forwarded any more
	raw  bool          // replication has begun; from then on there are no requests and replies
}

// dialTimeout is the time limit of connecting to a server.
const dialTimeout = time.Second

// accept connects to the server for a client, and begins to forward messages.
func (p *Proxy) accept(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &proxied{p: p, client: client, server: server, lose: map[int]*rule{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.target != target {
		c.close()
		return
	}
	p.conns[c] = struct{}{}
	p.wg.Go(c.requests)
	p.wg.Go(c.replies)
}

// close closes both connections. The goroutines that forward messages then end.
func (c *proxied) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// requests forwards the requests of the client until the connection ends.
func (c *proxied) requests() {
	defer c.close()
	in := bufio.NewReader(c.client)
	for {
		m, err := readMessage(in)
		if err != nil {
			return
		}
		c.p.linger(m.args)
		c.p.wait()
		r := c.p.take(m.args)
		if r != nil && r.held != nil {
			r.held.raw, r.held.target = m.raw, c.server.RemoteAddr().String()
			close(r.done)
			return
		}
		if !c.note(r, Command("PSYNC", "SYNC")(m.args)) {
			return
		}
		if _, err := c.server.Write(m.raw); err != nil {
			return
		}
		if c.raw { // only this goroutine sets it
			c.copy(c.server, in)
			return
		}
	}
}

// copy forwards bytes until one of the connections ends.
func (c *proxied) copy(to io.Writer, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		c.p.wait()
		if _, werr := to.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// note counts a request that is forwarded next. r is the rule for its reply; nil if there is none. raw tells whether
// the request begins replication. note returns false if replies are no longer forwarded.
func (c *proxied) note(r *rule, raw bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = c.raw || raw
	switch {
	case c.gone && r != nil:
		c.p.lost(r)
	case r != nil:
		c.lose[c.sent] = r
	}
	c.sent++
	return !c.gone
}

// replies forwards the replies of the server until the connection ends or a reply must be lost.
func (c *proxied) replies() {
	defer c.leave()
	in := bufio.NewReader(c.server)
	for n := 0; ; {
		if _, err := in.Peek(1); err != nil {
			return
		}
		c.mu.Lock()
		raw := c.raw
		c.mu.Unlock()
		if raw {
			c.copy(c.client, in)
			return
		}
		m, err := readMessage(in)
		if err != nil {
			return
		}
		c.p.wait()
		if !m.push {
			c.mu.Lock()
			lost := c.lose[n] != nil
			c.mu.Unlock()
			if lost {
				return
			}
			n++
		}
		if _, err := c.client.Write(c.p.replaced(m.raw)); err != nil {
			return
		}
	}
}

// leave ends the connection. All replies that must be lost then count as lost.
func (c *proxied) leave() {
	c.close()
	c.p.mu.Lock()
	delete(c.p.conns, c)
	c.p.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, r := range c.lose {
		c.p.lost(r)
	}
}

// lost counts a reply as lost. After the last reply of a rule, it closes the channel of the rule.
func (p *Proxy) lost(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.pending--; r.pending == 0 {
		close(r.done)
	}
}

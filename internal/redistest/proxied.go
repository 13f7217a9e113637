package redistest

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

// proxied is one client's connection and the one to the server behind it.
type proxied struct {
	p              *Proxy
	client, server net.Conn

	mu   sync.Mutex    // guards what is below
	sent int           // requests forwarded
	lose map[int]*rule // whose replies are to be lost, by the number of the request
	gone bool          // no reply comes back any more
	raw  bool          // what follows is replication, and not requests and replies
}

// dialTimeout of connections to the server.
const dialTimeout = time.Second

// accept begins to serve a client.
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

// close ends both sides; the goroutines of both directions end then.
func (c *proxied) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// requests forwards what the client sends.
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

// copy forwards bytes as they come.
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

// note counts a request that is about to be forwarded, unless its reply cannot come back.
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

// replies forwards what the server answers.
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
		if _, err := c.client.Write(c.p.told(m.raw)); err != nil {
			return
		}
	}
}

// leave ends the connection: what it was to lose is lost.
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

// lost counts a reply that was lost.
func (p *Proxy) lost(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.pending--; r.pending == 0 {
		close(r.done)
	}
}

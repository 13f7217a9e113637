package redistest

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy forwards messages between clients and a server without TLS. It can lose, delay and hold messages, as a network
// does. It separates requests and replies, so that it can lose a single one. Therefore it does not support SUBSCRIBE. A
// replica may follow its primary through a proxy.
type Proxy struct {
	// Addr is the address to which clients connect, in the form host:port.
	Addr string

	t testing.TB

	mu     sync.Mutex // guards what is below
	target string
	conns  map[*proxied]struct{}
	rules  []*rule
	lies   []lie
	paused chan struct{} // closed by Resume; nil if the proxy is not paused
	slow   Match         // requests that are forwarded late; nil for none
	delay  time.Duration
	closed bool
	wg     sync.WaitGroup
}

// Match reports whether a request is affected. args[0] is the name of the command.
type Match func(args []string) bool

// Command matches requests by the names of their commands, in any case.
func Command(names ...string) Match {
	return func(args []string) bool {
		return len(args) > 0 && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, args[0]) })
	}
}

// Containing matches requests that have a text in one of their arguments.
func Containing(text string) Match {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, text) })
	}
}

// rule describes what must happen to the next n requests that match.
type rule struct {
	match   Match
	n       int           // number of requests that can still match
	pending int           // number of replies that must still be lost
	held    *Held         // if not nil, the request is not forwarded
	done    chan struct{} // closed when the rule was applied n times
}

// NewProxy starts a proxy to the server at addr. It is stopped at the end of the test.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{Addr: l.Addr().String(), t: t, target: addr, conns: map[*proxied]struct{}{}}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.accept(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Resume()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// URL returns the URL by which a gateway uses the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr + "/0" }

// DropReplies loses the replies of the next n requests that match. The server executes the requests. When a reply
// arrives, the connection is closed. The returned channel is closed when all n replies are lost.
func (p *Proxy) DropReplies(n int, match Match) <-chan struct{} {
	r := &rule{match: match, n: n, pending: n, done: make(chan struct{})}
	p.add(r)
	return r.done
}

// Hold keeps the next request that matches, and closes the connection of its client. [Held.Deliver] sends the request
// later. It uses a new connection, so the request must not need AUTH or another database than 0.
func (p *Proxy) Hold(match Match) *Held {
	r := &rule{match: match, n: 1, done: make(chan struct{})}
	r.held = &Held{t: p.t, caught: r.done}
	p.add(r)
	return r.held
}

func (p *Proxy) add(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
}

// Pause stops forwarding in both directions, as in a network partition. The proxy still accepts new connections, but it
// forwards nothing on them either.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends a Pause. It forwards the messages that were sent in the meantime.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// Slow delays each request that matches, as a slow network does. The requests of a connection keep their order. A nil
// match ends the delay.
func (p *Proxy) Slow(delay time.Duration, match Match) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.delay = match, delay
}

// linger waits for the delay of [Proxy.Slow] if the request matches.
func (p *Proxy) linger(args []string) {
	p.mu.Lock()
	slow, delay := p.slow, p.delay
	p.mu.Unlock()
	if slow != nil && slow(args) {
		<-time.After(delay)
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// Redirect closes all connections, and connects new clients to another server, as if the address now belonged to a
// promoted replica.
func (p *Proxy) Redirect(addr string) {
	p.Lead(addr)
	p.Cut()
}

// Lead connects new clients to another server. Open connections do not change.
func (p *Proxy) Lead(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// lie is a text that is replaced in replies, and the text that replaces it.
type lie struct{ truth, said string }

// Lie replaces a text in all replies by another one of the same length, for example the version of the server.
func (p *Proxy) Lie(truth, said string) {
	p.t.Helper()
	if len(truth) != len(said) {
		p.t.Fatalf("redistest: %q and %q differ in length", truth, said)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = append(p.lies, lie{truth, said})
}

// replaced returns a reply after the replacements of [Proxy.Lie].
func (p *Proxy) replaced(raw []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lies {
		raw = bytes.ReplaceAll(raw, []byte(l.truth), []byte(l.said))
	}
	return raw
}

// take returns the first rule that matches a request, and counts the request in the rule. It returns nil if no rule
// matches.
func (p *Proxy) take(args []string) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.rules, func(r *rule) bool { return r.match(args) })
	if i < 0 {
		return nil
	}
	r := p.rules[i]
	if r.n--; r.n == 0 {
		p.rules = slices.Delete(p.rules, i, i+1)
	}
	return r
}

// wait returns when the proxy is not paused any more.
func (p *Proxy) wait() {
	for {
		p.mu.Lock()
		paused := p.paused
		p.mu.Unlock()
		if paused == nil {
			return
		}
		<-paused
	}
}

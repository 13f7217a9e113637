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

// Proxy stands between clients and a server without TLS, and does to the
// messages what networks do. It understands requests and replies, so that it
// can lose one and not another; SUBSCRIBE does not fit in. A replica may follow
// its primary through it.
type Proxy struct {
	// Addr is where clients connect: host:port.
	Addr string

	t testing.TB

	mu     sync.Mutex // guards what is below
	target string
	conns  map[*proxied]struct{}
	rules  []*rule
	lies   []lie
	paused chan struct{} // closed to go on; nil if not paused
	slow   Match         // requests that are forwarded late; nil for none
	delay  time.Duration
	closed bool
	wg     sync.WaitGroup
}

// Match reports whether a request is meant; args[0] is the command.
type Match func(args []string) bool

// Command matches requests by the names of their commands, in any case.
func Command(names ...string) Match {
	return func(args []string) bool {
		return len(args) > 0 && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, args[0]) })
	}
}

// Containing matches requests that have the text in one of their arguments.
func Containing(text string) Match {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, text) })
	}
}

// rule is what is to happen to the next n requests that match.
type rule struct {
	match   Match
	n       int           // requests still to match
	pending int           // requests whose replies are still to be lost
	held    *Held         // if not nil, the request is held back
	done    chan struct{} // closed when all is done
}

// NewProxy starts a proxy to the server at addr. It ends with the test.
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

// URL is what a user configures to go through the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr + "/0" }

// DropReplies lets the server execute the next n matching requests and loses
// their replies: the connection is cut when they come. The channel is closed
// when all n are lost.
func (p *Proxy) DropReplies(n int, match Match) <-chan struct{} {
	r := &rule{match: match, n: n, pending: n, done: make(chan struct{})}
	p.add(r)
	return r.done
}

// Hold keeps the next matching request back and cuts its client's connection.
// It is delivered when the test says so, or never. Only what needs no AUTH and
// is in database 0 can be delivered.
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

// Pause delivers nothing any more, in both directions: a partition. New
// connections are accepted and go nowhere.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends a Pause; what was sent meanwhile is delivered.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// Slow forwards requests that match late, each by so much: a slow network. Those of a
// connection stay in their order. A nil match ends it.
func (p *Proxy) Slow(delay time.Duration, match Match) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.delay = match, delay
}

// linger returns when it is time to forward a request.
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

// Redirect cuts all connections and leads new ones to another server, like an
// address that moves to a promoted replica.
func (p *Proxy) Redirect(addr string) {
	p.Lead(addr)
	p.Cut()
}

// Lead leads new connections to another server, and leaves the others as they are.
func (p *Proxy) Lead(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// lie is what replies say instead of the truth.
type lie struct{ truth, said string }

// Lie makes every reply say something else of the same length, like the version
// of a server that the machine does not have.
func (p *Proxy) Lie(truth, said string) {
	p.t.Helper()
	if len(truth) != len(said) {
		p.t.Fatalf("redistest: %q and %q differ in length", truth, said)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = append(p.lies, lie{truth, said})
}

// told is what a reply says by now.
func (p *Proxy) told(raw []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lies {
		raw = bytes.ReplaceAll(raw, []byte(l.truth), []byte(l.said))
	}
	return raw
}

// take returns the rule that the request falls under, nil if none, and counts it.
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

// wait returns when the proxy is not paused.
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

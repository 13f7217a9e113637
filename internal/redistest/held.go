package redistest

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// Held is a request that a [Proxy] has not forwarded. The proxy has closed the connection of the client, so the client
// never gets a reply.
type Held struct {
	t      testing.TB
	caught chan struct{}
	raw    []byte // this and target are set before caught is closed
	target string
}

// Caught returns a channel that is closed when the proxy has received the request.
func (h *Held) Caught() <-chan struct{} { return h.caught }

// Deliver waits for the request, sends it to its server, and returns the raw reply. It may be called several times,
// because a network may deliver a request more than once.
func (h *Held) Deliver() string {
	h.t.Helper()
	select {
	case <-h.caught:
	case <-time.After(awaitLimit):
		h.t.Fatal("redistest: no request came that was to be held")
	}
	c, err := net.DialTimeout("tcp", h.target, dialTimeout)
	if err != nil {
		h.t.Fatalf("redistest: deliver: %v", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(awaitLimit)); err != nil {
		h.t.Fatalf("redistest: deliver: %v", err)
	}
	if _, err := c.Write(h.raw); err != nil {
		h.t.Fatalf("redistest: deliver: %v", err)
	}
	m, err := readMessage(bufio.NewReader(c))
	if err != nil {
		h.t.Fatalf("redistest: deliver: %v", err)
	}
	return string(m.raw)
}

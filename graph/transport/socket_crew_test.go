package transport_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/transport"
)

// watched is a connection that tells how long what is given to its Write is. What is written
// below it, without waiting, it does not see.
type watched struct {
	*net.TCPConn
	buffer int // in the kernel, if not 0
	wrote  chan int
}

func (w *watched) Write(b []byte) (int, error) {
	select {
	case w.wrote <- len(b):
	default:
	}
	return w.TCPConn.Write(b)
}

func (w *watched) SetWriteBuffer(bytes int) error {
	if w.buffer != 0 {
		bytes = w.buffer
	}
	return w.TCPConn.SetWriteBuffer(bytes)
}

var _ syscall.Conn = (*watched)(nil)

// serveWatched is a gateway whose connections the test sees.
func serveWatched(t testing.TB, buffer int) (*gateway, <-chan *watched) {
	t.Helper()
	conns := make(chan *watched, 1)
	return serveWrapped(t, transport.Config{Gather: -1}, func(c net.Conn) net.Conn {
		w := &watched{c.(*net.TCPConn), buffer, make(chan int, 1000)}
		conns <- w
		return w
	}), conns
}

// hearFeed reads the events of a feed from first to before end.
func (p *peer) hearFeed(first, end int) error {
	for i := first; i < end; i++ {
		_, data, err := p.ReadMessage()
		if err != nil || !strings.Contains(string(data), fmt.Sprintf(`{"feed":%d`, i)) || !strings.HasSuffix(string(data), "}") {
			return fmt.Errorf("event %d: %.100s %v", i, data, err)
		}
	}
	return nil
}

func TestSocket_ASmallEventIsWrittenWithoutWaiting(t *testing.T) {
	g, conns := serveWatched(t, 0)
	p := g.open()
	defer func() { _ = p.Close() }()
	conn := <-conns
	for len(conn.wrote) > 0 {
		<-conn.wrote // until now
	}
	p.subscribe("1", "subscription{feed}")
	<-g.fed
	deadline := time.Now().Add(patience)
	for i := 0; ; i++ {
		g.publish(i)
		if err := p.hearFeed(i, i+1); err != nil {
			t.Fatal(err)
		}
		// One that comes before the writer of the one before has ended is written by that one.
		if len(conn.wrote) == 0 {
			return
		}
		for len(conn.wrote) > 0 {
			<-conn.wrote
		}
		if time.Now().After(deadline) {
			t.Fatalf("all of %d events were written by calls that may wait", i+1)
		}
	}
}

func TestSocket_WhatTheKernelDoesNotTakeAtOnceIsWrittenLater(t *testing.T) {
	const events, small, large = 5, 60_000, 300_000
	g, conns := serveWatched(t, 4<<10)
	p := g.open()
	defer func() { _ = p.Close() }()
	conn := <-conns
	for len(conn.wrote) > 0 {
		<-conn.wrote // until now
	}
	p.subscribe("1", fmt.Sprintf("subscription{feed(pad:%d)}", small))
	<-g.fed
	// A message that comes before the writer of the one before has ended is written by that
	// one, which may wait and so gives all of it to Write.
	published, deadline := 0, time.Now().Add(patience)
	for left := small; left >= small; published++ {
		g.publish(published)
		select {
		case left = <-conn.wrote:
		case <-time.After(patience):
			t.Fatal("nothing was left")
		}
		if err := p.hearFeed(published, published+1); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing of %d messages was written without waiting", published)
		}
	}
	for i := range events {
		g.publish(published + i)
	}
	if err := p.hearFeed(published, published+events); err != nil {
		t.Fatal(err)
	}
	p.say(`{"id":"1","type":"complete"}`)
	<-g.fed
	p.subscribe("2", fmt.Sprintf("subscription{feed(pad:%d)}", large))
	<-g.fed
	for i := range events {
		g.publish(i)
	}
	if err := p.hearFeed(0, events); err != nil {
		t.Fatal(err)
	}
}

// TestSocket_SlowClientsDelayNobody has more slow clients than there are workers that write.
func TestSocket_SlowClientsDelayNobody(t *testing.T) {
	const events, pad = 60, 20_000
	fast := 200
	if small() {
		fast = 50
	}
	g := serve(t, transport.Config{Gather: -1, WriteTimeout: time.Hour, PingInterval: time.Hour})
	var slow, others []*peer
	for n := range runtime.GOMAXPROCS(0) + 2 + fast {
		p := g.open()
		t.Cleanup(func() { _ = p.Close() })
		p.subscribe("1", fmt.Sprintf("subscription{feed(pad:%d)}", pad))
		<-g.fed
		if n < fast {
			others = append(others, p)
		} else {
			slow = append(slow, p)
		}
	}
	for i := range events {
		g.publish(i)
		for _, p := range others {
			if err := p.hearFeed(i, i+1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range slow {
		if err := p.hearFeed(0, events); err != nil {
			t.Error(err)
		}
	}
}

func TestSocket_EventsComeOverTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	served := &tls.Config{Certificates: certified.TLS.Certificates}
	g := serveWrapped(t, transport.Config{Gather: -1}, func(c net.Conn) net.Conn { return tls.Server(c, served) })
	plain := g.dial
	g.dial = func() (net.Conn, error) {
		c, err := plain()
		if err != nil {
			return nil, err
		}
		return tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "example.com"}), nil
	}
	p := g.open()
	defer func() { _ = p.Close() }()
	p.subscribe("1", "subscription{feed}")
	<-g.fed
	for i := range 20 {
		g.publish(i)
	}
	if err := p.hearFeed(0, 20); err != nil {
		t.Error(err)
	}
}

// TestSocket_ConnectionsEndDuringABroadcast has clients that break off while events are being
// written to all, and a gateway that stops. Who stays hears of each event, in order.
func TestSocket_ConnectionsEndDuringABroadcast(t *testing.T) {
	const events, clients = 200, 60
	g := serve(t, transport.Config{Gather: -1})
	var all sync.WaitGroup
	half := make(chan struct{})
	for n := range clients {
		p := g.open()
		p.subscribe("1", "subscription{feed}")
		<-g.fed
		all.Go(func() {
			defer func() { _ = p.Close() }()
			for next := 0; ; next++ {
				if next == events/2 && n%3 == 0 {
					if n == 0 {
						close(half)
					} else if n%2 == 0 { // the kernel says so at once
						_ = p.NetConn().(*net.TCPConn).SetLinger(0)
					}
					return
				}
				_, data, err := p.ReadMessage()
				if err != nil {
					if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
						t.Errorf("client %d: %v", n, err)
					}
					return
				}
				if strings.Contains(string(data), `"type":"complete"`) {
					continue // the gateway stops
				}
				if want := fmt.Sprintf(`{"feed":%d}`, next); !strings.Contains(string(data), want) {
					t.Errorf("client %d: %s, not %s", n, data, want)
				}
			}
		})
	}
	all.Go(func() {
		<-half
		g.stop()
	})
	for i := range events {
		g.publish(i)
	}
	all.Wait()
}

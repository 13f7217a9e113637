package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/graph/transport"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// counted is a connection that counts its writes, each of which is a call of
// the system on a real one.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestSocket_EventsThatComeTogetherLeaveInOneWrite(t *testing.T) {
	const events = 200
	for name, begin := range map[string]func(*gateway) func() string{
		"over a socket": func(g *gateway) func() string {
			p := g.open()
			p.subscribe("1", "subscription{feed}")
			return p.read
		},
		"as server-sent events": func(g *gateway) func() string {
			s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
			return func() string { return s.next().data }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := serveInMemory(t, transport.Config{})
				defer g.stop()
				var writes atomic.Int64
				g.wrap = func(c net.Conn) net.Conn { return counted{c, &writes} }
				next := begin(g)
				<-g.fed
				before := writes.Load()
				for i := range events {
					g.publish(i)
				}
				for i := range events {
					if m := next(); !strings.Contains(m, fmt.Sprintf(`"feed":%d}`, i)) {
						t.Fatalf("event %d: %s", i, m)
					}
				}
				if n := writes.Load() - before; n > 5 {
					t.Errorf("%d events left by %d writes", events, n)
				}
			})
		})
	}
}

func TestSocket_AnEventIsNotKeptWaitingForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Gather: time.Hour, PingInterval: 24 * time.Hour})
		defer g.stop()
		p := g.open()
		p.subscribe("1", "subscription{feed}")
		<-g.fed
		_ = p.SetReadDeadline(time.Time{})
		time.Sleep(2 * time.Hour) // of the bubble: nothing was written for long
		begin := time.Now()
		g.publish(1)
		p.read()
		p.subscribe("2", "{hello}") // nor is an answer
		p.read()
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v", took)
		}
		_ = p.Close()
	})
}

// TestSocket_ClientsThatDoNotReadAreClosed has subscribers of whom one in ten never
// reads. They go within the write time-out, hold bounded memory until then, and
// the others get every event.
func TestSocket_ClientsThatDoNotReadAreClosed(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	const rounds, round, pad, timeout = 5, 40, 2500, 4 * time.Second
	all := 1000
	if small() {
		all = 200
	}
	stalled := all / 10
	var open atomic.Int64
	reaped := make(chan struct{})
	var subscribed atomic.Bool
	g := serve(t, transport.Config{
		WriteTimeout: timeout, QueueBytes: 64 << 10,
		SocketsOpened: func(d int) {
			if n := open.Add(int64(d)); d < 0 && subscribed.Load() && n == int64(all-stalled) {
				close(reaped)
			}
		},
	})
	peers := make([]*peer, all)
	for i := range peers {
		p := g.open()
		if c, ok := p.NetConn().(*net.TCPConn); ok && i < stalled {
			_ = c.SetReadBuffer(4 << 10)
		}
		_ = p.SetReadDeadline(time.Now().Add(time.Minute))
		p.subscribe("1", fmt.Sprintf("subscription{feed(pad:%d)}", pad))
		<-g.fed
		peers[i] = p
	}
	subscribed.Store(true)
	before := heaptest.InUse()
	begin := time.Now()
	most := int64(0)
	for r := range rounds {
		for i := range round {
			if full := g.publish(r*round + i); full > 0 {
				t.Fatalf("event %d found %d queues full", i, full)
			}
		}
		var readers sync.WaitGroup
		for _, p := range peers[stalled:] {
			readers.Go(func() {
				for i := range round {
					if _, data, err := p.ReadMessage(); err != nil || !strings.Contains(string(data), fmt.Sprintf(`"feed":%d,`, r*round+i)) {
						t.Errorf("event %d: %.100s %v", r*round+i, data, err)
						return
					}
				}
			})
		}
		readers.Wait()
		most = max(most, heaptest.InUse()-before)
	}
	delivered := time.Since(begin)
	select {
	case <-reaped:
	case <-time.After(timeout + patience):
		t.Errorf("%d of %d connections are open", open.Load(), all)
	}
	t.Logf("%d of %d never read: the others had all %d events after %v, those were closed after %v, each held at most %d KiB", stalled, all, rounds*round, delivered, time.Since(begin), most/int64(stalled)>>10)
	if most > int64(stalled)*512<<10 {
		t.Errorf("stalled clients hold %d bytes", most)
	}
	for _, p := range peers {
		_ = p.Close()
	}
}

// TestSocket_AStalledClientGoesSoonAfterTheWriteTimeout has an exact clock.
func TestSocket_AStalledClientGoesSoonAfterTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{WriteTimeout: 7 * time.Second, Queue: 10})
		defer g.stop()
		stalled, other := g.open(), g.open()
		stalled.subscribe("1", "subscription{feed}")
		other.subscribe("1", "subscription{feed}")
		<-g.fed
		<-g.fed
		begin := time.Now()
		for i := range 100 {
			g.publish(i)
			other.hear(fmt.Sprintf(`{"id":"1","type":"next","payload":{"data":{"feed":%d}}}`, i))
		}
		<-g.fed // its subscription has ended
		if took := time.Since(begin); took < 7*time.Second || took > 7*time.Second*5/4+10*time.Millisecond {
			t.Errorf("it was closed after %v", took)
		}
		_ = stalled.Close()
		_ = other.Close()
	})
}

func TestSocket_AConnectionEndsWithinTheWriteTimeoutWhileItsClientStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 8 * time.Second
		gone := make(chan struct{})
		g := serveInMemory(t, transport.Config{WriteTimeout: timeout, SocketsOpened: func(d int) {
			if d < 0 {
				close(gone)
			}
		}})
		defer g.stop()
		stalled := g.open()
		stalled.subscribe("1", "subscription{feed}")
		<-g.fed
		time.Sleep(2 * timeout) // of the bubble: the next write has a time limit of its own
		g.publish(1)
		synctest.Wait()
		begin := time.Now()
		stalled.say("no message")
		<-gone
		if took := time.Since(begin); took != timeout {
			t.Errorf("it was closed after %v", took)
		}
		_ = stalled.Close()
	})
}

func TestSocket_AClientHasTheWriteTimeoutForEachWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 8 * time.Second
		g := serveInMemory(t, transport.Config{WriteTimeout: timeout, PingInterval: time.Hour})
		defer g.stop()
		slow := g.open()
		slow.subscribe("1", "subscription{feed}")
		<-g.fed
		_ = slow.SetReadDeadline(time.Time{})
		hear := func(i int) {
			t.Helper()
			slow.hear(fmt.Sprintf(`{"id":"1","type":"next","payload":{"data":{"feed":%d}}}`, i))
		}
		for i := range 20 {
			g.publish(2 * i)
			hear(2 * i)
			time.Sleep(timeout / 16 * time.Duration(i)) // of the bubble: since the write before
			g.publish(2*i + 1)
			time.Sleep(timeout - time.Millisecond)
			hear(2*i + 1)
		}
		_ = slow.Close()
	})
}

// TestSocket_SocketsThatNeverInitialiseKeepNobodyOut opens many, and says nothing on them.
func TestSocket_SocketsThatNeverInitialiseKeepNobodyOut(t *testing.T) {
	flood := 10_000
	if small() {
		flood = 1500
	}
	var most, open atomic.Int64
	g := serve(t, transport.Config{Connections: flood, Waiting: 200, InitTimeout: time.Minute, SocketsOpened: func(d int) {
		most.Store(max(most.Load(), open.Add(int64(d))))
	}})
	patient := g.open() // was there before
	defer func() { _ = patient.Close() }()
	conns := make([]net.Conn, flood)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	begin := time.Now()
	var first io.Reader
	for i := range conns {
		var rest io.Reader
		if conns[i], rest = shakeHands(t, g); i == 0 {
			first = rest
		}
	}
	took := time.Since(begin)
	p := g.open()
	defer func() { _ = p.Close() }()
	for _, p := range []*peer{p, patient} {
		p.subscribe("1", "{hello}")
		p.hear(`{"id":"1","type":"next","payload":{"data":{"hello":"world"}}}`)
	}
	frame := make([]byte, 4)
	if _, err := io.ReadFull(first, frame); err != nil || frame[0] != 0x88 || int(frame[2])<<8|int(frame[3]) != 4408 {
		t.Errorf("the first is told % x, %v", frame, err)
	}
	t.Logf("%d silent sockets in %v, at most %d open at once", flood, took, most.Load())
	if most.Load() > 500 {
		t.Errorf("%d connections were open", most.Load())
	}
}

// shakeHands opens a WebSocket with as little as possible. What the gateway says
// on it is read from the reader.
func shakeHands(t testing.TB, g *gateway) (net.Conn, io.Reader) {
	t.Helper()
	conn, err := g.dial()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
	r := bufio.NewReaderSize(conn, 512)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", res, err)
	}
	return conn, r
}

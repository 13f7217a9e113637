package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/transport"
)

func TestSocket_QueriesAndMutationsAreAnsweredOverASocket(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	for _, query := range []string{"{hello}", "mutation{hello}"} {
		p.subscribe("1", query)
		p.hear(`{"id":"1","type":"next","payload":{"data":{"hello":"world"}}}`)
		p.hear(`{"id":"1","type":"complete"}`)
	}
}

func TestSocket_ASubscriptionTellsItsEventsAndItsEnd(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	p.subscribe("ü\"1", "subscription{count(to:2)}")
	p.hear(`{"id":"ü\"1","type":"next","payload":{"data":{"count":1}}}`)
	p.hear(`{"id":"ü\"1","type":"next","payload":{"data":{"count":2}}}`)
	p.hear(`{"id":"ü\"1","type":"complete"}`)
	p.subscribe("2", "subscription{feed}")
	<-g.fed
	g.publish(7)
	p.hear(`{"id":"2","type":"next","payload":{"data":{"feed":7}}}`)
	g.complete()
	p.hear(`{"id":"2","type":"complete"}`)
}

func TestSocket_AnErrorEndsAnOperationAndNothingFollows(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	for query, code := range map[string]string{
		"{":                   "GRAPHQL_PARSE_FAILED",
		"{nothing}":           "GRAPHQL_VALIDATION_FAILED",
		"subscription{feed(}": "GRAPHQL_PARSE_FAILED",
		"":                    "BAD_USER_INPUT",
	} {
		p.subscribe("1", query)
		if got := p.hearError("1"); got != code {
			t.Errorf("%q: %s, want %s", query, got, code)
		}
	}
	p.say(`{"id":"1","type":"subscribe","payload":{"documentId":"sha256:00"}}`)
	if got := p.hearError("1"); got != "PERSISTED_QUERY_NOT_FOUND" {
		t.Errorf("an unknown document: %s", got)
	}
	p.subscribe("1", "subscription{lags}")
	p.hear(`{"id":"1","type":"next","payload":{"data":{"lags":1}}}`)
	if got := p.hearError("1"); got != "LAGGED" {
		t.Errorf("a listener that lags: %s", got)
	}
	p.say(`{"type":"ping"}`)
	p.hear(`{"type":"pong"}`)
}

func TestSocket_APanicEndsOneOperation(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	p.subscribe("1", "{panics}")
	if got := p.hearError("1"); got != "INTERNAL" {
		t.Errorf("heard %s", got)
	}
	p.subscribe("1", "{hello}")
	p.hear(`{"id":"1","type":"next","payload":{"data":{"hello":"world"}}}`)
}

func TestSocket_PingsAreAnsweredInBothForms(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.connect("graphql-transport-ws")
	defer func() { _ = p.Close() }()
	ponged := make(chan string, 1)
	p.SetPongHandler(func(data string) error { ponged <- data; return nil })
	p.say(`{"type":"ping"}`)
	p.hear(`{"type":"pong"}`)
	p.say(`{"type":"ping","payload":null}`)
	p.hear(`{"type":"pong","payload":null}`)
	p.say(`{"type":"ping","payload":{"a":[1,"ü"]}}`)
	p.hear(`{"type":"pong","payload":{"a":[1,"ü"]}}`)
	p.say(`{"type":"pong"}`)
	p.say(`{"type":"pong","payload":{}}`)
	if err := p.WriteControl(websocket.PingMessage, []byte("are you there"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	p.say(`{"type":"connection_init","payload":null}`)
	p.hear(`{"type":"connection_ack"}`)
	if got := <-ponged; got != "are you there" {
		t.Errorf("pong %q", got)
	}
}

func TestSocket_ACompleteCancelsAtOnceAndFreesTheID(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	p.say(`{"id":"nobody","type":"complete"}`)
	p.subscribe("1", "subscription{feed}")
	<-g.fed
	p.say(`{"id":"1","type":"complete","payload":null}`)
	<-g.fed // the stream has ended
	p.subscribe("1", "{slow}")
	<-g.slow
	p.say(`{"id":"1","type":"complete"}`)
	if err := <-g.slow; err != context.Canceled {
		t.Errorf("the query ended with %v", err)
	}
	p.subscribe("1", "{hello}")
	p.hear(`{"id":"1","type":"next","payload":{"data":{"hello":"world"}}}`)
	p.hear(`{"id":"1","type":"complete"}`)
}

func TestSocket_WhatWaitsOfACancelledOperationIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Gather: time.Second})
		defer g.stop()
		p := g.open()
		p.subscribe("1", "subscription{feed}")
		<-g.fed
		time.Sleep(2 * time.Second) // of the bubble: the next event leaves at once
		g.publish(1)
		p.hear(`{"id":"1","type":"next","payload":{"data":{"feed":1}}}`)
		synctest.Wait()
		g.publish(2)
		g.publish(3)
		synctest.Wait() // they wait for others
		p.say(`{"id":"1","type":"complete"}`)
		p.say(`{"type":"ping"}`)
		p.hear(`{"type":"pong"}`)
		_ = p.Close()
	})
}

func TestSocket_TheCodesOfConnectionsThatTheGatewayEndedAreCounted(t *testing.T) {
	codes := make(chan int, 10)
	g := serve(t, transport.Config{Closed: func(code int) { codes <- code }})
	p := g.open()
	_ = p.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4321, ""), time.Now().Add(patience))
	p.closed()
	p = g.open()
	p.say("{")
	p.closed()
	g.open()
	g.Drain(t.Context())
	if a, b := <-codes, <-codes; a != 4400 || b != 1001 || len(codes) > 0 {
		t.Errorf("%d and %d are counted, and %d more", a, b, len(codes))
	}
}

func TestSocket_AClientThatGoesFreesItsOperations(t *testing.T) {
	for name, leave := range map[string]func(*peer){
		"without a word": func(p *peer) { _ = p.NetConn().Close() },
		"with a close": func(p *peer) {
			_ = p.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var open, running atomic.Int64
			g := serve(t, transport.Config{
				SocketsOpened: func(d int) { open.Add(int64(d)) },
				Started:       func(d int) { running.Add(int64(d)) },
			})
			p := g.open()
			p.subscribe("1", "subscription{feed}")
			p.subscribe("2", "{slow}")
			<-g.fed
			<-g.slow
			leave(p)
			<-g.fed
			<-g.slow
			g.Drain(t.Context())
			if open.Load() != 0 || running.Load() != 0 {
				t.Errorf("%d connections and %d operations are counted", open.Load(), running.Load())
			}
			_ = p.Close()
		})
	}
}

func TestSocket_TooManyOperationsAreRefusedAndTheConnectionLives(t *testing.T) {
	g := serve(t, transport.Config{Operations: 2})
	p := g.open()
	defer func() { _ = p.Close() }()
	for _, id := range []string{"1", "2"} {
		p.subscribe(id, "subscription{feed}")
		<-g.fed
	}
	p.subscribe("3", "subscription{feed}")
	message := p.read()
	for _, part := range []string{`"id":"3","type":"error"`, `"code":"LIMIT_EXCEEDED"`, `"setting":"limit-operations"`, `"limit":2`} {
		if !strings.Contains(message, part) {
			t.Errorf("%s: no %s", message, part)
		}
	}
	p.say(`{"id":"1","type":"complete"}`)
	<-g.fed
	p.subscribe("3", "subscription{count(to:1)}")
	p.hear(`{"id":"3","type":"next","payload":{"data":{"count":1}}}`)
}

func TestSocket_TooManyConnectionsAreRefusedAndMayComeAgain(t *testing.T) {
	g := serve(t, transport.Config{Connections: 2})
	first, second := g.open(), g.open()
	defer func() { _ = second.Close() }()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return g.dial() }}
	_, res, err := d.Dial("ws://localhost/graphql", nil)
	if err == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Fatalf("%+v %v", res, err)
	}
	body := make([]byte, 1000)
	n, _ := res.Body.Read(body)
	if text := string(body[:n]); !strings.Contains(text, `"code":"LIMIT_EXCEEDED"`) || !strings.Contains(text, `"setting":"limit-sockets"`) {
		t.Errorf("refused with %s", text)
	}
	_ = first.WriteControl(websocket.CloseMessage, nil, time.Now().Add(patience))
	first.closed()
	for limit := time.Now().Add(patience); ; {
		if p, err := g.tryConnect("graphql-transport-ws"); err == nil {
			_ = p.Close()
			return
		}
		if time.Now().After(limit) {
			t.Fatal("the place of a client that went is not free")
		}
	}
}

func TestSocket_ARequestThatIsNoHandshakeIsRefused(t *testing.T) {
	g := serve(t, transport.Config{})
	for _, c := range []struct {
		method  string
		version int
		status  int
		allow   string
		says    string
	}{
		{http.MethodGet, 8, http.StatusBadRequest, "", "Sec-WebSocket-Version: 13"},
		{http.MethodPost, 13, http.StatusMethodNotAllowed, "GET", "not GET"},
	} {
		conn, err := g.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "%s /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: %d\r\n\r\n", c.method, c.version)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.status || res.Header.Get("Sec-WebSocket-Version") != "13" || res.Header.Get("Allow") != c.allow || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %v %s", res.Status, res.Header, text)
		}
	}
}

func TestSocket_AClientThatIsSilentIsAskedAndThenGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{PingInterval: 4 * time.Second})
		defer g.stop()
		answers, mute := g.open(), g.open()
		_ = answers.SetReadDeadline(time.Time{})
		mute.SetPingHandler(func(string) error { return nil })
		go func() { // reading answers pings
			_, _, _ = answers.ReadMessage()
		}()
		begin := time.Now()
		if code, reason := mute.closed(); code != 1001 || time.Since(begin) != 8*time.Second {
			t.Errorf("closed with %d %q after %v", code, reason, time.Since(begin))
		}
		time.Sleep(time.Minute) // of the bubble
		answers.subscribe("1", "subscription{feed}")
		<-g.fed // it is alive
		_ = answers.Close()
	})
}

func TestSocket_AMessageThatIsNeverFinishedEndsTheConnection(t *testing.T) {
	part := []byte{0x01, 0x82, 0, 0, 0, 0, '{', '"'} // the first of several frames
	pong := []byte{0x8A, 0x80, 0, 0, 0, 0}
	for name, say := range map[string]func(*peer){
		"half a header":     func(p *peer) { _, _ = p.NetConn().Write(part[:1]) },
		"half a frame":      func(p *peer) { _, _ = p.NetConn().Write(part[:7]) },
		"half a message":    func(p *peer) { _, _ = p.NetConn().Write(part) },
		"with pongs within": func(p *peer) { _, _ = p.NetConn().Write(part); p.keepSaying(pong) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := serveInMemory(t, transport.Config{PingInterval: 4 * time.Second})
				defer g.stop()
				p := g.open()
				p.SetPingHandler(func(string) error { return nil }) // nor does it answer
				begin := time.Now()
				say(p)
				if code, reason := p.closed(); code != 1001 || time.Since(begin) > 8*time.Second {
					t.Errorf("closed with %d %q after %v", code, reason, time.Since(begin))
				}
				p.saying.Wait()
			})
		})
	}
}

// keepSaying sends a frame every second until the connection ends.
func (p *peer) keepSaying(frame []byte) {
	p.saying.Go(func() {
		for err := error(nil); err == nil; {
			time.Sleep(time.Second) // of the bubble
			_, err = p.NetConn().Write(frame)
		}
	})
}

func TestSocket_ALargeAnswerArrivesWhole(t *testing.T) {
	g := serve(t, transport.Config{})
	p := g.open()
	defer func() { _ = p.Close() }()
	for _, n := range []int{10, 125, 126, 65_535, 65_536, 5_000_000} {
		p.subscribe("1", fmt.Sprintf("{big(bytes:%d)}", n))
		if got := len(p.read()); got < n || got > n+100 {
			t.Errorf("%d bytes of %d", got, n)
		}
		p.hear(`{"id":"1","type":"complete"}`)
	}
}

func TestSocket_ATransportNeedsAnExecutor(t *testing.T) {
	if _, err := transport.New(transport.Config{}); err == nil || err.Error() != "executor: missing" {
		t.Errorf("error %v", err)
	}
}

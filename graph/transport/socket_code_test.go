package transport_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/transport"
)

func TestSocket_WhatTheProtocolForbidsClosesWithItsCode(t *testing.T) {
	const init = `{"type":"connection_init"}`
	const feed = `{"id":"a","type":"subscribe","payload":{"query":"subscription{feed}"}}`
	g := serve(t, transport.Config{Message: 100_000})
	for name, c := range map[string]struct {
		messages []string
		code     int
		reason   string
	}{
		"what is not JSON":                  {[]string{`{"type":`}, 4400, "Invalid message: a message is a JSON object"},
		"what is no object":                 {[]string{`["connection_init"]`}, 4400, "Invalid message: a message is a JSON object"},
		"null":                              {[]string{`null`}, 4400, "Invalid message: type: a string is required"},
		"no type":                           {[]string{`{"id":"1"}`}, 4400, "Invalid message: type: a string is required"},
		"a type that is no string":          {[]string{`{"type":1}`}, 4400, "Invalid message: type: a string is required"},
		"a type that is not known":          {[]string{`{"type":"hello"}`}, 4400, "Invalid message: type: not a message of a client in graphql-transport-ws"},
		"a type of the older protocol":      {[]string{init, `{"id":"1","type":"start","payload":{"query":"{hello}"}}`}, 4400, ""},
		"a message of the server":           {[]string{init, `{"id":"1","type":"next","payload":{}}`}, 4400, ""},
		"connection_init with a list":       {[]string{`{"type":"connection_init","payload":[]}`}, 4400, "Invalid message: payload: an object or null is accepted"},
		"ping with a string":                {[]string{`{"type":"ping","payload":"x"}`}, 4400, ""},
		"pong with a number":                {[]string{`{"type":"pong","payload":1}`}, 4400, ""},
		"subscribe without id":              {[]string{init, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message: id: a string of 1 to 256 bytes is required"},
		"subscribe with an empty id":        {[]string{init, `{"id":"","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"subscribe with a number for id":    {[]string{init, `{"id":1,"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"subscribe with an endless id":      {[]string{init, `{"id":"` + strings.Repeat("i", 257) + `","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, ""},
		"subscribe without payload":         {[]string{init, `{"id":"1","type":"subscribe"}`}, 4400, "Invalid message: payload: a request is required"},
		"subscribe with payload null":       {[]string{init, `{"id":"1","type":"subscribe","payload":null}`}, 4400, ""},
		"subscribe without query":           {[]string{init, `{"id":"1","type":"subscribe","payload":{}}`}, 4400, "Invalid message: payload: a query or a documentId is required"},
		"subscribe with a number for query": {[]string{init, `{"id":"1","type":"subscribe","payload":{"query":1}}`}, 4400, ""},
		"subscribe with variables of text":  {[]string{init, `{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":"x"}}`}, 4400, "Invalid message: payload: variables: an object or null is accepted"},
		"complete without id":               {[]string{init, `{"type":"complete"}`}, 4400, ""},
		"JSON that is nested too deep":      {[]string{`{"type":"ping","payload":{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`}, 4400, ""},
		"what is not UTF-8":                 {[]string{"{\"type\":\"ping\xff\"}"}, 1007, ""},
		"subscribe before connection_init":  {[]string{feed}, 4401, "Unauthorized"},
		"an id that is in use":              {[]string{init, feed, feed}, 4409, "Subscriber for a already exists"},
		"connection_init twice":             {[]string{init, init}, 4429, "Too many initialisation requests"},
		"a message that is too large":       {[]string{init, `{"type":"ping","payload":{"a":"` + strings.Repeat("a", 100_000) + `"}}`}, 1009, "a message has at most 100000 bytes (limit-message)"},
		"a large message before all":        {[]string{`{"type":"connection_init","payload":{"a":"` + strings.Repeat("a", 65_536) + `"}}`}, 1009, "a message before connection_ack has at most 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := g.connect("graphql-transport-ws")
			p.t = t
			for _, m := range c.messages {
				p.say(m)
			}
			if code, reason := p.closed(); code != c.code || c.reason != "" && reason != c.reason {
				t.Errorf("closed with %d %q, want %d %q", code, reason, c.code, c.reason)
			}
		})
	}
}

func TestSocket_FramesThatTheProtocolForbidsClose(t *testing.T) {
	g := serve(t, transport.Config{})
	for name, c := range map[string]struct {
		frame []byte
		code  int
	}{
		"a binary frame":                  {[]byte{0x82, 0x82, 0, 0, 0, 0, '{', '}'}, 4400},
		"a frame that is not masked":      {[]byte{0x81, 0x02, '{', '}'}, 1002},
		"an opcode that is not known":     {[]byte{0x83, 0x80, 0, 0, 0, 0}, 1002},
		"a reserved bit":                  {[]byte{0xC1, 0x80, 0, 0, 0, 0}, 1002},
		"a continuation of nothing":       {[]byte{0x80, 0x80, 0, 0, 0, 0}, 1002},
		"a ping in parts":                 {[]byte{0x09, 0x80, 0, 0, 0, 0}, 1002},
		"a frame of 2^63 bytes":           {[]byte{0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, 1009},
		"a close code that cannot be":     {[]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xED}, 1002},
		"a client that closes with 4321":  {[]byte{0x88, 0x82, 0, 0, 0, 0, 0x10, 0xE1}, 4321},
		"a client that closes with 1000":  {[]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8}, 1000},
		"a client that closes in silence": {[]byte{0x88, 0x80, 0, 0, 0, 0}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := g.open()
			p.t = t
			if _, err := p.NetConn().Write(c.frame); err != nil {
				t.Fatal(err)
			}
			if code, reason := p.closed(); code != c.code {
				t.Errorf("closed with %d %q, want %d", code, reason, c.code)
			}
		})
	}
}

func TestSocket_ASubprotocolThatIsNotSpokenClosesWith4406(t *testing.T) {
	g := serve(t, transport.Config{})
	for name, protocols := range map[string][]string{"none": nil, "another": {"mqtt"}} {
		t.Run(name, func(t *testing.T) {
			p := g.connect(protocols...)
			if code, reason := p.closed(); code != 4406 || reason != "Subprotocol not acceptable: use graphql-transport-ws" {
				t.Errorf("closed with %d %q", code, reason)
			}
		})
	}
	for _, offered := range [][]string{{"graphql-transport-ws", "graphql-ws"}, {"mqtt", "graphql-ws", "graphql-transport-ws"}} {
		p := g.connect(offered...)
		if want := offered[len(offered)-2]; p.Subprotocol() != want {
			t.Errorf("of %v the gateway speaks %s, not what the client prefers, %s", offered, p.Subprotocol(), want)
		}
		_ = p.Close()
	}
}

func TestSocket_AClientThatIsRefusedIsClosedWith4403(t *testing.T) {
	type key struct{}
	g := serve(t, transport.Config{Init: func(ctx context.Context, payload json.RawMessage) (context.Context, error) {
		if string(payload) != `{"token":"good"}` {
			return nil, errors.New("a secret reason")
		}
		return context.WithValue(ctx, key{}, true), nil
	}})
	p := g.connect("graphql-transport-ws")
	p.say(`{"type":"connection_init","payload":{"token":"bad"}}`)
	if code, reason := p.closed(); code != 4403 || reason != "Forbidden" {
		t.Errorf("closed with %d %q", code, reason)
	}
	p = g.connect("graphql-transport-ws")
	p.say(`{"type":"connection_init","payload":{"token":"good"}}`)
	p.hear(`{"type":"connection_ack"}`)
	_ = p.Close()
}

func TestSocket_AClientThatDoesNotInitialiseInTimeIsClosedWith4408(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{InitTimeout: 3 * time.Second})
		defer g.stop()
		for name, meanwhile := range map[string]func(*peer){
			"silent":       func(*peer) {},
			"it pings":     func(p *peer) { p.say(`{"type":"ping"}`); p.hear(`{"type":"pong"}`) },
			"half a frame": func(p *peer) { _, _ = p.NetConn().Write([]byte{0x81}) },
		} {
			p := g.connect("graphql-transport-ws")
			begin := time.Now()
			meanwhile(p)
			code, reason := p.closed()
			if took := time.Since(begin); code != 4408 || reason != "Connection initialisation timeout" || took != 3*time.Second {
				t.Errorf("%s: closed with %d %q after %v", name, code, reason, took)
			}
		}
	})
}

func TestSocket_AGatewayThatStopsClosesWith1001(t *testing.T) {
	g := serve(t, transport.Config{})
	fresh, idle, busy := g.connect("graphql-transport-ws"), g.open(), g.open()
	busy.subscribe("1", "subscription{feed}")
	<-g.fed
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Drain(t.Context())
	}()
	for name, p := range map[string]*peer{"that has not initialised": fresh, "that is idle": idle, "with a subscription": busy} {
		if code, _ := p.closed(); code != 1001 {
			t.Errorf("a connection %s is closed with %d", name, code)
		}
	}
	<-done
	if _, err := g.tryConnect("graphql-transport-ws"); !errors.Is(err, websocket.ErrBadHandshake) {
		t.Errorf("a new connection: %v", err)
	}
}

func TestSocket_ADrainLetsQueriesFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Time: 5 * time.Second})
		defer g.stop()
		p := g.open()
		p.subscribe("1", "{slow}")
		<-g.slow
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.Drain(t.Context())
		}()
		synctest.Wait()
		p.subscribe("2", "{hello}") // comes too late
		<-g.slow
		p.hear(`{"id":"1","type":"next","payload":{"errors":[{"message":"slow: context deadline exceeded"}],"data":null}}`)
		p.hear(`{"id":"1","type":"complete"}`)
		if code, _ := p.closed(); code != 1001 {
			t.Errorf("closed with %d", code)
		}
		<-done
	})
}

func TestSocket_ADrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Time: time.Hour})
		p := g.open()
		p.subscribe("1", "{slow}")
		<-g.slow
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Drain(ctx)
		if err := <-g.slow; !errors.Is(err, context.Canceled) {
			t.Errorf("the query ended with %v", err)
		}
		g.stop()
	})
}

// TestSocket_MessagesShareABudgetWithAllOtherRequests sends messages of which the end
// is missing, until one is too many.
func TestSocket_MessagesShareABudgetWithAllOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const message, part = 1 << 20, 100 << 10
		memory := budget.NewMemory(3400<<10, 1<<20) // of which requests have 850 KiB: six times the 124 KiB that such a part takes, and less than one more
		g := serveInMemory(t, transport.Config{Memory: memory, Message: message, PingInterval: time.Hour, MessageTimeout: 3 * time.Second})
		defer g.stop()
		half := func(p *peer) {
			begin := binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, message)
			begin = append(begin, 0, 0, 0, 0) // the mask
			_, _ = p.NetConn().Write(append(begin, make([]byte, part)...))
			synctest.Wait()
		}
		var halves []*peer
		for range 6 {
			p := g.open()
			half(p)
			halves = append(halves, p)
		}
		if memory.Used() != 6*(124<<10) {
			t.Errorf("six messages of %d bytes take %d", part, memory.Used())
		}
		last := g.open()
		go half(last)
		if code, reason := last.closed(); code != 1013 || !strings.Contains(reason, "limit-memory") {
			t.Errorf("closed with %d %s", code, reason)
		}
		begin := time.Now()
		for _, p := range halves {
			if code, _ := p.closed(); code != 1001 {
				t.Errorf("a message that is never finished: %d", code)
			}
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("cut after %v", took)
		}
		synctest.Wait()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are taken by nobody", memory.Used())
		}
	})
}

func TestSocket_AnOperationKeepsWhatItsMessageTakesOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.NewMemory(4<<20, 1<<20)
		g := serveInMemory(t, transport.Config{Memory: memory})
		defer g.stop()
		p := g.open()
		p.subscribe("1", "subscription{feed} #"+strings.Repeat("x", 100<<10))
		<-g.fed
		if used := memory.Used(); used < 100<<10 {
			t.Errorf("%d bytes are taken", used)
		}
		p.say(`{"id":"1","type":"complete"}`)
		<-g.fed
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken after its end", used)
		}
		_ = p.Close()
	})
}

// TestSocket_AnswersThatNobodyReadsShareTheBudget over WebSocket as by server-sent events:
// many operations of one connection can have large answers.
func TestSocket_AnswersThatNobodyReadsShareTheBudget(t *testing.T) {
	const size = 3 << 20
	synctest.Test(t, func(t *testing.T) {
		memory := budget.NewMemory(100<<20, 1<<20)
		g := serveInMemory(t, transport.Config{Memory: memory, PingInterval: time.Hour})
		defer g.stop()
		p := g.open()
		for i := range 5 {
			p.subscribe(strconv.Itoa(i), fmt.Sprintf("{big(bytes:%d)}", size))
		}
		synctest.Wait()
		if used := memory.Used(); used < 5*size {
			t.Errorf("five answers take %d bytes", used)
		}
		for range 5 {
			p.read() // the answer
			p.read() // complete
		}
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken after they were read", used)
		}
		p.subscribe("more", fmt.Sprintf("{big(bytes:%d)}", size))
		synctest.Wait()
		_ = p.Close()
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken after the client has left", used)
		}

		stream, err := g.dial()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(stream, "GET /graphql?query=%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", url.QueryEscape(fmt.Sprintf("{big(bytes:%d)}", size)))
		synctest.Wait()
		if used := memory.Used(); used < size {
			t.Errorf("an answer by server-sent events takes %d bytes", used)
		}
		_ = stream.Close()
		synctest.Wait()
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are taken after the client of the stream has left", used)
		}
	})
}

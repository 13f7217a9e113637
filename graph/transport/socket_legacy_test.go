package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/graph/transport"
)

// legacy is a client of the protocol that GraphQL Playground speaks.
func legacy(g *gateway) *peer {
	p := g.connect("graphql-ws")
	p.say(`{"type":"connection_init","payload":{}}`)
	p.hear(`{"type":"connection_ack"}`)
	p.hear(`{"type":"ka"}`)
	return p
}

func TestSocket_TheOlderProtocolIsSpokenToo(t *testing.T) {
	g := serve(t, transport.Config{})
	p := legacy(g)
	p.say(`{"id":"1","type":"start","payload":{"query":"{hello}","operationName":null,"variables":{}}}`)
	p.hear(`{"id":"1","type":"data","payload":{"data":{"hello":"world"}}}`)
	p.hear(`{"id":"1","type":"complete"}`)
	p.say(`{"id":"2","type":"start","payload":{"query":"subscription{feed}"}}`)
	<-g.fed
	g.publish(1)
	p.hear(`{"id":"2","type":"data","payload":{"data":{"feed":1}}}`)
	p.say(`{"id":"2","type":"stop"}`)
	<-g.fed
	p.say(`{"id":"2","type":"start","payload":{"query":"{"}}`)
	p.hear(`{"id":"2","type":"error","payload":{"errors":[{"message":"Expected Name, found \u003cEOF\u003e","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}],"message":"Expected Name, found \u003cEOF\u003e"}}`)
	p.say(`{"id":"3","type":"start","payload":{"query":"subscription{feed}"}}`)
	<-g.fed
	p.say(`{"type":"connection_terminate"}`)
	if code, _ := p.closed(); code != 1000 {
		t.Errorf("closed with %d", code)
	}
	<-g.fed
}

func TestSocket_TheOlderProtocolHasItsOwnWords(t *testing.T) {
	g := serve(t, transport.Config{})
	for _, message := range []string{`{"id":"1","type":"subscribe","payload":{"query":"{hello}"}}`, `{"id":"1","type":"complete"}`, `{"type":"ping"}`, `{"type":"pong"}`} {
		p := legacy(g)
		p.say(message)
		if code, _ := p.closed(); code != 4400 {
			t.Errorf("%s: closed with %d", message, code)
		}
	}
}

func TestSocket_TheOlderProtocolIsKeptAliveByItsOwnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{PingInterval: 4 * time.Second})
		defer g.stop()
		p := legacy(g)
		for range 4 {
			begin := time.Now()
			p.hear(`{"type":"ka"}`)
			if took := time.Since(begin); took != 4*time.Second {
				t.Errorf("after %v", took)
			}
		}
		_ = p.Close()
	})
}

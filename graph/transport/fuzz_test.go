package transport_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/transport"
)

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"connection_init"}`, `{"type":"ping","payload":null}`, `{"id":"1","type":"complete"}`, `{"id":"1","type":"stop"}`, `{"type":"connection_terminate"}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{a}","variables":{"a":[1e400]},"extensions":{"persistedQuery":{}}}}`, `{"id":"1","type":"start","payload":{"documentId":"a"}}`,
		`{"id":null,"type":null}`, `[]`, `{"payload":[[[`, "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
			if _, err := transport.DecodeMessage(protocol, []byte(text)); err != nil {
				if !utf8.ValidString(err.Error()) || len(err.Error()) > 200 {
					t.Errorf("refused with %q", err)
				}
			} else if !json.Valid([]byte(text)) {
				t.Error("accepted what is not JSON")
			}
		}
	})
}

// FuzzFrames sends any bytes to a connection that is ready: it ends, in time,
// and nothing of it is left.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x81, 0x82, 0, 0, 0, 0, '{', '}'})
	f.Add([]byte{0x01, 0x80, 0, 0, 0, 0, 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x80, 0, 0, 0, 0})
	f.Add([]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8})
	f.Add([]byte{0x82, 0xFE, 0xFF})
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			g := serveInMemory(t, transport.Config{})
			defer g.stop()
			p := g.open()
			p.SetPingHandler(func(string) error { return nil })
			_ = p.SetReadDeadline(time.Now().Add(time.Hour))
			p.saying.Go(func() { _, _ = p.NetConn().Write(data) })
			begin := time.Now()
			for err := error(nil); err == nil; {
				_, _, err = p.ReadMessage()
				if e, ok := err.(*websocket.CloseError); ok && e.Code == 1006 {
					t.Errorf("ended without a code after %v", time.Since(begin))
				}
			}
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("ended after %v", took)
			}
			_ = p.Close()
			p.saying.Wait()
		})
	})
}

func FuzzCloseFrame(f *testing.F) {
	f.Add(4409, "Subscriber for ü already exists")
	f.Fuzz(func(t *testing.T, code int, reason string) {
		frame := transport.CloseFrame(code&0xFFFF, reason)
		if len(frame) < 2 || frame[0] != 0x88 || int(frame[1]) != len(frame)-2 || frame[1] > 125 {
			t.Fatalf("% x", frame)
		}
		if len(frame) > 4 && !utf8.Valid(frame[4:]) {
			t.Errorf("the reason %q is not UTF-8", frame[4:])
		}
	})
}

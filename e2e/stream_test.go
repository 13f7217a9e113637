package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// socket is a graphql-transport-ws client.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

func (g *gateway) dial() *socket {
	g.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience}
	header := http.Header{}
	g.identify(header)
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(g.address, "http")+"/graphql", header)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(2 * patience))
	s := &socket{t: g.t, conn: conn}
	s.write(message{Type: "connection_init"})
	if m, err := s.read(); err != nil || m.Type != "connection_ack" {
		g.t.Fatalf("%+v %v", m, err)
	}
	return s
}

func (s *socket) close() { _ = s.conn.Close() }

func (s *socket) write(m message) {
	s.t.Helper()
	if err := s.conn.WriteJSON(m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) read() (m message, err error) {
	return m, s.conn.ReadJSON(&m)
}

func (s *socket) subscribe(id, query string, variables map[string]any) {
	s.t.Helper()
	payload, _ := json.Marshal(map[string]any{"query": query, "variables": variables})
	s.write(message{ID: id, Type: "subscribe", Payload: payload})
}

// next is the next result of an operation.
func (s *socket) next(id string) answer {
	s.t.Helper()
	for {
		m, err := s.read()
		if err != nil {
			s.t.Fatal(err)
		}
		if m.Type == "ping" {
			continue
		}
		if m.Type != "next" || m.ID != id {
			s.t.Fatalf("message %+v: %s", m, m.Payload)
		}
		var a answer
		if err := json.Unmarshal(m.Payload, &a); err != nil {
			s.t.Fatal(err)
		}
		return a
	}
}

// refusal is the code of the error by which a subscription ends, whatever events come before it.
func (s *socket) refusal(id string) (code string) {
	s.t.Helper()
	for {
		m, err := s.read()
		if err != nil {
			s.t.Fatal(err)
		}
		if m.Type != "error" || m.ID != id {
			continue
		}
		var a answer
		if err := json.Unmarshal(m.Payload, &a.Errors); err != nil {
			s.t.Fatal(err)
		}
		return a.codes()
	}
}

const watchNetworks = `subscription($after: String) { networkChanges(after: $after) { type cursor revision network { metadata { name } } } }`

func TestAStreamResumesByCursorAfterTheGatewayWasKilled(t *testing.T) {
	t.Parallel()
	data, callers := t.TempDir(), newCallers(t)
	g := callers.start(t, data)
	s := g.dial()
	s.subscribe("1", watchNetworks, nil)
	first := s.next("1")
	if first.get("networkChanges", "type") != "IN_SYNC" {
		t.Fatalf("%+v", first)
	}
	cursor := first.get("networkChanges", "cursor").(string)

	// Writers run until the gateway dies; each counts what was acknowledged.
	acknowledged := map[string]bool{}
	var seen []string
	for round := range 3 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("n-%d-%d-%d", round, w, i)
					a, err := g.send(createNetwork, map[string]any{"input": map[string]any{"name": name, "spec": spec(map[string]any{})}})
					if err != nil {
						return // killed
					}
					if a.codes() == "" {
						mu.Lock()
						acknowledged[name] = true
						mu.Unlock()
					}
				}
			})
		}
		for len(seen) < 50*(round+1) {
			a := s.next("1")
			if a.get("networkChanges", "type") == "IN_SYNC" {
				continue
			}
			seen = append(seen, a.get("networkChanges", "network", "metadata", "name").(string))
			cursor = a.get("networkChanges", "cursor").(string)
		}
		s.close()
		g.kill()
		wg.Wait()
		g = callers.start(t, data)
		s = g.dial()
		s.subscribe("1", watchNetworks, map[string]any{"after": cursor})
	}
	for {
		a := s.next("1")
		if a.codes() != "" {
			t.Fatalf("%+v", a)
		}
		if a.get("networkChanges", "type") == "IN_SYNC" {
			break
		}
		seen = append(seen, a.get("networkChanges", "network", "metadata", "name").(string))
	}
	s.close()
	count := map[string]int{}
	for _, name := range seen {
		if count[name]++; count[name] > 1 {
			t.Errorf("%s came twice", name)
		}
	}
	for name := range acknowledged {
		if count[name] == 0 {
			t.Errorf("%s was acknowledged and never came", name)
		}
	}
	total := g.post(`{ networks { totalCount } }`, nil).get("networks", "totalCount").(float64)
	if int(total) != len(count) {
		t.Errorf("%d networks are stored and %d came", int(total), len(count))
	}
	t.Logf("%d acknowledged, %d stored, %d delivered once each", len(acknowledged), int(total), len(count))
}

func TestCursorsThatCannotResumeAreRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := newCallers(t).start(t, data, "--retain-entries", "5")
	old := g.position()
	for i := range 10 {
		g.create(fmt.Sprintf("n%d", i), nil)
	}
	s := g.dial()
	defer s.close()
	for cursor, code := range map[string]string{"rubbish": "CURSOR_INVALID", old: "POSITION_EXPIRED"} {
		s.subscribe(code, watchNetworks, map[string]any{"after": cursor})
		m, err := s.read()
		if err != nil || m.ID != code || m.Type != "error" || !strings.Contains(string(m.Payload), `"code":"`+code+`"`) {
			t.Errorf("after %s: %s %s %v", cursor, m.Type, m.Payload, err)
		}
	}
}

func TestAnExpiredCursorWithASnapshotBeginsAnewWithTheState(t *testing.T) {
	t.Parallel()
	g := newCallers(t).start(t, "", "--retain-entries", "5")
	old := g.position()
	want := map[string]bool{}
	for i := range 10 {
		g.create(fmt.Sprintf("n%d", i), nil)
		want[fmt.Sprintf("n%d", i)] = true
	}
	s := g.dial()
	defer s.close()
	s.subscribe("1", `subscription($after: String) { networkChanges(after: $after, snapshot: true) { type cursor network { metadata { name } } } }`, map[string]any{"after": old})
	if a := s.next("1"); a.get("networkChanges", "type") != "RESET" {
		t.Fatalf("%+v", a)
	}
	for range 10 {
		a := s.next("1")
		name, _ := a.get("networkChanges", "network", "metadata", "name").(string)
		if a.get("networkChanges", "type") != "SNAPSHOT" || !want[name] {
			t.Errorf("%+v", a)
		}
		delete(want, name)
	}
	if a := s.next("1"); a.get("networkChanges", "type") != "IN_SYNC" || a.get("networkChanges", "cursor") == nil {
		t.Errorf("%+v", a)
	}
}

func TestASubscriptionByPostIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	if a := g.post(`subscription { networkChanges { type } }`, nil); a.codes() != "BAD_USER_INPUT" || a.Status != http.StatusNotAcceptable {
		t.Errorf("%+v", a)
	}
}

func TestSIGTERMDrainsAndExitsClean(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := start(t, data)
	s := g.dial()
	defer s.close()
	s.subscribe("1", watchNetworks, nil)
	s.next("1")
	if a := g.create("a", nil); a.codes() != "" {
		t.Fatalf("%+v", a)
	}
	begin, ended := time.Now(), make(chan error, 1)
	go func() { // a client that reads, so it answers the close frame
		for {
			if _, err := s.read(); err != nil {
				ended <- err
				return
			}
		}
	}()
	if code := g.stop(); code != 0 {
		t.Errorf("exit %d:\n%s", code, g.log)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("draining took %v", took)
	}
	if err := <-ended; !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the socket ended with %v, want going away", err)
	}
	if g = start(t, data); g.post(`{ network(name: "a") { id } }`, nil).get("network", "id") == nil {
		t.Error("what was acknowledged is gone")
	}
}

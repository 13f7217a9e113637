package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/backend/memory"
)

// conversation is a WebSocket whose messages are written down.
type conversation struct {
	*teller
	conn *websocket.Conn
}

// converse opens a WebSocket and initialises it.
func (c *teller) converse() *conversation {
	c.t.Helper()
	c.Sent("GET /v1/graphql")
	c.Sent("Upgrade: websocket")
	c.Sent("Sec-WebSocket-Protocol: graphql-transport-ws")
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, res, err := dialer.Dial("ws"+strings.TrimPrefix(c.url, "http")+"/v1/graphql", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	c.Received(res.Status)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	s := &conversation{c, conn}
	s.say(frame{Type: "connection_init"})
	s.hear(1)
	return s
}

// frame is a message of a client.
type frame struct {
	ID      string      `json:"id,omitempty"`
	Type    string      `json:"type"`
	Payload *subscribed `json:"payload,omitempty"`
}

type subscribed struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

func (s *conversation) say(message frame) {
	s.t.Helper()
	s.Sent(asJSON(s.t, message))
	if err := s.conn.WriteJSON(message); err != nil {
		s.t.Fatal(err)
	}
}

// subscribe begins the operation with id 1.
func (s *conversation) subscribe(query string, variables map[string]any) {
	s.t.Helper()
	s.say(frame{"1", "subscribe", &subscribed{query, variables}})
}

// hear writes the next n messages down and returns the last of them.
func (s *conversation) hear(n int) string {
	s.t.Helper()
	var message []byte
	for range n {
		var err error
		if _, message, err = s.conn.ReadMessage(); err != nil {
			s.t.Fatal(err)
		}
		s.Received(string(message))
	}
	return string(message)
}

// network makes a network without a word in the story.
func (c *teller) network(name string, mtu int) string {
	c.t.Helper()
	return revisionIn(c.t, c.must(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { network { metadata { revision } } } }`,
		with(map[string]any{"name": name, "spec": spec(map[string]any{"mtu": mtu})})))
}

// remove deletes a network without a word in the story.
func (c *teller) remove(name string) {
	c.t.Helper()
	c.must(`mutation ($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { state } }`, with(map[string]any{"name": name}))
}

const (
	following = `subscription ($after: String, $snapshot: Boolean!) { networkChanges(after: $after, snapshot: $snapshot) { type cursor network { metadata { name revision } spec { resource { mtu } } } } }`
	shortLog  = 20
)

// outrun writes more changes than the log keeps.
func (c *teller) outrun() {
	for range shortLog {
		c.network("net-z", 1000)
		c.remove("net-z")
	}
}

// streams are the stories of change streams.
func streams() map[string]func(*teller) {
	return map[string]func(*teller){
		"websocket.txt": func(c *teller) {
			c.network("net-a", 1500)
			c.network("net-b", 1500)
			c.Tell("A client asks for the state, and then for all changes. RESET says that the state begins: what the client held before is no more.")
			s := c.converse()
			s.subscribe(following, map[string]any{"snapshot": true})
			s.hear(3)
			c.Tell("That was all. IN_SYNC comes once: from here on the stream is live, and has cursors.")
			s.hear(1)
			c.Tell("Others create net-c, change net-a and delete net-b.")
			c.network("net-c", 1400)
			s.hear(1)
			c.network("net-a", 9000)
			s.hear(1)
			c.remove("net-b")
			cursor := textIn(c.t, s.hear(1), "cursor")
			c.Tell("The connection breaks. While the client is away, net-a changes once more and net-d comes.")
			_ = s.conn.Close()
			c.network("net-a", 1300)
			c.network("net-d", 1500)
			c.Tell("The client comes back with its last cursor. It gets what it has missed, each change once, and no RESET: the snapshot is not needed.")
			s = c.converse()
			s.subscribe(following, map[string]any{"after": cursor, "snapshot": true})
			cursor = textIn(c.t, s.hear(3), "cursor")
			c.Tell("It ends the subscription. The pong says that this was heard.")
			s.say(frame{ID: "1", Type: "complete"})
			s.say(frame{Type: "ping"})
			s.hear(1)
			c.outrun()
			c.Tell("So much is changed now that the log does not reach back to its cursor any more.")
			c.Tell("It resumes. It asks for a snapshot where that is needed, so it begins anew with RESET.")
			s.subscribe(following, map[string]any{"after": cursor, "snapshot": true})
			s.hear(5)
			c.Tell("A client that asks for none is told that it cannot continue.")
			s = c.converse()
			s.subscribe(following, map[string]any{"after": cursor, "snapshot": false})
			s.hear(1)
		},
		"server-sent-events.txt": func(c *teller) {
			c.network("net-a", 1500)
			c.Tell("A page listens by EventSource, which repeats the last id when it connects again.")
			query := `subscription { networkChanges(snapshot: true) { type network { metadata { name } } } }`
			next, end := c.follow(query, "")
			next(3)
			c.Tell("Others create net-b.")
			c.network("net-b", 1500)
			id := next(1)
			c.Tell("The connection breaks; net-a goes meanwhile. EventSource connects again.")
			end()
			c.remove("net-a")
			next, end = c.follow(query, id)
			id = next(2)
			end()
			c.Tell("Once more, after so long that the log does not reach back: the state comes anew.")
			c.outrun()
			next, end = c.follow(query, id)
			next(3)
			end()
		},
		"list-and-changes.txt": func(c *teller) {
			c.network("net-a", 1500)
			c.network("net-b", 1500)
			c.Tell("A page shows a list, and keeps it up to date: it reads the list with its changeCursor.")
			cursor := textIn(c.t, c.ask(`{ networks(first: 10) { nodes { metadata { name revision } } changeCursor } }`, nil), "changeCursor")
			c.Tell("net-c is created before it can subscribe.")
			c.network("net-c", 1500)
			c.Tell("It follows the changes from that cursor on, and misses nothing.")
			s := c.converse()
			s.subscribe(following, map[string]any{"after": cursor, "snapshot": false})
			s.hear(2)
		},
	}
}

// follow listens as EventSource does. It returns what writes the next n events
// down and returns the last id, and what breaks the connection.
func (c *teller) follow(query, last string) (next func(n int) (id string), end func()) {
	c.t.Helper()
	path := "/v1/graphql?query=" + url.QueryEscape(query)
	c.Sent("GET /v1/graphql?query=" + query + "   (escaped)")
	c.Sent("Accept: text/event-stream")
	var header []string
	if last != "" {
		header = []string{"Last-Event-ID", last}
		c.Sent("Last-Event-ID: " + last)
	}
	res := c.get(path, "text/event-stream", header...)
	if c.Received(res.Status); res.StatusCode != http.StatusOK {
		c.t.Fatal(res.Status)
	}
	lines := bufio.NewReader(res.Body)
	return func(n int) (id string) {
		c.t.Helper()
		for n > 0 {
			event, err := untilBlank(lines)
			if err != nil {
				c.t.Fatal(err)
			}
			for line := range strings.Lines(event) {
				if field, value, _ := strings.Cut(strings.TrimSpace(line), ": "); field == "id" {
					id = value
				}
			}
			if strings.Contains(event, "event: ") {
				n--
			}
			c.Received(retry.ReplaceAllString(event, "retry: <milliseconds>"))
			c.Received("")
		}
		return id
	}, func() { _ = res.Body.Close() }
}

// untilBlank reads lines up to a blank one.
func untilBlank(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return b.String(), fmt.Errorf("%w after %q", err, b.String())
		}
		if strings.TrimSpace(line) == "" {
			return b.String(), nil
		}
		b.WriteString(line)
	}
}

func TestTranscriptsOfStreams(t *testing.T) {
	files := map[string]bool{}
	for file, story := range streams() {
		files[file] = true
		t.Run(file, func(t *testing.T) {
			c := tell(t, "streams/"+file, "A change stream: "+strings.ReplaceAll(strings.TrimSuffix(file, ".txt"), "-", " "), stage{store: memory.Config{LogEntries: shortLog}})
			story(c)
		})
	}
	wantFiles(t, "streams", files)
}

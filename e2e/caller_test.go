package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// caller is a client with what it shows of itself.
type caller struct {
	t       *testing.T
	address string
	log     *lockedBuffer // the gateway's
	// bearer is its credential, header what else it sends with every request.
	bearer string
	header http.Header
	// tls trusts the gateway, and has the client's certificate.
	tls *tls.Config
	// requests are those by HTTP.
	requests *http.Client
}

// caller returns a client of the gateway without a credential.
func (g *gateway) caller(config *tls.Config) *caller {
	transport := &http.Transport{TLSClientConfig: config}
	g.t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: g.t, address: g.address, log: g.log, tls: config, requests: &http.Client{Transport: transport, Timeout: patience}}
}

// with is the same client with a credential.
func (c *caller) with(bearer string) *caller {
	other := *c
	other.bearer = bearer
	return &other
}

// transports are the ways to the API that take a credential. Each asks a query, or
// follows a subscription.
var transports = map[string]func(c *caller, query string) *stream{
	"HTTP":                         (*caller).http,
	"server-sent events":           (*caller).events,
	"WebSocket by header":          func(c *caller, query string) *stream { return c.socket(query, true) },
	"WebSocket by connection_init": func(c *caller, query string) *stream { return c.socket(query, false) },
}

// streaming are those that stay open.
func streaming() []string {
	return []string{"server-sent events", "WebSocket by header", "WebSocket by connection_init"}
}

// stream is what comes back: results, and how it ended.
type stream struct {
	t       *testing.T
	results chan answer
	// ended has one text, then it is closed: a status, a close code with its reason, or complete.
	ended chan string
	stop  func()
}

func newStream(t *testing.T, stop func()) *stream {
	s := &stream{t: t, results: make(chan answer, 1000), ended: make(chan string, 1), stop: stop}
	t.Cleanup(stop)
	return s
}

func (s *stream) finish(how string) {
	s.ended <- how
	close(s.ended)
}

// next waits for a result.
func (s *stream) next() answer {
	s.t.Helper()
	a, how := s.outcome()
	if how != "" {
		s.t.Fatalf("the stream ended with %s", how)
	}
	return a
}

// outcome waits for a result, or for the end if none comes before it.
func (s *stream) outcome() (a answer, how string) {
	s.t.Helper()
	select {
	case a = <-s.results:
		return a, ""
	case how = <-s.ended:
	case <-time.After(patience):
		s.t.Fatal("nothing came in time")
	}
	select {
	case a = <-s.results:
		return a, ""
	default:
		return a, how
	}
}

// endWithin waits for the end for a while.
func (s *stream) endWithin(long time.Duration) string {
	s.t.Helper()
	select {
	case how := <-s.ended:
		return how
	case <-time.After(long):
		s.t.Fatal("the stream did not end in time")
	}
	return ""
}

// request is a POST of an operation.
func (c *caller) request(ctx context.Context, query, accept string) *http.Request {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+"/graphql", strings.NewReader(string(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	for key, values := range c.header {
		r.Header[key] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	return r
}

// http asks a query.
func (c *caller) http(query string) *stream {
	c.t.Helper()
	s := newStream(c.t, func() {})
	res, err := c.requests.Do(c.request(c.t.Context(), query, "application/json"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.response(s, res)
	return s
}

// response takes an answer that is not a stream.
func (c *caller) response(s *stream, res *http.Response) {
	c.t.Helper()
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	a := answer{Status: res.StatusCode}
	if err := json.Unmarshal(raw, &a); err != nil {
		c.t.Fatalf("%d %s: %v", res.StatusCode, raw, err)
	}
	if res.StatusCode == http.StatusUnauthorized {
		c.refusal(res.Header, a)
	}
	s.results <- a
	s.finish(fmt.Sprint(res.StatusCode))
}

// refusal checks what a 401 says.
func (c *caller) refusal(h http.Header, a answer) {
	c.t.Helper()
	scheme, _, _ := strings.Cut(h.Get("WWW-Authenticate"), " ")
	if wrong := strings.Contains(h.Get("WWW-Authenticate"), `error="invalid_token"`); scheme != "Bearer" || wrong != (c.bearer != "") {
		c.t.Errorf("WWW-Authenticate: %q", h.Get("WWW-Authenticate"))
	}
	if len(a.Errors) != 1 || a.Errors[0].Extensions["requestId"] == nil || a.Data != nil {
		c.t.Errorf("%+v", a)
	}
}

// events reads server-sent events.
func (c *caller) events(query string) *stream {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := newStream(c.t, stop)
	unlimited := *c.requests
	unlimited.Timeout = 0
	res, err := unlimited.Do(c.request(ctx, query, "text/event-stream"))
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		c.response(s, res)
		return s
	}
	go func() {
		how := s.read(res.Body)
		_ = res.Body.Close()
		s.finish(how)
	}()
	return s
}

// read takes the results of server-sent events, and returns how they ended.
func (s *stream) read(events io.Reader) string {
	var event string
	for lines := bufio.NewScanner(events); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case key == "event" && value == "complete":
			return "complete"
		case key == "event":
			event = value
		case key == "data" && event == "next":
			a := answer{Status: http.StatusOK}
			if err := json.Unmarshal([]byte(value), &a); err != nil {
				return err.Error()
			}
			s.results <- a
		}
	}
	return "cut off"
}

// socket opens a WebSocket, with the credential in the header of the upgrade or in
// the payload of connection_init.
func (c *caller) socket(query string, inHeader bool) *stream {
	c.t.Helper()
	header, payload := c.header.Clone(), json.RawMessage(nil)
	if header == nil {
		header = http.Header{}
	}
	switch {
	case c.bearer != "" && inHeader:
		header.Set("Authorization", "Bearer "+c.bearer)
	case c.bearer != "":
		payload, _ = json.Marshal(map[string]string{"authorization": "Bearer " + c.bearer})
	}
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience, TLSClientConfig: c.tls}
	conn, res, err := dialer.Dial("ws"+strings.TrimPrefix(c.address, "http")+"/graphql", header)
	if errors.Is(err, websocket.ErrBadHandshake) { // refused before there is a socket to close
		s := newStream(c.t, func() {})
		c.response(s, res)
		return s
	}
	if err != nil {
		c.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(4 * patience))
	s := newStream(c.t, func() { _ = conn.Close() })
	ask, _ := json.Marshal(map[string]string{"query": query})
	go func() {
		err := conn.WriteJSON(message{Type: "connection_init", Payload: payload})
		for err == nil {
			var m message
			if err = conn.ReadJSON(&m); err != nil {
				break
			}
			switch m.Type {
			case "connection_ack":
				err = conn.WriteJSON(message{ID: "1", Type: "subscribe", Payload: ask})
			case "ping":
				err = conn.WriteJSON(message{Type: "pong"})
			case "next":
				a := answer{Status: http.StatusOK}
				if err = json.Unmarshal(m.Payload, &a); err == nil {
					s.results <- a
				}
			case "complete":
				s.finish("complete")
				return
			case "error":
				s.finish("error " + string(m.Payload))
				return
			}
		}
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			s.finish(fmt.Sprintf("%d %s", closed.Code, closed.Text))
			return
		}
		s.finish(err.Error())
	}()
	return s
}

const viewer = `{ viewer { name source groups expiresAt } }`

// known is who the gateway takes the caller for, in one line; else the code with
// which it is refused.
func (c *caller) known(transport string) string {
	c.t.Helper()
	s := transports[transport](c, viewer)
	defer s.stop()
	a, how := s.outcome()
	if how != "" {
		return strings.TrimPrefix(closing(how), "4403 ")
	}
	return identified(a)
}

// identified writes what the field viewer says.
func identified(a answer) string {
	if len(a.Errors) > 0 {
		return a.codes()
	}
	var groups []string
	list, _ := a.get("viewer", "groups").([]any)
	for _, g := range list {
		groups = append(groups, fmt.Sprint(g))
	}
	slices.Sort(groups)
	return fmt.Sprint(a.get("viewer", "source"), " ", a.get("viewer", "name"), " ", groups)
}

// closing is how a socket was closed, without the words after the code in its reason.
func closing(how string) string {
	code, _, _ := strings.Cut(how, ": ")
	return code
}

package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/graph/transport"
)

// listener reads one stream of server-sent events.
type listener struct {
	t        testing.TB
	conn     net.Conn
	res      *http.Response
	lines    *bufio.Reader
	comments int
	retry    string
}

// sent is one event, as the HTML standard parses it (9.2.6).
type sent struct{ name, id, data string }

// ask sends a request as a browser would, on a connection of its own.
func (g *gateway) ask(method, target string, header map[string]string, body string) *listener {
	g.t.Helper()
	conn, err := g.dial()
	if err != nil {
		g.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	path, query, _ := strings.Cut(target, "?query=")
	if query != "" {
		query, rest, _ := strings.Cut(query, "&")
		path += "?query=" + url.QueryEscape(query) + "&" + rest
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", method, path, len(body))
	if _, ok := header["Accept"]; !ok {
		head.WriteString("Accept: text/event-stream\r\n")
	}
	for k, v := range header {
		fmt.Fprintf(&head, "%s: %s\r\n", k, v)
	}
	if _, err := io.WriteString(conn, head.String()+"\r\n"+body); err != nil {
		g.t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return &listener{t: g.t, conn: conn, res: res, lines: bufio.NewReader(res.Body)}
}

// listen is ask where a stream must come of it.
func (g *gateway) listen(method, target string, header map[string]string, body string) *listener {
	g.t.Helper()
	s := g.ask(method, target, header, body)
	if s.res.StatusCode != http.StatusOK || s.res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		text, _ := io.ReadAll(s.res.Body)
		g.t.Fatalf("%s %s: %s", s.res.Status, s.res.Header.Get("Content-Type"), text)
	}
	return s
}

// read is the next event, and false at the end of the stream.
func (s *listener) read() (e sent, ok bool) {
	s.t.Helper()
	dispatch := false
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, false
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && dispatch:
			return e, true
		case line == "\n":
			e = sent{}
		case field == "":
			s.comments++
		case field == "event":
			e.name = value
		case field == "id":
			e.id = value
		case field == "retry":
			s.retry = value
		case field == "data":
			e.data, dispatch = value, true // an event without data is not told
		}
	}
}

func (s *listener) next() sent {
	s.t.Helper()
	e, ok := s.read()
	if !ok {
		s.t.Fatal("the stream has ended")
	}
	return e
}

func (s *listener) hear(want ...sent) {
	s.t.Helper()
	for _, w := range want {
		if got := s.next(); got != w {
			s.t.Fatalf("heard %+v, want %+v", got, w)
		}
	}
}

func (s *listener) ends() {
	s.t.Helper()
	if e, ok := s.read(); ok {
		s.t.Fatalf("heard %+v after the end", e)
	}
	_ = s.conn.Close()
}

func TestEvents_ASubscriptionIsAStreamOfEventsByGETAndPOST(t *testing.T) {
	g := serve(t, transport.Config{})
	for name, s := range map[string]*listener{
		"GET":  g.listen("GET", "/graphql?query=subscription{count(to:2)}", nil, ""),
		"POST": g.listen("POST", "/graphql", map[string]string{"Content-Type": "application/json; charset=utf-8"}, `{"query":"subscription{count(to:2)}"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.hear(sent{"next", "c1", `{"data":{"count":1}}`}, sent{"next", "c2", `{"data":{"count":2}}`}, sent{"complete", "", ""})
			s.ends()
			if s.retry == "" {
				t.Error("no hint when to come again")
			}
			for header, want := range map[string]string{"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"} {
				if got := s.res.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
		})
	}
}

func TestEvents_TheHeadOfAStreamDoesNotWaitForAnEvent(t *testing.T) {
	g := serve(t, transport.Config{})
	s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
	<-g.fed
	g.publish(3)
	s.hear(sent{"next", "c3", `{"data":{"feed":3}}`})
	g.complete()
	s.hear(sent{"complete", "", ""})
	s.ends()
}

func TestEvents_AStreamGoesOnAfterTheLastEventThatWasSeen(t *testing.T) {
	g := serve(t, transport.Config{})
	const target = "/graphql?query=subscription{count(to:9)}"
	for name, s := range map[string]*listener{
		"by the header":     g.listen("GET", target, map[string]string{"Last-Event-ID": "c7"}, ""),
		"by the parameter":  g.listen("GET", target+"&lastEventId=c7", nil, ""),
		"the header is new": g.listen("GET", target+"&lastEventId=c2", map[string]string{"Last-Event-ID": "c7"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.hear(sent{"next", "c8", `{"data":{"count":8}}`}, sent{"next", "c9", `{"data":{"count":9}}`}, sent{"complete", "", ""})
			s.ends()
		})
	}
}

func TestEvents_QueriesAndTheirErrorsAreEventsWhereNothingElseIsAccepted(t *testing.T) {
	g := serve(t, transport.Config{})
	s := g.listen("GET", "/graphql?query={hello}", nil, "")
	s.hear(sent{"next", "", `{"data":{"hello":"world"}}`}, sent{"complete", "", ""})
	s.ends()
	s = g.listen("GET", "/graphql?query={nothing}", nil, "")
	if e := s.next(); e.name != "next" || !strings.Contains(e.data, "GRAPHQL_VALIDATION_FAILED") || strings.Contains(e.data, `"data"`) {
		t.Errorf("%+v", e)
	}
	s.hear(sent{"complete", "", ""})
	s.ends()
}

func TestEvents_AStreamThatEndsEarlySaysWhy(t *testing.T) {
	g := serve(t, transport.Config{})
	s := g.listen("GET", "/graphql?query=subscription{lags}", nil, "")
	s.hear(sent{"next", "c1", `{"data":{"lags":1}}`})
	s.hear(sent{"next", "", `{"errors":[{"message":"too slow","extensions":{"code":"LAGGED","cursor":"c1"}}]}`}, sent{"complete", "", ""})
	s.ends()
}

func TestEvents_APanicEndsOneStream(t *testing.T) {
	g := serve(t, transport.Config{})
	s := g.listen("GET", "/graphql?query={panics}", nil, "")
	s.hear(sent{"next", "", `{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`}, sent{"complete", "", ""})
	s.ends()
}

func TestEvents_AnIdleStreamHasAHeartbeatAndOutlivesTheServersTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{})
		defer g.stop()
		s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
		_ = s.conn.SetReadDeadline(time.Time{})
		<-g.fed
		go func() {
			time.Sleep(101 * time.Second) // of the bubble; the server's time-outs are 30 s
			g.publish(1)
		}()
		s.hear(sent{"next", "c1", `{"data":{"feed":1}}`})
		if s.comments != 8 {
			t.Errorf("%d heartbeats in 101 s", s.comments)
		}
		_ = s.conn.Close()
	})
}

func TestEvents_AStreamWhoseClientDoesNotReadEndsWithinTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{WriteTimeout: 7 * time.Second, Queue: 10})
		defer g.stop()
		s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
		<-g.fed
		begin := time.Now()
		for i := range 100 {
			g.publish(i)
		}
		<-g.fed
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("it ended after %v", took)
		}
		_ = s.conn.Close()
	})
}

func TestEvents_AClientThatGoesEndsItsStream(t *testing.T) {
	g := serve(t, transport.Config{})
	s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
	<-g.fed
	_ = s.conn.Close()
	<-g.fed
	s = g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
	<-g.fed
	_ = s.conn.Close()
	<-g.fed
}

func TestEvents_TooManyStreamsAreRefused(t *testing.T) {
	g := serve(t, transport.Config{Streams: 1})
	s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
	defer func() { _ = s.conn.Close() }()
	refused := g.ask("GET", "/graphql?query=subscription{feed}", nil, "")
	defer func() { _ = refused.conn.Close() }()
	text, _ := io.ReadAll(refused.res.Body)
	if refused.res.StatusCode != http.StatusServiceUnavailable || refused.res.Header.Get("Retry-After") == "" || !strings.Contains(string(text), `"setting":"limit-streams"`) {
		t.Errorf("%s: %s", refused.res.Status, text)
	}
}

// TestEvents_AGatewayThatStopsEndsStreamsAndLetsAnswersFinish also says nothing of an
// end: the client of a subscription shall come again.
func TestEvents_AGatewayThatStopsEndsStreamsAndLetsAnswersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Time: 3 * time.Second})
		defer g.stop()
		s := g.listen("GET", "/graphql?query=subscription{feed}", nil, "")
		<-g.fed
		g.publish(1)
		synctest.Wait() // a stream that ends takes no more events; whoever resumes gets them
		query := g.listen("GET", "/graphql?query={slow}", nil, "")
		<-g.slow
		begin := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.Drain(context.Background())
		}()
		s.hear(sent{"next", "c1", `{"data":{"feed":1}}`})
		s.ends()
		if took := time.Since(begin); took > 10*time.Millisecond {
			t.Errorf("the stream ended after %v", took)
		}
		<-g.slow
		if e := query.next(); !strings.Contains(e.data, "deadline exceeded") {
			t.Errorf("%+v", e)
		}
		query.hear(sent{"complete", "", ""})
		query.ends()
		<-done
	})
}

func TestEvents_AnEventIsOneEventWhateverIsInIt(t *testing.T) {
	for _, c := range []struct{ id, payload, want string }{
		{"c1", `{"a":1}`, "event: next\nid: c1\ndata: {\"a\":1}\n\n"},
		{"", "{\n\"a\":\r\n1}", "event: next\ndata: { \"a\":  1}\n\n"},
		{"a\nid: b", "{}", "event: next\ndata: {}\n\n"},
		{"", "", "event: next\ndata:\n\n"},
	} {
		if got := transport.AppendEvent("next", c.id, []byte(c.payload)); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.id, c.payload, got, c.want)
		}
	}
}

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/graph/transport"
)

// half is a body of which only a part comes.
type half struct {
	text    io.Reader
	stalled chan struct{} // gets a token when the gateway waits for more
	end     chan struct{} // ends the body
}

func newHalf(bytes int, end chan struct{}) *half {
	return &half{text: strings.NewReader(strings.Repeat(" ", bytes)), stalled: make(chan struct{}), end: end}
}

func (h *half) Read(b []byte) (int, error) {
	n, err := h.text.Read(b)
	if err != io.EOF {
		return n, err
	}
	h.stalled <- struct{}{}
	<-h.end
	return 0, errors.New("cut")
}

func TestRequestsInFlightShareOneBudgetOfBytes(t *testing.T) {
	const budget = 8 << 20
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Body: 1 << 20, Memory: budget}})
	end := make(chan struct{})
	var refused *httptest.ResponseRecorder
	var done []chan struct{}
	for refused == nil && len(done) < 100 {
		body, w, answered := newHalf(100<<10, end), httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(answered)
			r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", body)
			r.Header.Set("Content-Type", "application/json")
			e.ServeHTTP(w, r)
		}()
		select {
		case <-body.stalled:
			done = append(done, answered)
		case <-answered:
			refused = w
		}
	}
	if refused == nil {
		t.Fatalf("%d half-sent bodies of 100 KiB are held", len(done))
	}
	if len(done) < 10 || refused.Code != http.StatusServiceUnavailable || refused.Header().Get("Retry-After") == "" ||
		!strings.Contains(refused.Body.String(), `"setting":"limit-memory"`) || !strings.Contains(refused.Body.String(), `"code":"UNAVAILABLE"`) || !strings.Contains(refused.Body.String(), `"retryable":true`) {
		t.Errorf("after %d: %d %s", len(done), refused.Code, refused.Body)
	}
	if used := e.metric(t, "sluice_request_bytes"); used <= 0 || used > budget {
		t.Errorf("%v bytes of %d are taken", used, budget)
	}
	close(end)
	for _, one := range done {
		<-one
	}
	if used := e.metric(t, "sluice_request_bytes"); used != 0 {
		t.Errorf("%v bytes are taken when all is over", used)
	}
	if got := e.post(t, "{ __typename }", nil); !strings.Contains(got, `"data"`) {
		t.Errorf("the next client: %s", got)
	}
}

// metric reads a number at /metrics.
func (e edge) metric(t testing.TB, name string) (value float64) {
	t.Helper()
	for line := range strings.Lines(e.at(http.MethodGet, "/metrics").Body.String()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			_, _ = fmt.Sscan(rest, &value)
			return value
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// unread is the connection of a client that does not read its answer.
type unread struct {
	*httptest.ResponseRecorder
	begun, end chan struct{}
}

func (w unread) Write(p []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
	default: // it has begun
	}
	<-w.end
	return w.ResponseRecorder.Write(p)
}

func TestAnAnswerThatIsNotReadKeepsNobodyWaiting(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Body: 16 << 10, Memory: 128 << 10}})
	topology(t, e, 1, 20, 0)
	ask := func(w http.ResponseWriter, method, query string) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", strings.NewReader(`{"query":"`+query+`"}`))
		if method == http.MethodGet {
			r = httptest.NewRequest(http.MethodGet, "http://localhost/graphql?query="+url.QueryEscape(query), nil)
		}
		r.Header.Set("Content-Type", "application/json")
		e.ServeHTTP(w, r)
	}
	slow := unread{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		ask(slow, http.MethodPost, "{ "+aliases(99, "subnets { nodes { id } }")+"}")
	}()
	<-slow.begun
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		late := httptest.NewRecorder()
		ask(late, method, "{ __typename }")
		if text := late.Body.String(); late.Code != http.StatusOK || !strings.Contains(text, `"data"`) {
			t.Errorf("%s: %d %s", method, late.Code, text)
		}
	}
	close(slow.end)
	<-answered
	if n := slow.Body.Len(); slow.Code != http.StatusOK || n < 90<<10 {
		t.Errorf("the answer that ran: %d, %d bytes", slow.Code, n)
	}
	if got := e.post(t, "{ __typename }", nil); !strings.Contains(got, `"data"`) {
		t.Errorf("the next client: %s", got)
	}
}

func TestARequestThatAnnouncesTooMuchIsRefusedAtOnce(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", newHalf(0, nil))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = 5 << 20
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), `"setting":"limit-body"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// pipes is a listener within the process. In a bubble of testing/synctest time is
// the test's own.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() net.Conn {
	client, gateway := net.Pipe()
	p.accept <- gateway
	return client
}

// running is a server that serves.
type running struct {
	*pipes
	stop func() error // waits until it has ended
}

func run(t *testing.T, wrap func(backend.Store) backend.Store, cfg server.Config) running {
	t.Helper()
	l := newPipes()
	s := newServer(t, wrap, &cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	return running{pipes: l, stop: func() error { cancel(); return <-done }}
}

const head = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

// answer reads an answer and what comes after it.
func answer(t *testing.T, c net.Conn) (*http.Response, string) {
	t.Helper()
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestASlowBodyIsCutEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{})
		c := g.dial()
		begin := time.Now()
		_, _ = fmt.Fprintf(c, head+"{", 1000)
		res, text := answer(t, c)
		if took := time.Since(begin); took != transport.DefaultMessageTimeout || res.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, `"code":"TIMEOUT"`) || !res.Close {
			t.Errorf("after %v: %s %s", took, res.Status, text)
		}
		_ = c.Close()
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestABodyThatKeepsComingIsReadForAMinute as 64 KiB must come within the
// time-out, not all of it.
func TestABodyThatKeepsComingIsReadForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{})
		c := g.dial()
		begin := time.Now()
		_, _ = fmt.Fprintf(c, head, 4<<20)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for {
				if _, err := c.Write(make([]byte, 64<<10)); err != nil {
					return
				}
				time.Sleep(7 * time.Second) // of the bubble
			}
		}()
		res, _ := answer(t, c)
		if took := time.Since(begin); took != time.Minute || res.StatusCode != http.StatusRequestTimeout {
			t.Errorf("after %v: %s", took, res.Status)
		}
		_ = c.Close()
		<-written
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{Limits: server.Limits{Connections: 2}})
		ask := func(c net.Conn, path string) (*http.Response, string) {
			_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			return answer(t, c)
		}
		first, second := g.dial(), g.dial()
		for _, c := range []net.Conn{first, second} {
			if res, text := ask(c, "/graphql?query={__typename}"); res.StatusCode != http.StatusOK || res.Close {
				t.Errorf("%s %s", res.Status, text)
			}
		}
		third, fourth := g.dial(), g.dial()
		if res, text := ask(third, "/graphql?query={__typename}"); res.StatusCode != http.StatusServiceUnavailable || !res.Close ||
			!strings.Contains(text, `"setting":"limit-connections"`) || !strings.Contains(text, `"limit":2`) {
			t.Errorf("%s %s", res.Status, text)
		}
		if res, text := ask(fourth, "/readyz"); res.StatusCode != http.StatusOK || !res.Close {
			t.Errorf("%s %s", res.Status, text)
		}
		for _, c := range []net.Conn{first, third, fourth} {
			_ = c.Close()
		}
		synctest.Wait()
		if res, text := ask(g.dial(), "/graphql?query={__typename}"); res.StatusCode != http.StatusOK || res.Close {
			t.Errorf("when one has gone: %s %s", res.Status, text)
		}
		silent := make([]net.Conn, 16) // the spare ones
		for i := range silent {
			silent[i] = g.dial()
		}
		if _, err := g.dial().Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection beyond those: %v", err)
		}
		_ = g.stop()
	})
}

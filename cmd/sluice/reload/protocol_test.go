package reload_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/graph/client"
)

// TestRequestsTakeTurnsWhereverTheyComeFrom, over the admin socket and over the network.
func TestRequestsTakeTurnsWhereverTheyComeFrom(t *testing.T) {
	path, g := place(t), &gateway{}
	h := reload.NewHandler(g)
	serveHandler(t, path, h)
	web := httptest.NewServer(h)
	defer web.Close()
	network, err := client.New(client.Config{Server: web.URL, Timeout: reload.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := reload.Client(path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		for _, c := range []*client.Client{network, socket} {
			all.Go(func() {
				if a, err := reload.Send(t.Context(), c, reload.Request{DryRun: true}); err != nil || a.Hash != "h" {
					t.Errorf("%v %v", a, err)
				}
			})
		}
	}
	all.Wait()
	if len(g.requests) != 16 || g.together {
		t.Errorf("asked %d times, together: %v", len(g.requests), g.together)
	}
}

// slow takes minutes for a request, and notes whether its client was given up meanwhile.
type slow struct{ err error }

func (s *slow) Reload(ctx context.Context, _ reload.Request) reload.Answer {
	time.Sleep(5 * time.Minute) // of the bubble
	s.err = ctx.Err()
	return reload.Answer{Hash: "h"}
}

// one is a listener of one connection.
type one chan net.Conn

func (o one) Accept() (net.Conn, error) {
	if c, ok := <-o; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (one) Close() error   { return nil }
func (one) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble has a server with short deadlines serve one connection with c, in a bubble of time.
func inBubble(t *testing.T, c reload.Catalogues, f func(conn net.Conn, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		srv := &http.Server{Handler: reload.NewHandler(c), ReadTimeout: time.Minute, WriteTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
		conns := make(one, 1)
		ended := make(chan error)
		go func() { ended <- srv.Serve(conns) }()
		mine, its := net.Pipe()
		conns <- its
		f(mine, cancel)
		_ = mine.Close()
		close(conns)
		<-ended
		_ = srv.Close()
		cancel()
		time.Sleep(time.Second) // of the bubble: net/http lets the client read its answer before it closes a connection
	})
}

func TestARequestMayTakeLongerThanTheServersDeadlines(t *testing.T) {
	c := &slow{}
	inBubble(t, c, func(conn net.Conn, _ func()) {
		_, _ = io.WriteString(conn, "POST /catalogue HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), `"hash":"h"`) || c.err != nil {
			t.Errorf("%s %v; the request ended with %v", text, err, c.err)
		}
	})
}

func TestARequestThatIsStillComingEndsWithItsContext(t *testing.T) {
	for name, end := range map[string]time.Duration{"it ends": time.Second, "it takes too long": 0} {
		inBubble(t, &slow{}, func(conn net.Conn, stop func()) {
			begin := time.Now()
			_, _ = fmt.Fprintf(conn, "POST /catalogue HTTP/1.1\r\nHost: gateway\r\nContent-Length: 100\r\n\r\n{")
			synctest.Wait()
			want := time.Minute
			if end > 0 {
				want = end
				time.AfterFunc(end, stop)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); res.StatusCode != http.StatusBadRequest || took != want {
				t.Errorf("%s: %s after %v", name, res.Status, took)
			}
		})
	}
}

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
)

// stopped stops a server and returns how long that took.
func (r running) stopped(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := r.stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	return time.Since(begin)
}

func TestRequestsThatAreStillBeingSentDoNotHoldUpAStop(t *testing.T) {
	for name, part := range map[string]string{
		"nothing": "", "half a head": "POST /graphql HTTP/1.1\r\nHost: loc", "half a body": fmt.Sprintf(head, 1000) + `{"query":`,
		"half a body of the second request": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + fmt.Sprintf(head, 1000) + `{"query":`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run(t, plain, server.Config{})
				c := g.dial()
				heard := make(chan string)
				go func() {
					text, _ := io.ReadAll(c)
					heard <- string(text)
				}()
				_, _ = io.WriteString(c, part)
				synctest.Wait()
				took := g.stopped(t)
				// A second until the body is too late, half a second in which net/http lets the client read its answer, and
				// half a second until Shutdown looks again.
				if took > 2500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				_ = c.Close()
				text := <-heard
				if strings.Contains(part, "query") && (!strings.Contains(text, "HTTP/1.1 503") || !strings.Contains(text, `"retryable":true`)) {
					t.Errorf("the client heard %s", text)
				}
			})
		})
	}
}

func TestABodyThatComesInTimeIsStillAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{})
		c := g.dial()
		const query = `{"query":"{ __typename }"}`
		_, _ = fmt.Fprintf(c, head, len(query))
		_, _ = io.WriteString(c, query[:5])
		synctest.Wait()
		done := make(chan error)
		go func() { done <- g.stop() }()
		time.Sleep(500 * time.Millisecond) // of the bubble
		_, _ = io.WriteString(c, query[5:])
		if res, text := answer(t, c); res.StatusCode != http.StatusOK || !strings.Contains(text, `"data"`) {
			t.Errorf("%s %s", res.Status, text)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
}

// TestWhoLooksSeesThatTheGatewayWillStop before it does, and is sent away by each answer.
func TestWhoLooksSeesThatTheGatewayWillStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, plain, server.Config{DrainDelay: 5 * time.Second})
		begin := time.Now()
		done := make(chan error, 1)
		go func() { done <- g.stop() }()
		synctest.Wait()
		for path, status := range map[string]int{"/readyz": 503, "/healthz": 200, "/metrics": 200, "/graphql?query={__typename}": 200} {
			c := g.dial()
			_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			if res.StatusCode != status || !res.Close {
				t.Errorf("%s: %s %s, closes %v", path, res.Status, text, res.Close)
			}
			if path == "/metrics" && !strings.Contains(string(text), "sluice_ready 0\n") {
				t.Error("sluice_ready is not 0")
			}
			_ = c.Close()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestARunningRequestIsCutOffAtTheEndOfTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run(t, func(s backend.Store) backend.Store { return slow{s} }, server.Config{Limits: server.Limits{Time: time.Hour}})
		c := g.dial()
		_, _ = io.WriteString(c, "GET /graphql?query={network(name:%22a%22){id}} HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		begin := time.Now()
		err := g.stop()
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "10s") || took != 10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		_, _ = c.Read(make([]byte, 1))
		_ = c.Close()
	})
}

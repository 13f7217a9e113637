package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

func (g *gateway) do(method, path, body string, headers ...string) (*http.Response, string) {
	g.t.Helper()
	req, err := http.NewRequest(method, g.address+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	g.identify(req.Header)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(raw)
}

func TestTheOtherPaths(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	redistest.Await(t, "/readyz to be ok", func() error {
		if res, body := g.do("GET", "/readyz", ""); res.StatusCode != 200 {
			return errors.New(body)
		}
		return nil
	})
	for path, says := range map[string]string{"/": "/v1/graphql", "/healthz": "ok", "/readyz": "ok", "/metrics": "sluice_http_request_duration_seconds"} {
		res, body := g.do("GET", path, "")
		if res.StatusCode != 200 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	if res, body := g.do("GET", "/nothing", ""); res.StatusCode != 404 || !strings.Contains(body, "/graphql") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, _ := g.do("DELETE", "/graphql", ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, POST" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--allowed-hosts", "api.example.com", "--allowed-origins", "https://app.example.com")
	query := `{"query":"{ __typename }"}`
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Host", "evil.example.com", 403},
		{"Host", "api.example.com", 200},
		{"Host", "localhost:1234", 200},
		{"Origin", "https://evil.example.com", 403},
		{"Origin", "null", 403},
		{"Origin", "https://app.example.com", 200},
		{"Origin", g.address, 200},
	} {
		res, body := g.do("POST", "/graphql", query, "Content-Type", "application/json", c.header, c.value)
		if res.StatusCode != c.status {
			t.Errorf("%s %s: %d %s", c.header, c.value, res.StatusCode, body)
		}
	}
}

func TestARequestHasAnIDInAnswerErrorAndLog(t *testing.T) {
	t.Parallel()
	g := start(t, "", "--log-level", "debug")
	res, body := g.do("POST", "/graphql", `{"query":"{ network(name: \"\") { id } }"}`, "Content-Type", "application/json", "X-Request-Id", "req-42")
	if res.Header.Get("X-Request-Id") != "req-42" || !strings.Contains(body, `"requestId":"req-42"`) {
		t.Errorf("%v %s", res.Header, body)
	}
	if !g.log.await(`"requestId":"req-42"`) {
		t.Errorf("log:\n%s", g.log)
	}
	if res, _ = g.do("GET", "/healthz", "", "X-Request-Id", "bad id\t"); res.Header.Get("X-Request-Id") == "bad id\t" || len(res.Header.Get("X-Request-Id")) < 16 {
		t.Errorf("%v", res.Header)
	}
}

func TestHostileDocumentsAreRefusedByTheLimitTheyBreak(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	aliases := ""
	for i := range 20_000 {
		aliases += fmt.Sprintf("a%d:__typename ", i)
	}
	laughs := "{...f0}"
	for i := range 30 {
		laughs += fmt.Sprintf(" fragment f%d on Query{...f%d ...f%d}", i, i+1, i+1)
	}
	laughs += " fragment f30 on Query{__typename}"
	for name, c := range map[string]struct{ query, key string }{
		"repeated fields": {"{" + strings.Repeat("__typename ", 1000) + "}", "limit-repeats"},
		"200 KiB":         {"{" + strings.Repeat("__typename ", 200<<10/11) + "}", "limit-tokens"},
		"aliases":         {"{" + aliases + "}", "limit-tokens"},
		"fewer aliases":   {"{" + aliases[:3000] + "}", "limit-aliases"},
		"depth":           {strings.Repeat("{a", 500) + strings.Repeat("}", 500), "limit-depth"},
		"laughs":          {laughs, "limit-fields"},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.post(c.query, nil)
			if a.codes() != "LIMIT_EXCEEDED" || a.Errors[0].Extensions["setting"] != c.key {
				t.Errorf("%d %.300s", a.Status, fmt.Sprint(a.Errors))
			}
		})
	}
	res, body := g.do("POST", "/graphql", `{"query":"`+strings.Repeat("x", 10<<20)+`"}`, "Content-Type", "application/json")
	if res.StatusCode != 413 || !strings.Contains(body, "limit-body") {
		t.Errorf("10 MiB: %d %.300s", res.StatusCode, body)
	}
	if a := g.post(`{ networks(first: 1001) { nodes { id } } }`, nil); a.codes() != "BAD_USER_INPUT" || !strings.Contains(a.Errors[0].Message, "1000") {
		t.Errorf("%+v", a)
	}
	if a := g.post(`{ __typename }`, nil); a.codes() != "" {
		t.Errorf("the next client: %+v", a)
	}
}

func TestAConnectionThatBecomesAWebSocketIsCountedAsSuch(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	s := g.dial()
	defer s.close()
	redistest.Await(t, "the metric", func() error {
		if _, body := g.do("GET", "/metrics", ""); !strings.Contains(body, `sluice_http_request_duration_seconds_count{method="GET",path="/graphql",status="101"} 1`) {
			return fmt.Errorf("metrics:\n%s", body)
		}
		return nil
	})
}

func TestAHalfSentRequestDoesNotSpoilTheEnd(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	if code := g.stop(); code != 0 {
		t.Errorf("the gateway ended with %d:\n%s", code, g.log)
	}
}

// TestAGatewayListensWhenItsStoreIsOpen and not before: the data folder of the
// second one is in use, so it must never accept a connection.
func TestAGatewayListensWhenItsStoreIsOpen(t *testing.T) {
	t.Parallel()
	first := start(t, "", "--data", t.TempDir())
	folder := first.cmd.Args[len(first.cmd.Args)-1]
	address := freeAddress(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	second := exec.Command(path, "serve", "--data", folder, "--listen", address)
	ended := make(chan error, 1)
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- second.Wait() }()
	for accepted := false; ; {
		select {
		case <-ended:
			if code := second.ProcessState.ExitCode(); code != 1 {
				t.Errorf("it ended with %d", code)
			}
			return
		default:
		}
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			if !accepted {
				t.Error("it accepted a connection")
			}
			accepted = true
		}
	}
}

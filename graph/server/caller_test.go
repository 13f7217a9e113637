package server_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/graph/server"
)

// token returns a token, and the authenticator that knows it and trusts the proxies.
func token(t testing.TB, proxies ...string) (string, identity.Authenticator) {
	t.Helper()
	text, hash, err := identity.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(identity.Token{Name: "ci", Hash: hash, Groups: []string{"ops"}}.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := identity.OpenTokens(t.Context(), path, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := identity.ParseProxies(proxies)
	if err != nil {
		t.Fatal(err)
	}
	return text, identity.Authenticator{Tokens: tokens, Proxies: trusted}
}

// from sends a request from an address.
func (e edge) from(address, method, path string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", address
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestACallerIsWhoItsCredentialSays(t *testing.T) {
	text, identities := token(t, "10.0.0.0/8")
	e := newEdge(t, plain, server.Config{Identities: identities, AllowedOrigins: []string{"https://app.example.com"}})
	const anywhere, proxy = "203.0.113.9:1", "10.1.1.1:1"
	const ask = `{"query":"{ viewer { name source groups expiresAt } }"}`
	for name, c := range map[string]struct {
		from, method, path string
		header             http.Header
		status             int
		says               string
	}{
		"no credential":                   {anywhere, "POST", "/graphql", nil, 401, `"code":"UNAUTHENTICATED"`},
		"no credential, for events":       {anywhere, "POST", "/graphql", http.Header{"Accept": {"text/event-stream"}}, 401, `"code":"UNAUTHENTICATED"`},
		"a wrong token":                   {anywhere, "POST", "/graphql", http.Header{"Authorization": {"Bearer sluice_x"}}, 401, "the token is not known, or was revoked"},
		"a token":                         {anywhere, "POST", "/graphql", http.Header{"Authorization": {"Bearer " + text}}, 200, `{"data":{"viewer":{"name":"token:ci","source":"token","groups":["token:ops"],"expiresAt":null}}}`},
		"a proxy":                         {proxy, "POST", "/graphql", http.Header{"X-Forwarded-User": {"bob"}, "X-Forwarded-Groups": {"a,b"}}, 200, `{"data":{"viewer":{"name":"proxy:bob","source":"proxy","groups":["proxy:a","proxy:b"],"expiresAt":null}}}`},
		"a proxy that names nobody":       {proxy, "POST", "/graphql", nil, 401, "a credential is needed"},
		"a spoofed proxy":                 {anywhere, "POST", "/graphql", http.Header{"X-Forwarded-User": {"root"}}, 401, "a credential is needed"},
		"a spoofed proxy with a token":    {anywhere, "POST", "/graphql", http.Header{"X-Forwarded-User": {"root"}, "Authorization": {"Bearer " + text}}, 200, `"name":"token:ci"`},
		"a preflight":                     {anywhere, "OPTIONS", "/graphql", http.Header{"Origin": {"https://app.example.com"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"}}, 204, ""},
		"health":                          {anywhere, "GET", "/healthz", nil, 200, "ok"},
		"readiness":                       {anywhere, "GET", "/readyz", nil, 200, "ok"},
		"how users log in":                {anywhere, "GET", "/login", nil, 200, `{"credential":true,"issuers":[]}`},
		"metrics without a credential":    {anywhere, "GET", "/metrics", nil, 401, `"code":"UNAUTHENTICATED"`},
		"metrics for a WebSocket":         {anywhere, "GET", "/metrics", http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}, 401, `"code":"UNAUTHENTICATED"`},
		"no credential and half a socket": {anywhere, "POST", "/graphql", http.Header{"Upgrade": {"websocket"}}, 400, `"code":"BAD_USER_INPUT"`},
		"metrics":                         {anywhere, "GET", "/metrics", http.Header{"Authorization": {"Bearer " + text}}, 200, "sluice_websockets"},
		"a body that is not read further": {anywhere, "POST", "/graphql", http.Header{"Content-Type": {"text/plain"}}, 401, "a credential is needed"},
	} {
		w := e.from(c.from, c.method, c.path, c.header, ask)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if challenge := w.Header().Get("WWW-Authenticate"); (w.Code == 401) != strings.HasPrefix(challenge, "Bearer") {
			t.Errorf("%s: WWW-Authenticate: %q", name, challenge)
		}
	}
	if w := e.from(anywhere, "GET", "/readyz?verbose", nil, ""); w.Body.String() != "ok\n" {
		t.Errorf("a stranger is told %q", w.Body)
	}
	if w := e.from(anywhere, "GET", "/readyz?verbose", http.Header{"Authorization": {"Bearer " + text}}, ""); !strings.Contains(w.Body.String(), "catalogue ") {
		t.Errorf("a caller is told %q", w.Body)
	}
	for _, line := range e.log.All() {
		if strings.Contains(line.Message, text) || strings.Contains(line.Message, "sluice_x") {
			t.Errorf("the log has a credential: %s", line.Message)
		}
	}
}

func TestAnonymousCallersAreLimitedByTheirAddress(t *testing.T) {
	e := newEdge(t, plain, server.Config{Caller: server.CallerLimits{Rate: 2}})
	ask := func(address string) int {
		return e.from(address, "POST", "/graphql", nil, `{"query":"{ viewer { name } }"}`).Code
	}
	for range 2 {
		for _, address := range []string{"203.0.113.9:1", "203.0.113.10:1", "[2001:db8::1]:1"} {
			if code := ask(address); code != 200 {
				t.Errorf("%s: %d", address, code)
			}
		}
	}
	for _, address := range []string{"203.0.113.9:2", "[2001:db8::2]:1"} {
		w := e.from(address, "POST", "/graphql", nil, `{"query":"{ viewer { name } }"}`)
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"setting":"limit-caller-rate"`) || !strings.Contains(w.Body.String(), `"retryAfter":1`) {
			t.Errorf("%s: %d %s", address, w.Code, w.Body)
		}
	}
	for range 10 {
		if code := ask("127.0.0.1:1"); code != 200 {
			t.Errorf("on this machine: %d", code)
		}
	}
}

func TestWorkOfACallerCounts(t *testing.T) {
	text, identities := token(t)
	e := newEdge(t, plain, server.Config{Identities: identities, Caller: server.CallerLimits{Steps: 100}})
	header := http.Header{"Authorization": {"Bearer " + text}}
	const ask = `{"query":"{ networks { nodes { id } } }"}`
	if w := e.from("203.0.113.9:1", "POST", "/graphql", header, ask); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := e.from("203.0.113.9:1", "POST", "/graphql", header, ask); w.Code != 429 || !strings.Contains(w.Body.String(), `"setting":"limit-caller-steps"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestTheDocumentsOfACallerCount also if nothing of them is executed: to validate one may take as long as a large answer.
func TestTheDocumentsOfACallerCount(t *testing.T) {
	text, identities := token(t)
	e := newEdge(t, plain, server.Config{Identities: identities, Caller: server.CallerLimits{Steps: 1000}})
	header := http.Header{"Authorization": {"Bearer " + text}}
	ask := `{"query":"{ viewer {` + strings.Repeat(" name @skip(if: nothing)", 19) + strings.Repeat(" nothing", 19) + ` ... { name } } }"}`
	for n := range 10 {
		w := e.from("203.0.113.9:1", "POST", "/graphql", header, ask)
		if w.Code == 429 && n > 0 && strings.Contains(w.Body.String(), `"setting":"limit-caller-steps"`) {
			return
		}
		if w.Code != 200 || !strings.Contains(w.Body.String(), "GRAPHQL_VALIDATION_FAILED") {
			t.Fatalf("request %d: %d %s", n, w.Code, w.Body)
		}
	}
	t.Error("a caller may have any number of documents checked")
}

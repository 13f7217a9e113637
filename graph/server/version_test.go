package server_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/graph/server"
)

// serveVersions serves wide with the versions of some SDL, in a state.
func serveVersions(c *changing, states string, versions ...string) {
	c.Helper()
	catalogue := c.withVersions(wide, states, versions...)
	g, err := c.server.Prepare(catalogue)
	if err != nil {
		c.Fatal(err)
	}
	c.server.Replace(g)
	c.run(catalogue.API.Service)
}

// get sends a GET request.
func (c *changing) get(path string) *httptest.ResponseRecorder {
	c.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	w := httptest.NewRecorder()
	c.Handler.ServeHTTP(w, r)
	return w
}

const depths = `{ shelves { nodes { spec { depth } } } }`

func TestVersion_HasPathsOfItsOwn(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	const none, some = "GRAPHQL_VALIDATION_FAILED", `"nodes"`
	check := func(paths map[string]string) {
		t.Helper()
		for path, want := range paths {
			if got := c.ask(c.Handler, path, depths).Body.String(); !strings.Contains(got, want) {
				t.Errorf("%s: wanted %s, got %s", path, want, got)
			}
		}
	}
	check(map[string]string{"/graphql": none, "/v1/graphql": none, "/v1.0/graphql": `"NOT_FOUND"`, "/v2/graphql": `"NOT_FOUND"`})
	if got := c.get("/versions"); got.Code != http.StatusNotFound {
		t.Errorf("without versions: %d %s", got.Code, got.Body)
	}
	all := make([]string, 11)
	for minor := range all {
		all[minor] = narrow
	}
	all[10] = wide
	serveVersions(c, "", all...)
	check(map[string]string{
		"/graphql": some, "/v1/graphql": some, "/v1.10/graphql": some, "/v1.9/graphql": none, "/v1.0/graphql": none,
		"/v10/graphql": `"UNSUPPORTED_VERSION"`, "/v1.11/graphql": `"UNSUPPORTED_VERSION"`, "/v2/graphql": `"UNSUPPORTED_VERSION"`,
		"/v01/graphql": `"NOT_FOUND"`, "/v1.0.0/graphql": `"NOT_FOUND"`, "/v1.00/graphql": `"NOT_FOUND"`, "/vv1/graphql": `"NOT_FOUND"`, "/v0/graphql": `"NOT_FOUND"`,
	})
	if got := c.get("/v1.0").Body.String(); !strings.Contains(got, "the API is at /graphql, and its versions are listed at /versions") {
		t.Errorf("a path that there is not: %s", got)
	}
	got := c.ask(c.Handler, "/v7.1/graphql", depths)
	if want := `"supported":["v1.0","v1.1","v1.2","v1.3","v1.4","v1.5","v1.6","v1.7","v1.8","v1.9","v1.10"]`; got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), want) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := c.get("/v1.0/schema.graphql").Body.String(); !strings.Contains(got, "type ShelfSpec {\n  width: Int!\n}") {
		t.Errorf("the schema of v1.0 is %s", got)
	}
	if got := c.get("/v3.0/schema.graphql"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "UNSUPPORTED_VERSION") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if got := c.get("/v1.0/graphql?query=%7B__typename%7D").Body.String(); got != `{"data":{"__typename":"Query"}}` {
		t.Errorf("by GET: %s", got)
	}
}

func TestVersion_SaysHowLongItIsServed(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	serveVersions(c, "v1.0: {withdrawn: 2030-01-31, why: it was wrong}\nv1.1: {deprecated: 2030-01-31, sunset: 2030-07-31, why: use v1.2}\n", narrow, narrow, narrow)
	const list = `{"newest":"v1.2","unreleased":"/graphql","versions":[` +
		`{"version":"v1.0","path":"/v1.0/graphql","state":"WITHDRAWN","withdrawn":"2030-01-31","why":"it was wrong"},` +
		`{"version":"v1.1","path":"/v1.1/graphql","state":"DEPRECATED","deprecated":"2030-01-31","sunset":"2030-07-31","why":"use v1.2"},` +
		`{"version":"v1.2","path":"/v1.2/graphql","state":"SERVED"}]}`
	if got := strings.TrimSpace(c.get("/versions").Body.String()); got != list {
		t.Errorf("%s", got)
	}
	if got := c.ask(c.Handler, "/versions", depths); got.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %d", got.Code)
	}
	header := c.ask(c.Handler, "/v1.1/graphql", depths).Header()
	for name, want := range map[string]string{
		"Deprecation": "@1896048000", "Sunset": "Wed, 31 Jul 2030 00:00:00 GMT", "Link": `</versions>; rel="deprecation"; type="application/json"`,
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, path := range []string{"/graphql", "/v1/graphql", "/v1.2/graphql"} {
		if got := c.ask(c.Handler, path, depths).Header().Get("Deprecation"); got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
	got := c.ask(c.Handler, "/v1.0/graphql", depths).Body.String()
	if !strings.Contains(got, "version v1.0 of the API was withdrawn: it was wrong; served are v1.1, v1.2") {
		t.Errorf("%s", got)
	}
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(c.url, "http")+"/v1.1/graphql", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	w := &wire{t: t, conn: conn}
	w.write(map[string]any{"type": "connection_init"})
	if m := w.read(); string(m.Payload) != `{"deprecated":"2030-01-31","sunset":"2030-07-31","version":"v1.1","why":"use v1.2"}` {
		t.Errorf("%s %s", m.Type, m.Payload)
	}
	if _, answer, err := dialer.Dial("ws"+strings.TrimPrefix(c.url, "http")+"/v1.0/graphql", nil); err == nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("a withdrawn version: %v", err)
	}
}

func TestVersion_OpenSocketsLearnThatItWasWithdrawn(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	serveVersions(c, "", narrow)
	exact, major := c.dialAt("/v1.0/graphql"), c.dialAt("/v1/graphql")
	ask := func(w *wire) string {
		t.Helper()
		w.begin("1", depths, nil)
		m := w.read()
		if m.Type == "next" {
			w.read()
		}
		return string(m.Payload)
	}
	for _, w := range []*wire{exact, major} {
		if got := ask(w); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
			t.Errorf("v1.0: %s", got)
		}
	}
	serveVersions(c, "v1.0: {withdrawn: 2030-01-31, why: it was wrong}", narrow, wide)
	if got := ask(exact); !strings.Contains(got, `"code":"UNSUPPORTED_VERSION"`) || !strings.Contains(got, `"supported":["v1.1"]`) {
		t.Errorf("the withdrawn version: %s", got)
	}
	if got := ask(major); !strings.Contains(got, `"nodes"`) {
		t.Errorf("its major: %s", got)
	}
	c.replace(narrow)
	if got := ask(exact); !strings.Contains(got, `"code":"UNSUPPORTED_VERSION"`) {
		t.Errorf("without versions: %s", got)
	}
	if got := ask(major); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("without versions, its major: %s", got)
	}
}

func TestVersion_ItsSchemaNeedsACredentialAsTheAPIDoes(t *testing.T) {
	c := newChanging(t, server.Config{})
	serveVersions(c, "", narrow)
	for path, want := range map[string]int{
		"/versions": http.StatusOK, "/v1.0/schema.graphql": http.StatusUnauthorized,
		"/v1.0/graphql?query=%7B__typename%7D": http.StatusUnauthorized,
	} {
		if got := c.get(path).Code; got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	hidden := newChangingForAll(t, server.Config{HideIntrospection: true})
	serveVersions(hidden, "", narrow)
	if got := hidden.get("/v1.0/schema.graphql").Code; got != http.StatusForbidden {
		t.Errorf("hidden: %d", got)
	}
}

func TestVersion_ItsOperationsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	core, log := observer.New(zap.InfoLevel)
	c := newChangingForAll(t, server.Config{Metrics: registry, AccessLog: true, Logger: zap.New(core)})
	c.ask(c.Handler, "/graphql", depths)
	if got := c.get("/metrics").Body.String(); strings.Contains(got, "sluice_version_operations_total") {
		t.Error("there is a metric of versions without any")
	}
	serveVersions(c, "", narrow, wide)
	for _, path := range []string{"/graphql", "/v1/graphql", "/v1.1/graphql", "/v1.0/graphql?query=%7B__typename%7D"} {
		if strings.Contains(path, "?") {
			c.get(path)
		} else {
			c.ask(c.Handler, path, depths)
		}
	}
	got := c.get("/metrics").Body.String()
	for _, want := range []string{`{version="unreleased"} 1`, `{version="v1.1"} 2`, `{version="v1.0"} 1`} {
		if !strings.Contains(got, "sluice_version_operations_total"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	var logged []string
	for _, line := range log.FilterMessage("access").All() {
		version, _ := line.ContextMap()["version"].(string)
		logged = append(logged, version)
	}
	if want := []string{"", "unreleased", "v1.1", "v1.1", "v1.0"}; !slices.Equal(logged, want) {
		t.Errorf("the access log has %q", logged)
	}
}

// TestVersion_ACandidateIsServedBesideWhatIsReleased: it has a path of its own alone, and /v1 does not mean it.
func TestVersion_ACandidateIsServedBesideWhatIsReleased(t *testing.T) {
	const none, some = "GRAPHQL_VALIDATION_FAILED", `"nodes"`
	c := newChangingForAll(t, server.Config{})
	for _, step := range []struct {
		states   string
		versions []string
		paths    map[string]string
		list     string
	}{
		{
			"v1.0: {candidate: true}", []string{narrow},
			map[string]string{
				"/graphql": some, "/v1/graphql": some, "/v1.0/graphql": none,
				"/v1.1/graphql": `"supported":["v1.0"]`, "/v2/graphql": `"UNSUPPORTED_VERSION"`,
			},
			`{"newest":null,"unreleased":"/graphql","versions":[{"version":"v1.0","path":"/v1.0/graphql","state":"CANDIDATE"}]}`,
		},
		{
			"v1.1: {candidate: true}", []string{narrow, wide},
			map[string]string{"/graphql": some, "/v1/graphql": none, "/v1.0/graphql": none, "/v1.1/graphql": some},
			`{"newest":"v1.0","unreleased":"/graphql","versions":[{"version":"v1.0","path":"/v1.0/graphql","state":"SERVED"},` +
				`{"version":"v1.1","path":"/v1.1/graphql","state":"CANDIDATE"}]}`,
		},
	} {
		serveVersions(c, step.states, step.versions...)
		for path, want := range step.paths {
			if got := c.ask(c.Handler, path, depths).Body.String(); !strings.Contains(got, want) {
				t.Errorf("%s %s: wanted %s, got %s", step.states, path, want, got)
			}
		}
		if got := strings.TrimSpace(c.get("/versions").Body.String()); got != step.list {
			t.Errorf("%s: %s", step.states, got)
		}
		if got := c.get("/v1.0/schema.graphql").Code; got != http.StatusOK {
			t.Errorf("%s: the schema is answered %d", step.states, got)
		}
	}
}

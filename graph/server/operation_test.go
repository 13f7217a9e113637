package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/server"
)

func TestTheAccessLogNamesEachOperationItsClientAndItsOutcome(t *testing.T) {
	e := newEdge(t, plain, server.Config{AccessLog: true})
	for _, c := range []struct {
		name, body string
		want       map[string]any
	}{
		{"a query", `{"query":"query Names { networks { nodes { metadata { name } } } }"}`,
			map[string]any{"operationName": "Names", "operationType": "query", "kind": "Network", "code": "OK", "client": "shop"}},
		{"through a fragment", `{"query":"query Inside { ...on Query { network(name: \"a\") { id } } }"}`,
			map[string]any{"operationName": "Inside", "kind": "Network", "code": "OK"}},
		{"a refused mutation", `{"query":"mutation Make { deleteNetwork(input: {name: \"A\"}) { state } }"}`,
			map[string]any{"operationName": "Make", "operationType": "mutation", "kind": "Network", "code": "VALIDATION_FAILED"}},
		{"an id", `{"query":"mutation($id: ID!) { deleteResource(input: {id: $id}) { state } }","variables":{"id":"` + kind.GlobalID(backend.Key{Kind: "Network", Namespace: "a", Name: "b"}) + `"}}`,
			map[string]any{"operationName": "", "kind": "Network", "code": "NOT_FOUND"}},
		{"no id", `{"query":"mutation { deleteResource(input: {id: \"x\"}) { state } }"}`, map[string]any{"operationName": "", "kind": "none", "code": "BAD_USER_INPUT"}},
		{"a manifest", `{"query":"mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }","variables":{"m":"spec: {kind: Inner}\nkind: Network\n"}}`,
			map[string]any{"operationName": "", "kind": "Network"}},
		{"a manifest in JSON", `{"query":"mutation($in: ApplyManifestInput!) { applyManifest(input: $in) { outcome } }","variables":{"in":{"manifest":"{\"spec\": {\"kind\": \"Inner\"}, \"kind\": \"Network\"}"}}}`,
			map[string]any{"operationName": "", "kind": "Network"}},
		{"no manifest", `{"query":"mutation { applyManifest(input: {manifest: \"x\"}) { outcome } }"}`, map[string]any{"operationName": "", "kind": "none"}},
		{"a large manifest", `{"query":"mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }","variables":{"m":"kind: Network\n` + strings.Repeat("#", 64<<10) + `"}}`,
			map[string]any{"operationName": "", "kind": "none"}},
		{"of no kind", `{"query":"{ __typename }"}`, map[string]any{"operationName": "", "kind": "none", "code": "OK"}},
		{"no document", `{"query":"{"}`, map[string]any{"code": "GRAPHQL_PARSE_FAILED", "caller": "anonymous"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.log.TakeAll()
			e.do(posted(c.body, "Apollographql-Client-Name", "shop"))
			lines := e.log.FilterMessage("access").All()
			if len(lines) != 1 || lines[0].Level != zapcore.InfoLevel {
				t.Fatalf("%d lines", len(lines))
			}
			fields := lines[0].ContextMap()
			for key, want := range c.want {
				if fields[key] != want {
					t.Errorf("%s: %v, want %v", key, fields[key], want)
				}
			}
			if _, timed := fields["durationSeconds"].(float64); timed == (c.want["operationName"] == nil) || fields["address"] == "" {
				t.Errorf("%v", fields)
			}
		})
	}
	if quiet := newEdge(t, plain, server.Config{}); quiet.do(posted(`{"query":"{ __typename }"}`)).Code != 200 || quiet.log.FilterMessage("access").Len() > 0 {
		t.Error("it is logged without being asked")
	}
}

func TestTheAccessLogHasRequestsThatAreForbidden(t *testing.T) {
	e := newEdge(t, plain, server.Config{AccessLog: true})
	for name, header := range map[string]http.Header{
		"a foreign origin": {"Origin": {"https://evil.example.com"}},
		"an element":       {"Sec-Fetch-Site": {"cross-site"}},
	} {
		before := e.log.FilterMessage("access").Len()
		if w := e.from("203.0.113.9:1", http.MethodPost, "/graphql", header, `{"query":"{ viewer { name } }"}`); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", name, w.Code)
		}
		lines := e.log.FilterMessage("access").All()[before:]
		if len(lines) != 1 || lines[0].ContextMap()["code"] != "FORBIDDEN" || lines[0].ContextMap()["address"] != "203.0.113.9:1" {
			t.Errorf("%s: %v", name, lines)
		}
	}
}

func TestTheAccessLogHasSubscriptionsWhenTheyBegin(t *testing.T) {
	e := newEdge(t, plain, server.Config{AccessLog: true})
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	changes(t, srv.URL, "subscription Listening { networkChanges { type } }")()
	lines := e.log.FilterMessage("access").All()
	if len(lines) != 1 || lines[0].ContextMap()["operationName"] != "Listening" || lines[0].ContextMap()["kind"] != "Network" {
		t.Errorf("%v", lines)
	}
}

func TestMetricsNameTheTypeTheKindAndTheCodeOfOperations(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	e.post(t, `{ networks { nodes { id } } }`, nil)
	e.post(t, `mutation { deleteNetwork(input: {name: "absent"}) { state } }`, nil)
	e.post(t, `{`, nil)
	for _, metric := range []string{
		`sluice_operation_duration_seconds_count{kind="Network",type="query",verb="LIST"}`,
		`sluice_operation_duration_seconds_count{kind="Network",type="mutation",verb="DELETE"}`,
		`sluice_operation_errors_total{code="NOT_FOUND",kind="Network",type="mutation"}`,
		`sluice_operation_errors_total{code="GRAPHQL_PARSE_FAILED",kind="none",type="none"}`,
	} {
		if n := e.metric(t, metric); n != 1 {
			t.Errorf("%s is %v", metric, n)
		}
	}
}

// TestCountersAreTotals as Prometheus wants it: https://prometheus.io/docs/practices/naming.
func TestCountersAreTotals(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	e.post(t, `{ networks { nodes { id } } }`, nil)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "# TYPE sluice_") && (words[3] == "counter") != strings.HasSuffix(words[2], "_total") {
			t.Error(line)
		}
	}
}

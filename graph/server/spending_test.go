package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/server"
)

// rows counts the resources that a store returns, and its calls.
type rows struct {
	backend.Store
	returned, calls atomic.Int64
}

func (s *rows) note(pages ...backend.Page) {
	s.calls.Add(1)
	for _, p := range pages {
		s.returned.Add(int64(len(p.Resources)))
	}
}

func (s *rows) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	s.note(backend.Page{Resources: got})
	return got, err
}

func (s *rows) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := s.Store.Range(ctx, r)
	s.note(page)
	return page, err
}

func (s *rows) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := backend.Ranges(ctx, s.Store, rs)
	s.note(pages...)
	return pages, err
}

// limitAnswer is an answer with the fields of its errors that describe limits.
type limitAnswer struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct {
			Code, Setting, Selection, Outcome, Cursor string
			Limit                                     any
			RetryAfter                                int
			Retryable                                 bool
		}
	}
}

func (e edge) limitsOf(t testing.TB, query string, variables any) (out limitAnswer) {
	t.Helper()
	text := e.post(t, query, variables)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return out
}

// ports fills a store: 1,000 ports of one network, and 1,000 networks in all.
func ports(t testing.TB, cfg server.Config) (edge, *rows) {
	t.Helper()
	var store *rows
	e := newEdge(t, func(s backend.Store) backend.Store {
		store = &rows{Store: s}
		return store
	}, cfg)
	topology(t, e, 1, 1, 1000)
	for i := 1; i < 1000; i++ {
		if got := e.post(t, create, map[string]any{"name": fmt.Sprintf("net-%d", i), "mtu": 1500}); strings.Contains(got, `"errors"`) {
			t.Fatal(got)
		}
	}
	store.returned.Store(0)
	return e, store
}

// aliases repeats a selection under other names.
func aliases(n int, what string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d: %s ", i, what)
	}
	return b.String()
}

// dear are documents that pass all limits of documents and cost much to execute.
func dear() []struct{ name, key, field, query string } {
	const all = `id kind apiVersion metadata { namespace name uid revision generation createdAt updatedAt } spec { managementPolicy resource { networkRef addresses { subnetRef ip } } }`
	long := strings.Repeat("n", 2000) // it is in the path of each error
	return []struct{ name, key, field, query string }{
		{"a page of 1,000 in each of 1,000", "limit-objects", "ports.nodes.network.ports.nodes", `{ ports(first: 1000) { nodes { network { ports(first: 1000) { nodes { id } } } } } }`},
		{"the same by edges", "limit-objects", "ports.edges.node.network.ports.edges", `{ ports(first: 1000) { edges { node { network { ports(first: 1000) { edges { cursor } } } } } } }`},
		{"the same with links", "limit-objects", "ports.nodes.network.ports.nodes", `{ ports(first: 1000) { nodes { network { ports(first: 1000) { nodes { network { id } } } } } } }`},
		{"90 aliases of nodes in a page", "limit-answer", "ports.a", `{ ports(first: 1000) { ` + aliases(90, "nodes { "+all+" }") + `} }`},
		{"90 pages of 1,000", "limit-held", "a", `{ ` + aliases(90, "ports(first: 1000) { nodes { "+all+" } }") + `}`},
		{"90 errors in each of 1,000 places under a long name", "limit-answer", long + ".nodes.a",
			`{ ` + long + `: networks(first: 1000) { nodes { ` + aliases(90, "ports(first: 5000) { totalCount }") + `} } }`},
		{"95 aliases of manifest", "limit-answer", "ports.nodes.a", `{ ports(first: 1000) { nodes { ` + aliases(95, "manifest") + `} } }`},
		{"40 times 20 aliased lists of the schema", "limit-steps", "__schema", `{ __schema { ` + aliases(20, "types { ...T }") + `} } fragment T on __Type { ` + aliases(40, "fields { name }") + `}`},
		{"the schema under long names", "limit-steps", "__schema", `{ __schema { types { fields { ` + strings.Repeat("n", 50_000) + `: name } } } }`},
		{"the schema by types", "limit-steps", "a", `{ ` + aliases(10, "__schema { types { ...T } }") + `} fragment T on __Type { ` + aliases(20, "fields { name description }") + `}`},
		{"99 connections of 1,000 parents", "limit-steps", "networks.nodes.a", `{ networks(first: 1000) { nodes { ` + aliases(99, "ports(first: 0) { totalCount }") + `} } }`},
	}
}

func TestADearOperationIsEndedByTheLimitThatItExceeds(t *testing.T) {
	e, store := ports(t, server.Config{})
	for _, c := range dear() {
		t.Run(c.name, func(t *testing.T) {
			store.returned.Store(0)
			got := e.limitsOf(t, c.query, nil)
			if string(got.Data) != "null" || len(got.Errors) != 1 {
				t.Fatalf("%d errors, data %.200s", len(got.Errors), got.Data)
			}
			err := got.Errors[0]
			if x := err.Extensions; x.Code != "LIMIT_EXCEEDED" || x.Setting != c.key || !strings.HasPrefix(x.Selection, c.field) || x.Limit == nil || len(err.Path) == 0 {
				t.Errorf("%+v", err)
			}
			if !strings.Contains(err.Message, c.key) {
				t.Error(err.Message)
			}
			if n := store.returned.Load(); n > 200_000 {
				t.Errorf("the store returned %d resources", n)
			}
		})
	}
}

func TestOfAQueryThatIsEndedOneErrorIsTold(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Objects: 10}})
	topology(t, e, 3, 3, 1)
	got := e.limitsOf(t, `{ bad: node(id: "rubbish") { id } networks { nodes { id subnets { nodes { id } } } } }`, nil)
	if len(got.Errors) != 1 || string(got.Data) != "null" || got.Errors[0].Extensions.Setting != "limit-objects" || fmt.Sprint(got.Errors[0].Path) != "[networks nodes 2 subnets nodes]" {
		t.Errorf("%s %+v", got.Data, got.Errors)
	}
	if got := e.limitsOf(t, `{ bad: node(id: "rubbish") { id } networks { nodes { id } } }`, nil); len(got.Errors) != 1 || got.Errors[0].Extensions.Setting != "" || !strings.Contains(string(got.Data), "net-2") && len(got.Data) < 50 {
		t.Errorf("within the budget: %s %+v", got.Data, got.Errors)
	}
}

// TestWhatAMutationDidIsToldAlsoWhenItsAnswerIsTooLarge and what comes after it is
// not done.
func TestWhatAMutationDidIsToldAlsoWhenItsAnswerIsTooLarge(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Objects: 10}})
	topology(t, e, 1, 11, 0)
	const change = `upsertNetwork(input: {name: "%s", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: 1400}}}) { network { spec { resource { mtu } } subnets { nodes { id } } } }`
	got := e.limitsOf(t, "mutation { a: "+fmt.Sprintf(change, "other")+" b: "+fmt.Sprintf(change, "net-0")+" c: "+fmt.Sprintf(change, "third")+"}", nil)
	var data struct{ A, B, C any }
	if err := json.Unmarshal(got.Data, &data); err != nil || data.A == nil || data.B != nil || data.C != nil || len(got.Errors) != 2 {
		t.Fatalf("%s %+v", got.Data, got.Errors)
	}
	if b := got.Errors[0]; b.Extensions.Outcome != "APPLIED" || b.Extensions.Setting != "limit-objects" || fmt.Sprint(b.Path) != "[b network subnets nodes]" {
		t.Errorf("%+v", b)
	}
	if c := got.Errors[1]; c.Extensions.Outcome != "" || c.Extensions.Code != "LIMIT_EXCEEDED" || fmt.Sprint(c.Path) != "[c]" || !strings.HasPrefix(c.Message, "not executed: ") {
		t.Errorf("%+v", c)
	}
	if got := e.post(t, `{ changed: network(name: "net-0") { spec { resource { mtu } } } third: network(name: "third") { id } }`, nil); got != `{"data":{"changed":{"spec":{"resource":{"mtu":1400}}},"third":null}}` {
		t.Error(got)
	}
}

// BenchmarkDear measures what the operations cost until they are ended.
func BenchmarkDear(b *testing.B) {
	e, _ := ports(b, server.Config{})
	for _, c := range dear() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.post(b, c.query, nil)
			}
		})
	}
}

func TestWhatAnOperationSpentIsToldToWhoAsks(t *testing.T) {
	e := newEdge(t, plain, server.Config{SlowLog: 1})
	topology(t, e, 2, 3, 0)
	body := `{"query": "query Secret($name: String!) { network(name: $name) { subnets { totalCount nodes { id } } } }", "variables": {"name": "net-1"}, "extensions": {"cost": true}}`
	r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	var got struct {
		Extensions struct{ Cost map[string]int }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	cost := got.Extensions.Cost
	if cost["rows"] != 4 || cost["steps"] < budget.Scan || cost["objects"] != 4 || cost["bytes"] < 100 || cost["held"] < 1000 || cost["events"] != 0 || len(cost) != 6 {
		t.Errorf("%s", w.Body)
	}
	if strings.Contains(e.post(t, "{ __typename }", nil), "cost") {
		t.Error("who has not asked is told, too")
	}
	if n := e.metric(t, `sluice_operation_rows_count`); n < 1 {
		t.Errorf("the metric counts %v", n)
	}
	slow := e.log.FilterMessage("slow operation").FilterField(zap.String("operationName", "Secret")).All()
	if len(slow) != 1 {
		t.Fatalf("%d lines", len(slow))
	}
	if text := fmt.Sprint(slow[0].ContextMap()); strings.Contains(text, "net-1") || strings.Contains(text, "totalCount") || !strings.Contains(text, "rows:4") || !strings.Contains(text, "documentHash") {
		t.Error(text)
	}
}

// TestLongNamesOfFieldsOfTheCoreAreRefusedBeforeTheyAreWritten since nothing ends
// the core on the way: it wrote gigabytes of them.
func TestLongNamesOfFieldsOfTheCoreAreRefusedBeforeTheyAreWritten(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	var names strings.Builder
	for i := range 10 {
		fmt.Fprintf(&names, "%s%d: name ", strings.Repeat("n", 5000), i)
	}
	query := `{ ` + aliases(5, `kinds { fields { ...F } }`) + `} fragment F on KindField { ` + names.String() + `}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := e.limitsOf(t, query, nil)
	runtime.ReadMemStats(&after)
	if len(got.Errors) != 1 || got.Errors[0].Extensions.Setting != "limit-answer" {
		t.Fatalf("%.300s %.300v", got.Data, got.Errors)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 50 {
		t.Errorf("%d MB were allocated", n)
	}
	if got := e.limitsOf(t, `{ `+aliases(20, `kinds { fields { path theNameOfTheField: name } }`)+`}`, nil); len(got.Errors) > 0 {
		t.Errorf("%+v", got.Errors)
	}
}

// TestFieldsOfTheCoreHaveAPrice: what gqlgen executes is charged as it is begun.
func TestFieldsOfTheCoreHaveAPrice(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	got := e.limitsOf(t, `{ `+aliases(90, `kinds { name plural fields { path name type description } }`)+`}`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Extensions.Setting != "limit-steps" {
		t.Errorf("%.300s %.300v", got.Data, got.Errors)
	}
	if got := e.limitsOf(t, `{ `+aliases(3, `kinds { name plural fields { path name type description } }`)+`}`, nil); len(got.Errors) > 0 {
		t.Errorf("%+v", got.Errors)
	}
}

// TestInputsAndConditionsHaveAPrice: what is read and judged by hand is charged in steps,
// as what is read from a store.
func TestInputsAndConditionsHaveAPrice(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Steps: 1_000_000}})
	topology(t, e, 1, 1, 300)
	conditions := make([]any, 50)
	for i := range conditions {
		conditions[i] = map[string]any{"name": map[string]any{"contains": fmt.Sprint("z", i)}}
	}
	labels := make([]any, 2000)
	for i := range labels {
		labels[i] = map[string]any{"key": fmt.Sprint("k", i), "value": "v"}
	}
	network := map[string]any{"name": "n", "dryRun": true, "labels": labels, "spec": map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{}}}
	for name, c := range map[string]struct {
		many, one string
		value     any
	}{
		"conditions of a count": {`query($v: PortFilter) { ` + aliases(90, "ports(first: 0, filter: $v) { totalCount }") + `}`, `query($v: PortFilter) { ports(first: 0, filter: $v) { totalCount } }`, map[string]any{"or": conditions}},
		"values of an input":    {`mutation($v: CreateNetworkInput!) { ` + aliases(90, "createNetwork(input: $v) { dryRun }") + `}`, `mutation($v: CreateNetworkInput!) { createNetwork(input: $v) { dryRun } }`, network},
		"values of a manifest":  {`mutation($v: String!) { ` + aliases(90, "applyManifest(input: {manifest: $v, dryRun: true}) { dryRun }") + `}`, `mutation($v: String!) { applyManifest(input: {manifest: $v, dryRun: true}) { dryRun } }`, "x: [" + strings.Repeat("a,", 2000) + "]"},
		"dependencies":          {`query { ports(first: 300) { nodes { ` + aliases(90, "dependencies { totalCount }") + `} } }`, `query { ports(first: 300) { nodes { dependencies { totalCount } } } }`, nil},
	} {
		got := e.limitsOf(t, c.many, map[string]any{"v": c.value})
		if last := got.Errors; len(last) == 0 || last[len(last)-1].Extensions.Setting != "limit-steps" {
			t.Errorf("%s: %.300v", name, got.Errors)
		}
		if got := e.post(t, c.one, map[string]any{"v": c.value}); strings.Contains(got, "limit-steps") {
			t.Errorf("%s, once: %.300s", name, got)
		}
	}
}

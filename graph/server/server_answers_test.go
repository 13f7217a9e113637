package server_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/server"
)

// inMemory is an edge whose reads are answered from memory. It has 60 networks.
func inMemory(t testing.TB, cfg server.Config) edge {
	t.Helper()
	core, log := observer.New(zap.InfoLevel)
	cfg.Logger = zap.New(core)
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if err := svc.Index().Filled(ctx); err != nil {
		t.Fatal(err)
	}
	cfg.Catalogue = server.Single(svc, kindstest.API(t))
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := edge{Handler: s.Handler(), log: log}
	for i := range 60 {
		e.add(t, fmt.Sprint("net-", i))
	}
	return e
}

func (e edge) add(t testing.TB, name string) {
	t.Helper()
	if got := e.post(t, create, map[string]any{"name": name, "mtu": 1500}); !strings.Contains(got, `"id"`) {
		t.Fatal(got)
	}
}

// list is a query whose answer is worth keeping.
const list = `{ networks(first: 60) { totalCount nodes { id metadata { name revision } } } }`

// outcomes returns the numbers of queries by what became of them.
func outcomes(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "sluice_answers_total":
				out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			case "sluice_answers_bytes":
				out["bytes"] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestAnswers_AreKeptUntilTheyChange(t *testing.T) {
	metrics := prometheus.NewRegistry()
	e := inMemory(t, server.Config{Metrics: metrics, AccessLog: true})
	want := e.post(t, list, nil)
	e.log.TakeAll()
	for range 3 {
		if got := e.post(t, list, nil); got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
	kept := 0
	for _, line := range e.log.TakeAll() {
		if line.ContextMap()["kept"] == true {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d lines of the access log say that the answer was kept; want 2 of 4 requests", kept)
	}
	e.add(t, "another")
	if got := e.post(t, list, nil); !strings.Contains(got, `"totalCount":61`) {
		t.Errorf("after a change: %.200s", got)
	}
	got := outcomes(t, metrics)
	if got["hit"] != 2 || got["new"] != 2 || got["changed"] != 1 || got["bytes"] < float64(len(want)) {
		t.Errorf("metrics: %v", got)
	}
}

func TestAnswers_AreNotKept(t *testing.T) {
	names := slices.Repeat([]string{strings.Repeat("n", 60)}, 100)
	for name, c := range map[string]struct {
		cfg  server.Config
		body map[string]any
		// became is what each of the queries is counted as, empty for nothing.
		became string
	}{
		"without memory for them": {server.Config{AnswersMemory: -1}, map[string]any{"query": list}, ""},
		"of fields written by hand": {server.Config{}, map[string]any{
			"query": `{ kinds { name } networks(first: 60) { nodes { id metadata { name } } } }`,
		}, "unkept"},
		"of what is explained": {server.Config{}, map[string]any{
			"query": list, "extensions": map[string]any{"explain": true},
		}, "unkept"},
		"with errors": {server.Config{}, map[string]any{
			"query": `{ networks(first: 60) { nodes { id } } broken: networks(first: -1) { totalCount } }`,
		}, "unkept"},
		"with long variables": {server.Config{}, map[string]any{
			"query":     `query($f: NetworkFilter) { named: networks(filter: $f) { totalCount } networks(first: 60) { nodes { id } } }`,
			"variables": map[string]any{"f": map[string]any{"name": map[string]any{"in": names}}},
		}, "unkept"},
		"of what the store alone has": {server.Config{}, map[string]any{
			"query": `{ networks(first: 60) { nodes { id dependents { totalCount } } } }`,
		}, "unkept"},
	} {
		t.Run(name, func(t *testing.T) {
			metrics := prometheus.NewRegistry()
			c.cfg.Metrics = metrics
			e := inMemory(t, c.cfg)
			body, err := json.Marshal(c.body)
			if err != nil {
				t.Fatal(err)
			}
			const requests = 4
			for range requests {
				if w := e.do(posted(string(body))); w.Code != http.StatusOK {
					t.Fatal(w.Body)
				}
			}
			for outcome, n := range outcomes(t, metrics) {
				want := 0.0
				if outcome == c.became {
					want = requests
				}
				if n != want {
					t.Errorf("%s: %v, want %v", outcome, n, want)
				}
			}
		})
	}
}

func TestAnswers_OfEqualQueriesAtOnceAreExecutedOnce(t *testing.T) {
	metrics := prometheus.NewRegistry()
	e := inMemory(t, server.Config{Metrics: metrics})
	for range 3 {
		e.post(t, list, nil)
	}
	e.add(t, "another")
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if got := e.post(t, list, nil); !strings.Contains(got, `"totalCount":61`) {
				t.Errorf("%.200s", got)
			}
		})
	}
	all.Wait()
	if got := outcomes(t, metrics); got["new"]+got["changed"] != 3 || got["hit"]+got["shared"] != 100 {
		t.Errorf("metrics: %v; want one execution after the change", got)
	}
}

func TestGet_HasAnEntityTag(t *testing.T) {
	e := inMemory(t, server.Config{})
	ask := func(query string, header ...string) *httptest.ResponseRecorder {
		return e.do(got("query="+url.QueryEscape(query), header...))
	}
	first := ask(list)
	tag := first.Header().Get("ETag")
	if len(tag) != 34 || first.Header().Get("Cache-Control") != "private, no-cache" || !strings.Contains(strings.Join(first.Header().Values("Vary"), ","), "Authorization") {
		t.Errorf("%v", first.Header())
	}
	for range 3 { // executed, and kept
		w := ask(list, "If-None-Match", tag)
		if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != tag {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	for given, want := range map[string]int{
		`"x", W/` + tag: 304, "*": 304, `"x"`: 200, "": 200, tag[:33] + `-gzip"`: 304, tag[:33]: 304, `"` + tag[2:]: 200,
	} {
		w := ask(list, "If-None-Match", given)
		if w.Code != want {
			t.Errorf("%s: %d", given, w.Code)
		}
		if own := w.Header().Get("ETag"); strings.HasSuffix(given, `-gzip"`) && own != given {
			t.Errorf("what the client has is called %s, not %s", own, given)
		}
	}
	zipped := ask(list, "Accept-Encoding", "gzip")
	if got := zipped.Header().Get("ETag"); got != tag[:33]+`-gzip"` || zipped.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%v", zipped.Header())
	}
	zip, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(zip); err != nil || string(text) != first.Body.String() {
		t.Errorf("%v: %.200s", err, text)
	}
	e.add(t, "another")
	if w := ask(list, "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("after a change: %d %v", w.Code, w.Header())
	}
	if w := ask(`{ __schema { queryType { name } } }`); w.Header().Get("ETag") == "" {
		t.Errorf("introspection: %v", w.Header())
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"an error":         ask(`{ networks(first: -1) { totalCount } }`, "If-None-Match", "*"),
		"secrets":          ask(`{ kinds { name } }`, "If-None-Match", "*"),
		"secrets and more": ask(`{ kinds { name } networks { totalCount } }`, "If-None-Match", "*"),
		"an invalid query": ask(`{ nothing }`, "If-None-Match", "*"),
		"an extension":     e.do(got("query="+url.QueryEscape(list)+"&extensions="+url.QueryEscape(`{"cost":true}`), "If-None-Match", "*")),
		"a POST":           e.do(posted(fmt.Sprintf(`{"query": %q}`, list), "If-None-Match", "*")),
	} {
		if w.Code != http.StatusOK || w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", what, w.Code, w.Header())
		}
	}
}

func TestAnswers_OfOneDocumentAreKeptApart(t *testing.T) {
	metrics := prometheus.NewRegistry()
	e := inMemory(t, server.Config{Metrics: metrics})
	ask := func(first int) {
		e.post(t, `query($n: Int) { networks(first: $n) { nodes { id metadata { name } } } }`, map[string]any{"n": first})
	}
	for _, step := range []struct {
		name  string
		first int
		asks  int
		hits  float64
	}{
		{"one is small", 1, 3, 0},
		{"60 are kept once they were asked for twice", 60, 5, 2}, // the first shows that the document has larger answers
		{"one is small still", 1, 2, 2},
		{"60 are kept still", 60, 1, 3},
		{"an error", -1, 2, 3},
		{"does not hide what is kept", 60, 2, 5},
		{"another page", 59, 3, 6},
	} {
		for range step.asks {
			ask(step.first)
		}
		if got := outcomes(t, metrics); got["hit"] != step.hits {
			t.Errorf("%s: %v; want %v hits", step.name, got, step.hits)
		}
	}
}

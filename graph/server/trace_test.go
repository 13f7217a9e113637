package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/traced"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/span"
)

const (
	givenTrace   = "0af7651916cd43dd8448eb211c80319c"
	givenSampled = "00-" + givenTrace + "-b7ad6b7169203331-01"
	givenIgnored = "00-" + givenTrace + "-b7ad6b7169203331-00"
)

// traceID is the form of the id of a trace.
var traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// tracedEdge is a server whose traces are exported if sampled reports that they are recorded.
func tracedEdge(
	t testing.TB, sampled func(parent trace.SpanContext) bool, cfg server.Config,
) (edge, *tracetest.InMemoryExporter) {
	t.Helper()
	exported := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported), sdktrace.WithIDGenerator(span.IDs{}))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	cfg.Tracer = span.NewTracer(provider, func(parent trace.SpanContext, _ trace.TraceID) bool { return sampled(parent) })
	wrap := func(s backend.Store) backend.Store { return traced.New(s, "memory") }
	return newEdge(t, wrap, cfg), exported
}

func always(trace.SpanContext) bool { return true }

// parentBased is a sampler that records nothing by itself.
func parentBased(parent trace.SpanContext) bool { return parent.IsSampled() }

// namesOf returns the names of spans, the ones that ended last first.
func namesOf(spans tracetest.SpanStubs) (out []string) {
	for _, s := range spans {
		out = append(out, s.Name)
	}
	slices.Reverse(out)
	return out
}

// find returns the span of a name.
func find(t testing.TB, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %q in %q", name, namesOf(spans))
	}
	return spans[i]
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

func TestTrace_AQueryHasSpansByTheConventions(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	e.post(t, create, map[string]any{"name": "hidden-name", "mtu": 1400})
	exported.Reset()
	w := e.do(posted(`{"query":"query Find($n: String!) { network(name: $n) { id } }","variables":{"n":"hidden-name"}}`, "User-Agent", "test"))
	spans := exported.GetSpans()
	request := find(t, spans, "POST /graphql")
	operation := find(t, spans, "query")
	read := find(t, spans, "read")
	if request.SpanKind != trace.SpanKindServer || request.Parent.IsValid() ||
		operation.Parent.SpanID() != request.SpanContext.SpanID() || read.Parent.SpanID() != operation.SpanContext.SpanID() {
		t.Errorf("the spans are not below each other: %q", namesOf(spans))
	}
	id := w.Header().Get("X-Request-Id")
	for _, s := range spans {
		if s.SpanContext.TraceID().String() != id {
			t.Errorf("%s is of the trace %s, and the request id is %s", s.Name, s.SpanContext.TraceID(), id)
		}
	}
	got := attributesOf(request)
	for key, want := range map[string]string{
		"http.request.method": "POST", "http.route": "/graphql", "http.response.status_code": "200", "url.scheme": "http",
		"url.path": "/graphql", "network.protocol.version": "1.1",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	got = attributesOf(operation)
	if got["graphql.operation.name"] != "Find" || got["graphql.operation.type"] != "query" || got["sluice.kind"] != "Network" ||
		!regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(got["sluice.document.hash"]) {
		t.Errorf("%v", got)
	}
}

func TestTrace_NoValueIsInASpan(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	ask := func(query string, variables map[string]any) {
		t.Helper()
		if answer := e.post(t, query, variables); !strings.Contains(answer, `"data"`) {
			t.Fatal(answer)
		}
	}
	ask(create, map[string]any{"name": "hidden-name", "mtu": 1437})
	ask(`mutation($in: UpsertNetworkInput!) { upsertNetwork(input: $in) { network { id } } }`, map[string]any{"in": map[string]any{
		"name": "hidden-name", "description": "hidden-text", "labels": []any{map[string]any{"key": "hidden-key", "value": "hidden-label"}},
		"spec": map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "hidden-secret", "cloudName": "hidden-cloud"}, "resource": map[string]any{"mtu": 1437}},
	}})
	ask(`query($f: NetworkFilter) { networks(first: 3, filter: $f) { nodes { id } } }`, map[string]any{"f": map[string]any{"name": map[string]any{"eq": "hidden-name"}}})
	ask(`mutation { deleteNetwork(input: {name: "hidden-name"}) { __typename } }`, nil)
	e.at(http.MethodGet, "/hidden-path?token=hidden-query", "Authorization", "Bearer hidden-token")
	e.at(http.MethodGet, `/graphql?query=query(%24n:String!){network(name:%24n){id}}&variables={"n":"hidden-name"}`)
	spans := exported.GetSpans()
	if len(spans) < 12 {
		t.Errorf("only %q", namesOf(spans))
	}
	for _, s := range spans {
		if text := fmt.Sprint(s.Name, attributesOf(s), s.Status, s.Events); strings.Contains(text, "hidden") || strings.Contains(text, "1437") {
			t.Errorf("%s", text)
		}
	}
}

func TestTrace_AWriteShowsItsVerbAndTheStore(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	e.post(t, create, map[string]any{"name": "a"})
	spans := exported.GetSpans()
	verb := find(t, spans, "CREATE Network")
	store := find(t, spans, "store Apply")
	if verb.Parent.SpanID() != find(t, spans, "mutation").SpanContext.SpanID() || store.Parent.SpanID() != verb.SpanContext.SpanID() {
		t.Errorf("%q", namesOf(spans))
	}
	got := attributesOf(verb)
	if got["sluice.outcome"] != "CREATED" || got["sluice.verb"] != "CREATE" || got["sluice.kind"] != "Network" || got["sluice.resource.uid"] == "" {
		t.Errorf("%v", got)
	}
	exported.Reset()
	e.post(t, create, map[string]any{"name": "a"})
	spans = exported.GetSpans()
	for _, name := range []string{"CREATE Network", "mutation"} {
		if got := attributesOf(find(t, spans, name))["error.type"]; got != "ALREADY_EXISTS" {
			t.Errorf("%s: error.type %q", name, got)
		}
	}
}

func TestTrace_TheParentDecidesWhetherARequestIsRecorded(t *testing.T) {
	e, exported := tracedEdge(t, parentBased, server.Config{})
	for _, c := range []struct {
		header, id string
		recorded   bool
	}{
		{givenSampled, givenTrace, true},
		{givenIgnored, givenTrace, false},
		{"", "", false},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "", false},
	} {
		exported.Reset()
		w := e.do(posted(`{"query":"{ __typename }"}`, "Traceparent", c.header))
		id := w.Header().Get("X-Request-Id")
		spans := exported.GetSpans()
		if !traceID.MatchString(id) || c.id != "" && id != c.id || len(spans) > 0 != c.recorded {
			t.Errorf("%q: request id %s, spans %q", c.header, id, namesOf(spans))
		}
		if !c.recorded {
			continue
		}
		request := find(t, spans, "POST /graphql")
		if request.Parent.SpanID().String() != "b7ad6b7169203331" || request.SpanContext.TraceID().String() != givenTrace {
			t.Errorf("%q: parent %v", c.header, request.Parent)
		}
	}
}

func TestTrace_OneIDFindsARequestEverywhere(t *testing.T) {
	for _, exports := range []bool{false, true} {
		for _, c := range []struct {
			name, requestID, traceparent string
		}{
			{"neither", "", ""}, {"a request id", "req-42", ""}, {"a trace", "", givenSampled}, {"both", "req-42", givenSampled},
		} {
			t.Run(fmt.Sprintf("exports %t, given %s", exports, c.name), func(t *testing.T) {
				e := newEdge(t, plain, server.Config{AccessLog: true})
				if exports {
					e, _ = tracedEdge(t, always, server.Config{AccessLog: true})
				}
				w := e.do(posted(`{"query":"{ network(name: \"\") { id } }"}`, "X-Request-Id", c.requestID, "Traceparent", c.traceparent))
				request, other := w.Header().Get("X-Request-Id"), w.Header().Get("X-Trace-Id")
				whole := request
				if c.requestID != "" {
					whole = other
				}
				if c.requestID != "" && request != c.requestID || c.requestID == "" && other != "" || !traceID.MatchString(whole) ||
					c.traceparent != "" && whole != givenTrace {
					t.Errorf("X-Request-Id %q, X-Trace-Id %q", request, other)
				}
				var answer struct {
					Errors []struct{ Extensions map[string]any }
				}
				if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Errors) != 1 {
					t.Fatalf("%v: %s", err, w.Body)
				}
				got := answer.Errors[0].Extensions
				if got["requestId"] != request || other != "" && got["traceId"] != other || other == "" && got["traceId"] != nil {
					t.Errorf("extensions %v", got)
				}
				lines := e.log.FilterMessage("access").All()
				if len(lines) != 1 {
					t.Fatalf("%d lines", len(lines))
				}
				line := lines[0].ContextMap()
				if line["requestId"] != request || other != "" && line["traceId"] != other || other == "" && line["traceId"] != nil {
					t.Errorf("log %v", line)
				}
			})
		}
	}
}

func TestTrace_ProbesAreNotTraced(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := e.at(http.MethodGet, path); !traceID.MatchString(w.Header().Get("X-Request-Id")) {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	if spans := exported.GetSpans(); len(spans) > 0 {
		t.Errorf("%q", namesOf(spans))
	}
	w := e.at("BREW", "/nowhere")
	request := find(t, exported.GetSpans(), "_OTHER")
	if got := attributesOf(request); got["http.request.method"] != "_OTHER" || got["url.path"] != "" || w.Code < 400 {
		t.Errorf("%v", got)
	}
}

func TestTrace_ARequestThatBreaksOffHasASpan(t *testing.T) {
	for name, c := range map[string]struct {
		begins   bool // whether a part of the answer is sent before
		panicked any
		broken   string
		status   string
		cut      bool
	}{
		"aborted at once":            {false, http.ErrAbortHandler, "aborted", "", true},
		"aborted in an answer":       {true, http.ErrAbortHandler, "aborted", "200", true},
		"a panic before the answer":  {false, "hidden", "panic", "500", false},
		"a panic within the answer":  {true, "hidden", "panic", "500", true},
		"a panic with an error":      {true, errors.New("hidden"), "panic", "500", true},
		"a panic that is comparable": {true, struct{ text string }{"hidden"}, "panic", "500", true},
		"one that is not comparable": {false, []string{"hidden"}, "panic", "500", false},
	} {
		t.Run(name, func(t *testing.T) {
			e, exported := tracedEdge(t, always, server.Config{
				Export: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if c.begins {
						_, _ = w.Write([]byte("a part"))
					}
					panic(c.panicked)
				}),
			})
			w := httptest.NewRecorder()
			cut := func() (out any) {
				defer func() { out = recover() }()
				r := httptest.NewRequest(http.MethodGet, "/export", nil)
				r.Host = "localhost"
				e.ServeHTTP(w, r)
				return nil
			}()
			if c.cut != (cut == http.ErrAbortHandler) || !c.cut && cut != nil {
				t.Errorf("the answer ends with %v", cut)
			}
			if text := w.Body.String(); c.begins && text != "a part" || !c.begins && !c.cut && !strings.Contains(text, "INTERNAL") {
				t.Errorf("answered %s", text)
			}
			request := find(t, exported.GetSpans(), "GET /export")
			got := attributesOf(request)
			if got["error.type"] != c.broken || got["http.response.status_code"] != c.status || request.Status.Code != codes.Error {
				t.Errorf("%v %v", got, request.Status)
			}
			if text := fmt.Sprint(request); strings.Contains(text, "hidden") {
				t.Error(text)
			}
		})
	}
}

func TestTrace_AStreamThatItsClientCutsHasASpan(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	s := httptest.NewServer(e)
	defer s.Close()
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	body := strings.NewReader(`{"query":"subscription { networkChanges { type } }"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/graphql", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cut()
	_ = res.Body.Close()
	s.Close() // waits for the handler
	request := find(t, exported.GetSpans(), "POST /graphql")
	if got := attributesOf(request); got["http.response.status_code"] != "200" || got["error.type"] != "" {
		t.Errorf("%v", got)
	}
}

func TestTrace_HostileHeadersBeginATraceOfTheirOwn(t *testing.T) {
	e, exported := tracedEdge(t, parentBased, server.Config{AccessLog: true})
	long := strings.Repeat("hidden", 8000)
	for name, header := range map[string]http.Header{
		"two traces":           {"Traceparent": {givenSampled, givenSampled}},
		"two in one":           {"Traceparent": {givenSampled + ", " + givenSampled}},
		"capital letters":      {"Traceparent": {strings.ToUpper(givenSampled)}},
		"a version with more":  {"Traceparent": {"00" + givenSampled[2:] + "-hidden"}},
		"the version ff":       {"Traceparent": {"ff" + givenSampled[2:]}},
		"no span":              {"Traceparent": {"00-" + givenTrace + "-0000000000000000-01"}},
		"much":                 {"Traceparent": {long}},
		"a state without":      {"Tracestate": {"hidden=1," + long}},
		"many states":          {"Tracestate": slices.Repeat([]string{"hidden=1"}, 1000)},
		"baggage":              {"Baggage": {"hidden=" + long}},
		"a trace of Zipkin":    {"B3": {givenTrace + "-b7ad6b7169203331-1"}, "X-B3-Sampled": {"1"}},
		"an odd request id":    {"X-Request-Id": {long}},
		"a request id in bits": {"X-Request-Id": {"hidden\r\nSet-Cookie: hidden=1"}},
	} {
		exported.Reset()
		r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(`{"query":"{ __typename }"}`))
		r.Host = "localhost"
		r.Header = header.Clone()
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if id := w.Header().Get("X-Request-Id"); w.Code != http.StatusOK || !traceID.MatchString(id) || id == givenTrace {
			t.Errorf("%s: %d, request id %.40q", name, w.Code, id)
		}
		if spans := exported.GetSpans(); len(spans) > 0 {
			t.Errorf("%s: it decides that %q are recorded", name, namesOf(spans))
		}
		if text := fmt.Sprint(w.Header(), w.Body); strings.Contains(text, "hidden") {
			t.Errorf("%s: answered %.300s", name, text)
		}
	}
	for _, line := range e.log.All() {
		if text := fmt.Sprint(line.Message, line.ContextMap()); strings.Contains(text, "hidden") {
			t.Errorf("%.300s", text)
		}
	}
}

func TestTrace_HostileHeadersAreInNoSpan(t *testing.T) {
	e, exported := tracedEdge(t, always, server.Config{})
	e.do(posted(
		`{"query":"query Hidden_hidden_hidden { __typename }"}`,
		"Traceparent", givenSampled, "Tracestate", "hidden=1", "Baggage", "hidden=1", "X-Request-Id", "req-1",
		"Apollographql-Client-Name", "hidden", "User-Agent", "hidden", "Forwarded", "for=hidden", "Cookie", "hidden=1",
	))
	for _, s := range exported.GetSpans() {
		if state := s.SpanContext.TraceState().String() + s.Parent.TraceState().String(); state != "" {
			t.Errorf("%s has the state %s", s.Name, state)
		}
		if text := fmt.Sprint(s.Name, attributesOf(s), s.Resource); strings.Contains(text, "hidden=") || strings.Contains(text, ":hidden") {
			t.Error(text)
		}
	}
}

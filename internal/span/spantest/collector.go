// Package spantest is a collector of traces for tests. It receives the spans that a gateway exports by OTLP over HTTP.
package spantest

import (
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that a gateway has exported.
type Span struct {
	Name, Kind string
	// TraceID, SpanID and ParentID are hexadecimal. ParentID is empty if there is no parent.
	TraceID, SpanID, ParentID string
	// Links are the links to spans of other traces, in the form TraceID-SpanID.
	Links      []string
	Attributes map[string]string
	Begin, End time.Time
	// Failed reports whether the status of the span is an error.
	Failed bool
	// Service is the attribute service.name of the resource.
	Service string
}

// Collector receives spans. A gateway exports its spans to URL.
type Collector struct {
	URL string

	mu      sync.Mutex // guards all below
	spans   []Span
	grown   chan struct{} // closed and replaced when there are more spans
	refused error         // the error of the last request that is not valid OTLP
}

// New starts a collector. It is stopped at the end of the test.
func New(t testing.TB) *Collector {
	c := &Collector{grown: make(chan struct{})}
	server := httptest.NewServer(c)
	t.Cleanup(func() {
		server.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refused != nil {
			t.Errorf("collector: %v", c.refused)
		}
	})
	c.URL = server.URL
	return c
}

// ServeHTTP receives an export of spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err != nil {
		c.mu.Lock()
		c.refused = err
		c.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.take(request)
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	_, _ = w.Write(answer)
}

// read reads an export of spans, as the specification of OTLP defines it.
func read(r *http.Request) (*collector.ExportTraceServiceRequest, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		return nil, fmt.Errorf("%s %s; POST /v1/traces is wanted", r.Method, r.URL.Path)
	}
	if r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, errors.New("another content type than protobuf")
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	out := new(collector.ExportTraceServiceRequest)
	return out, proto.Unmarshal(raw, out)
}

// take stores the spans of a request.
func (c *Collector) take(request *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.ResourceSpans {
		service := attributesOf(of.Resource.GetAttributes())["service.name"]
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s, service))
			}
		}
	}
	close(c.grown)
	c.grown = make(chan struct{})
}

func spanOf(s *otlp.Span, service string) Span {
	out := Span{
		Name:       s.Name,
		Kind:       strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
		TraceID:    hex.EncodeToString(s.TraceId),
		SpanID:     hex.EncodeToString(s.SpanId),
		ParentID:   hex.EncodeToString(s.ParentSpanId),
		Attributes: attributesOf(s.Attributes),
		Begin:      time.Unix(0, int64(s.StartTimeUnixNano)),
		End:        time.Unix(0, int64(s.EndTimeUnixNano)),
		Failed:     s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR,
		Service:    service,
	}
	for _, link := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(link.TraceId)+"-"+hex.EncodeToString(link.SpanId))
	}
	return out
}

func attributesOf(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			out[a.Key] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_BoolValue:
			out[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			out[a.Key] = a.Value.String()
		}
	}
	return out
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// patience is the maximum time for which Await and AwaitAll wait.
const patience = time.Minute

// Await waits until a trace has spans with all of these names, and returns the spans of the trace.
func (c *Collector) Await(t testing.TB, traceID string, names ...string) []Span {
	t.Helper()
	return c.AwaitAll(t, func(s Span) bool { return s.TraceID == traceID }, names...)
}

// AwaitAll waits until spans for which wanted returns true have all of these names. It returns all spans for which
// wanted returns true.
func (c *Collector) AwaitAll(t testing.TB, wanted func(Span) bool, names ...string) []Span {
	t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		grown := c.grown
		found := slices.DeleteFunc(slices.Clone(c.spans), func(s Span) bool { return !wanted(s) })
		c.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(found, func(s Span) bool { return s.Name == name })
		})
		if len(missing) == 0 {
			return found
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("no spans %q; there are\n%s", missing, Tree(c.Spans()))
		}
	}
}

// Find returns the span with a name. It fails the test unless there is exactly one such span.
func Find(t testing.TB, spans []Span, name string) Span {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != name })
	if len(found) != 1 {
		t.Fatalf("%d spans %q in\n%s", len(found), name, Tree(spans))
	}
	return found[0]
}

// Tree returns the spans as text, with one line for each span, below the line of its parent.
func Tree(spans []Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	var out strings.Builder
	var begin time.Time
	var below func(parent string, depth int)
	write := func(s Span, depth int) {
		_, _ = fmt.Fprintf(
			&out, "%9.3fms %9.3fms  %s%s", milliseconds(s.Begin.Sub(begin)), milliseconds(s.End.Sub(s.Begin)),
			strings.Repeat("  ", depth), s.Name,
		)
		for _, key := range sortedKeys(s.Attributes) {
			_, _ = fmt.Fprintf(&out, " %s=%s", key, s.Attributes[key])
		}
		for _, link := range s.Links {
			_, _ = fmt.Fprintf(&out, " -> %s", link)
		}
		if s.Failed {
			out.WriteString(" FAILED")
		}
		out.WriteByte('\n')
		below(s.SpanID, depth+1)
	}
	below = func(parent string, depth int) {
		for _, s := range spans {
			if s.ParentID == parent {
				write(s, depth)
			}
		}
	}
	for _, s := range spans {
		if s.ParentID == "" || !slices.ContainsFunc(spans, func(o Span) bool { return o.SpanID == s.ParentID }) {
			begin = s.Begin
			_, _ = fmt.Fprintf(&out, "trace %s\n", s.TraceID)
			write(s, 0)
		}
	}
	return out.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

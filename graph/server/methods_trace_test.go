package server_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/span"
)

// tracedMethods serves standard methods, and exports all spans.
func tracedMethods(t *testing.T) (*methods, *tracetest.InMemoryExporter) {
	t.Helper()
	exported := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported), sdktrace.WithIDGenerator(span.IDs{}))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	all := func(trace.SpanContext, trace.TraceID) bool { return true }
	return newMethods(t, server.Config{Tracer: span.NewTracer(provider, all)}), exported
}

// awaitSpan returns a span when it was exported, which may be after the answer.
func awaitSpan(t *testing.T, exported *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, s := range exported.GetSpans() {
			if s.Name == name {
				return s
			}
		}
	}
	t.Fatalf("no span %q in %q", name, namesOf(exported.GetSpans()))
	return tracetest.SpanStub{}
}

func TestMethodsTrace_ACallHasSpansByTheConventions(t *testing.T) {
	m, exported := tracedMethods(t)
	exported.Reset()
	if _, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "hidden"}, "spec": {"width": 3}}}`); err != nil {
		t.Fatal(err)
	}
	request := awaitSpan(t, exported, "POST /sluice.kinds.v1.ShelfService/CreateShelf")
	call := awaitSpan(t, exported, "sluice.kinds.v1.ShelfService/CreateShelf")
	verb := awaitSpan(t, exported, "CREATE Shelf")
	if call.Parent.SpanID() != request.SpanContext.SpanID() || verb.Parent.SpanID() != call.SpanContext.SpanID() {
		t.Errorf("the spans are not below each other: %q", namesOf(exported.GetSpans()))
	}
	got := attributesOf(call)
	for key, want := range map[string]string{
		"rpc.system": "grpc", "rpc.service": "sluice.kinds.v1.ShelfService", "rpc.method": "CreateShelf",
		"rpc.grpc.status_code": "0", "sluice.kind": "Shelf",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if got["sluice.steps"] == "" || got["error.type"] != "" {
		t.Error(got)
	}
	for _, s := range exported.GetSpans() {
		if text := s.Name + strings.Join(values(attributesOf(s)), " "); strings.Contains(text, "hidden") {
			t.Error(text)
		}
	}
	exported.Reset()
	if _, err := m.call("GetShelf", `{"name": "none"}`); connect.CodeOf(err) != connect.CodeNotFound {
		t.Fatal(err)
	}
	got = attributesOf(awaitSpan(t, exported, "sluice.kinds.v1.ShelfService/GetShelf"))
	if got["rpc.grpc.status_code"] != "5" || got["error.type"] != "NOT_FOUND" {
		t.Error(got)
	}
}

func values(of map[string]string) (out []string) {
	for _, value := range of {
		out = append(out, value)
	}
	return out
}

func TestMethodsTrace_ADeliveryIsLinkedToTheWrite(t *testing.T) {
	m, exported := tracedMethods(t)
	stream := m.watch(`{}`)
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	begun := attributesOf(awaitSpan(t, exported, "sluice.kinds.v1.ShelfService/WatchShelves"))
	if begun["rpc.method"] != "WatchShelves" || begun["rpc.grpc.status_code"] != "0" {
		t.Error(begun)
	}
	exported.Reset()
	if _, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3}}}`); err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	write := awaitSpan(t, exported, "CREATE Shelf").SpanContext.TraceID()
	delivery := awaitSpan(t, exported, "deliver")
	if len(delivery.Links) != 1 || delivery.Links[0].SpanContext.TraceID() != write || delivery.SpanContext.TraceID() == write {
		t.Errorf("%+v is not linked to %s", delivery, write)
	}
	got := attributesOf(delivery)
	if got["rpc.method"] != "WatchShelves" || got["sluice.change"] != "ADDED" || got["sluice.write.trace_id"] != write.String() {
		t.Error(got)
	}
}

func TestMethodsTrace_CallsAreMeasuredByMethodAndCode(t *testing.T) {
	m := newMethods(t, server.Config{})
	if _, err := m.call("CreateShelf", `{"shelf": {"metadata": {"name": "a"}, "spec": {"width": 3}}}`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.call("GetShelf", `{"name": "none"}`); connect.CodeOf(err) != connect.CodeNotFound {
			t.Fatal(err)
		}
	}
	stream := m.watch(`{"snapshot": true}`)
	for range 3 { // RESET, SNAPSHOT and IN_SYNC
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
	}
	text := m.at("GET", "/metrics", "Authorization", "Bearer "+m.token).Body.String()
	for _, want := range []string{
		`sluice_operation_duration_seconds_count\{kind="Shelf",type="stream",verb="WATCH"\} 3\n`,
		`sluice_call_duration_seconds_count\{code="ok",method="CreateShelf"\} 1\n`,
		`sluice_call_duration_seconds_count\{code="not_found",method="GetShelf"\} 2\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

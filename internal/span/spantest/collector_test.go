package spantest_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluicegw/sluice/internal/span/spantest"
)

func TestCollector_TakesWhatAnExporterSends(t *testing.T) {
	c := spantest.New(t)
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(c.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	ctx, parent := provider.Tracer("t").Start(t.Context(), "parent")
	_, child := provider.Tracer("t").Start(ctx, "child")
	child.SetAttributes(attribute.Int("size", 3))
	child.End()
	parent.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := c.Await(t, parent.SpanContext().TraceID().String(), "parent", "child")
	found := spantest.Find(t, spans, "child")
	if found.ParentID != parent.SpanContext().SpanID().String() || found.Attributes["size"] != "3" {
		t.Errorf("%+v", found)
	}
}

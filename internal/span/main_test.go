package span_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/internal/leaktest"
	"github.com/sluicegw/sluice/internal/span"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// all returns a tracer that records every request.
func all() *span.Tracer {
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(span.IDs{}))
	return span.NewTracer(provider, func(trace.SpanContext, trace.TraceID) bool { return true })
}

package server_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/span"
)

// discarded is an exporter of spans that go nowhere.
type discarded struct{}

func (discarded) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discarded) Shutdown(context.Context) error                             { return nil }

// tracerOf returns a tracer of a gateway that records a part of the traces; nil for none at all.
func tracerOf(b *testing.B, ratio float64) *span.Tracer {
	b.Helper()
	if ratio == 0 {
		return nil
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(discarded{}), sdktrace.WithIDGenerator(span.IDs{}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
	)
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	root := sdktrace.TraceIDRatioBased(ratio)
	return span.NewTracer(provider, func(_ trace.SpanContext, id trace.TraceID) bool {
		p := sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}
		return root.ShouldSample(p).Decision == sdktrace.RecordAndSample
	})
}

// BenchmarkTraces measures what traces add to the read of one network of 12 fields, which is executed each time:
// without an exporter, with a hundredth of all requests recorded, and with all. How spans are sent is not measured.
func BenchmarkTraces(b *testing.B) {
	unlimited := server.CallerLimits{Steps: math.MaxInt32, Rate: math.MaxInt32}
	for _, ratio := range []float64{0, 0.01, 1} {
		b.Run(fmt.Sprint(100*ratio, "%"), func(b *testing.B) {
			e := inMemory(b, server.Config{Tracer: tracerOf(b, ratio), AnswersMemory: -1, Caller: unlimited})
			serve(b, e, request(oneOf12, map[string]any{"name": "net-7"}))
		})
	}
}

package span

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Observe adds a value to a histogram. If ctx has a recorded span, the exemplar of the value is the id of the span's
// trace.
func Observe(ctx context.Context, histogram prometheus.Observer, value float64) {
	s := Of(ctx)
	with, ok := histogram.(prometheus.ExemplarObserver)
	if !ok || !s.Recording() {
		histogram.Observe(value)
		return
	}
	with.ObserveWithExemplar(value, prometheus.Labels{"trace_id": s.span.SpanContext().TraceID().String()})
}

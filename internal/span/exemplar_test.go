package span_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sluicegw/sluice/internal/span"
)

func TestObserve_TheTraceOfARecordedSpanIsTheExemplar(t *testing.T) {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2}})
	ctx, recorded, _ := all().Request(t.Context(), "s", span.NewTraceparent(), true)
	span.Observe(t.Context(), histogram, 0.5)
	span.Observe(ctx, histogram, 1.5)
	recorded.End()
	span.Observe(ctx, histogram, 0.6)
	var out dto.Metric
	if err := histogram.Write(&out); err != nil {
		t.Fatal(err)
	}
	buckets := out.GetHistogram().GetBucket()
	if e := buckets[0].GetExemplar(); e != nil {
		t.Errorf("without a span there is %v", e)
	}
	labels := buckets[1].GetExemplar().GetLabel()
	id := span.Parse(recorded.Traceparent()).TraceID().String()
	if len(labels) != 1 || labels[0].GetName() != "trace_id" || labels[0].GetValue() != id {
		t.Errorf("the exemplar has %v", labels)
	}
}

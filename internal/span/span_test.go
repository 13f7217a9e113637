package span_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluicegw/sluice/internal/span"
)

func TestDetach_WhatGoesOnLaterIsNotBelowTheSpan(t *testing.T) {
	ctx, recorded := sdktrace.NewTracerProvider().Tracer("t").Start(t.Context(), "s")
	defer recorded.End()
	if !span.Of(ctx).Recording() {
		t.Fatal("there is no span")
	}
	if detached := span.Detach(ctx); span.Of(detached).Recording() {
		t.Error("the span is still there")
	}
	if without := t.Context(); span.Detach(without) != without {
		t.Error("a context without a span is another one")
	}
}

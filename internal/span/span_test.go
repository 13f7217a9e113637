package span_test

import (
	"testing"

	"github.com/sluicegw/sluice/internal/span"
)

func TestDetach_WhatGoesOnLaterIsNotBelowTheSpan(t *testing.T) {
	ctx, recorded, _ := all().Request(t.Context(), "s", span.NewTraceparent(), true)
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

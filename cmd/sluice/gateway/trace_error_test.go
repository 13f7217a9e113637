package gateway

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutURL_TheLogHasNoAddressOfTheCollector(t *testing.T) {
	text := "failed to send to https://collector.example/ingest/s3cret/v1/traces: 401 (body: " + strings.Repeat("x", 1000) + ")"
	got := withoutURL(errors.New(text)).Error()
	if strings.Contains(got, "s3cret") || len(got) > maxExportError+len("...") || !strings.Contains(got, "401") {
		t.Error(got)
	}
}

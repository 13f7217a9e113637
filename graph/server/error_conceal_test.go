package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

// TestConceal_NoErrorQuotesAWriteOnlyValue: neither the error of the value itself, nor one of what it stands in.
func TestConceal_NoErrorQuotesAWriteOnlyValue(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, query := range []string{
		`mutation { createSecret(input: [{name: "a", spec: {stringData: [{key: "pw", value: "s3cret"}]}}]) { secret { id } } }`,
		`mutation { createSecret(input: {name: "a", spec: [{stringData: [{key: "pw", value: "s3cret"}]}]}) { secret { id } } }`,
		`mutation { createSecret(input: {name: "a", spec: {stringData: {key: "pw", value: ["s3cret"]}}}) { secret { id } } }`,
		`mutation { createSecret(input: {name: 1e400, spec: {stringData: [{key: "pw", value: "s3cret"}]}}) { secret { id } } }`,
		`mutation { createSecret(input: {name: "a", dryRun: 12345678901234567890, spec: {stringData: [{key: "pw", value: "s3cret"}]}}) { secret { id } } }`,
		`mutation { patchResource(input: {id: "x", expectedRevision: "1", specJSON: {stringData: {pw: "s3cret"}, n: 12345678901234567890}}) { resource { id } } }`,
		`mutation($v: CreateSecretInput = {name: 1e400, spec: {stringData: [{key: "pw", value: "s3cret"}]}}) { createSecret(input: $v) { secret { id } } }`,
	} {
		if got := e.post(t, query, nil); strings.Contains(got, "s3cret") || !strings.Contains(got, `"errors"`) {
			t.Errorf("%s\n%s", query, got)
		}
	}
	missing := `mutation { createSecret(input: {spec: {stringData: [{key: "pw", value: "s3cret"}]}}) { secret { id } } }`
	if got := e.post(t, missing, nil); !strings.Contains(got, "CreateSecretInput.name") {
		t.Errorf("it does not say what is missing: %s", got)
	}
}

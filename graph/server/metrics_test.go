package server_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/server"
)

// TestMetrics_APathHasOneForm, whatever the method, and no client chooses it.
func TestMetrics_APathHasOneForm(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	paths := []string{
		"/", "/graphql", "/graphql?query={__typename}", "/v1/graphql", "/console/app.js", "/console/data", "/healthz",
		"/readyz?verbose", "/login", "/metrics", "/no/such", "/graphql/more",
	}
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "BREW"} {
			e.at(method, path)
		}
	}
	found := map[string]bool{}
	label := regexp.MustCompile(`sluice_http_request_duration_seconds_count\{.*path="([^"]*)"`)
	for _, match := range label.FindAllStringSubmatch(e.at("GET", "/metrics").Body.String(), -1) {
		found[match[1]] = true
	}
	want := []string{
		"/", "/console/", "/console/data", "/graphql", "/healthz", "/login", "/metrics", "/readyz", "/v1/graphql", "/{$}", "other",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Error(diff)
	}
}

package server_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
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

func TestMetrics_ReadyIsWhatReadyzAnswers(t *testing.T) {
	var reason error
	e := newEdge(t, plain, server.Config{Ready: func(context.Context) error { return reason }})
	for want, err := range map[string]error{"sluice_ready 1\n": nil, "sluice_ready 0\n": errors.New("the store is away")} {
		reason = err
		if got := e.at("GET", "/metrics").Body.String(); !strings.Contains(got, want) {
			t.Errorf("%v: no line %q", err, want)
		}
	}
}

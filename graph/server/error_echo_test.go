package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

// What a client sends may be long, or secret and in the wrong place: an error says
// where it is, and repeats no more of it than a person needs to know it again.
func TestErrorsRepeatNoLongValue(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	long := strings.Repeat("Zq", 100)
	spaced := strings.Repeat("Zq ", 100)
	const known = `cloudCredentialsRef: {secretName: "s", cloudName: "c"}`
	for _, c := range []struct {
		query     string
		variables map[string]any
	}{
		{`{ network(name: ` + long + `) { id } }`, nil},
		{`{ networks(first: "` + spaced + `") { totalCount } }`, nil},
		{`{ networks(first: [1, ` + strings.Repeat(`"Zq", `, 100) + `2]) { totalCount } }`, nil},
		{`{ networks(filter: {name: {eq: {a: "` + spaced + `"}}}) { totalCount } }`, nil},
		{`{ networks(filter: {` + long + `: 5}) { totalCount } }`, nil},
		{`{ networks(orderBy: {field: ` + long + `}) { totalCount } }`, nil},
		{`{ ` + long + ` }`, nil},
		{`{ kinds { ` + long + ` } ...` + long + ` }`, nil},
		{`query($v: ` + long + `) { __typename @` + long + ` }`, nil},
		{`query($` + long + `: Int) { __typename }`, nil},
		{`{ networks(after: "` + long + `") { totalCount } }`, nil},
		{`{ node(id: "` + long + `") { id } resource(kind: "` + long + `", name: "a") { id } }`, nil},
		{`{ network(name: "` + strings.Repeat(long, 2) + `") { id } networks(namespace: "` + long + `") { totalCount } }`, nil},
		{`query($v: Int) { networks(first: $v) { totalCount } }`, map[string]any{"v": long}},
		{`query($v: NetworkOrderField!) { networks(orderBy: {field: $v}) { totalCount } }`, map[string]any{"v": long}},
		{`query($v: NetworkFilter) { networks(filter: $v) { totalCount } }`, map[string]any{"v": map[string]any{long: 5}}},
		{`query($v: Time) { networks(filter: {createdAt: {eq: $v}}) { totalCount } }`, map[string]any{"v": long}},
		{`query($v: Time) { networks(filter: {createdAt: {eq: $v}}) { totalCount } }`, map[string]any{"v": []any{long}}},
		{`mutation($v: String!) { createNetwork(input: {name: "a", clientMutationId: $v, spec: {` + known + `}}) { dryRun } }`, map[string]any{"v": long}},
		{`mutation($v: String!) { createNetwork(input: {name: $v, namespace: $v, description: $v, labels: [{key: $v, value: $v}, {key: $v, value: $v}], spec: {` + known + `, resyncPeriod: $v, resource: {tags: [$v, $v], name: $v, projectRef: $v}}}) { dryRun } }`, map[string]any{"v": strings.Repeat(long, 10)}},
		{`mutation($v: String!) { patchNetwork(input: {name: "a", expectedRevision: $v, spec: {}}) { dryRun } }`, map[string]any{"v": long}},
		{`mutation($v: String!) { applyManifest(input: {manifest: $v}) { dryRun } }`, map[string]any{"v": "apiVersion: " + long + "\nkind: Network\n"}},
		{`mutation($v: String!) { applyManifest(input: {manifest: $v}) { dryRun } }`, map[string]any{"v": "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: a, " + long + ": 1}\nspec: {" + long + ": 1}\n"}},
		{`mutation($v: String!) { applyManifest(input: {manifest: $v}) { dryRun } }`, map[string]any{"v": "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: a}\nspec: {resyncPeriod: &" + long + " [*" + long + "q]}\n"}},
	} {
		got := e.post(t, c.query, c.variables)
		if !strings.Contains(got, `"errors"`) {
			t.Errorf("%.80s: no error: %s", c.query, got)
		}
		for _, run := range []string{long[:130], spaced[:140], strings.Repeat(`\"Zq\", `, 30), strings.Repeat(`\"Zq\",`, 30)} {
			if strings.Contains(got, run) {
				t.Errorf("%.80s: %s", c.query, got)
				break
			}
		}
	}
}

func TestAnErrorOfAVariableSaysWhereInIt(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	got := e.post(t, `mutation($input: CreateNetworkInput!) { createNetwork(input: $input) { dryRun } }`, map[string]any{"input": map[string]any{
		"name": "a", "spec": map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{"tags": []any{"a", 5}}},
	}})
	for _, want := range []string{`"path":["input","spec","resource","tags",1]`, `"field":"input.spec.resource.tags[1]"`, `"variable":"input"`, `"message":"$input.spec.resource.tags[1]: String is accepted here, not this number"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

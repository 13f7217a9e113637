package engine_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAPatchMergesLabelsAndAnnotations(t *testing.T) {
	g := networked(t)
	g.create("Network", "n", map[string]any{})
	patch := func(more string) answer {
		return g.do(fmt.Sprintf(`mutation { patchNetwork(input: {name: "n", expectedRevision: %q, %s}) { network { metadata { labels { key value } annotations { key value } } } } }`, g.revision("Network", "n"), more), nil)
	}
	for _, c := range []struct{ input, want string }{
		{`labels: [{key: "a", value: "1"}, {key: "b", value: ""}], annotations: {key: "x", value: "y z"}`, `"labels":[{"key":"a","value":"1"},{"key":"b","value":""}],"annotations":[{"key":"x","value":"y z"}]`},
		{`labels: [{key: "c", value: "3"}, {key: "a", value: null}, {key: "absent"}]`, `"labels":[{"key":"b","value":""},{"key":"c","value":"3"}],"annotations":[{"key":"x","value":"y z"}]`},
		{`labels: [], annotations: null`, `"labels":[{"key":"b","value":""},{"key":"c","value":"3"}],"annotations":[]`},
		{`labels: null`, `"labels":[],"annotations":[]`},
	} {
		if got := patch(c.input); string(got.Data) != `{"patchNetwork":{"network":{"metadata":{`+c.want+`}}}}` || len(got.Errors) > 0 {
			t.Errorf("%s\ngot  %s %v\nwant %s", c.input, got.Data, got.Errors, c.want)
		}
	}
	for input, want := range map[string]string{
		`labels: [{key: "a", value: "1"}, {key: "a"}]`: "input.labels[1].key: ",
		`annotations: [{key: "-", value: "1"}]`:        "input.annotations[0].key: ",
		`labels: [{key: "a", value: "-"}]`:             "input.labels[0].value: ",
	} {
		if got := refusal(t, patch(input)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", input, got)
		}
	}
}

func TestAnApplyLeavesWhatOthersHaveSet(t *testing.T) {
	g := networked(t)
	apply := func(labels, more, want string) {
		t.Helper()
		got := g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m`+more+`}) { outcome resource { metadata { labels { key value } } } } }`, map[string]any{
			"m": "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata:\n  name: net\n  labels: " + labels + "\nspec:\n  cloudCredentialsRef: {secretName: cloud, cloudName: region-one}\n  resource: {}\n",
		})
		if string(got.Data) != `{"applyManifest":`+want+`}` || len(got.Errors) > 0 {
			t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
		}
	}
	apply(`{a: "1"}`, ``, `{"outcome":"CREATED","resource":{"metadata":{"labels":[{"key":"a","value":"1"}]}}}`)
	if got := g.do(fmt.Sprintf(`mutation { patchNetwork(input: {name: "net", expectedRevision: %q, labels: {key: "l", value: "1"}}) { warnings { code } } }`, g.revision("Network", "net")), nil); len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	apply(`{a: "1"}`, `, fieldManager: null`, `{"outcome":"UNCHANGED","resource":{"metadata":{"labels":[{"key":"a","value":"1"},{"key":"l","value":"1"}]}}}`)
	apply(`{c: "1"}`, `, fieldManager: "ci"`, `{"outcome":"UPDATED","resource":{"metadata":{"labels":[{"key":"a","value":"1"},{"key":"c","value":"1"},{"key":"l","value":"1"}]}}}`)
	apply(`{}`, `, dryRun: true`, `{"outcome":"UPDATED","resource":null}`)
	apply(`{}`, `, fieldManager: "sluice"`, `{"outcome":"UPDATED","resource":{"metadata":{"labels":[{"key":"c","value":"1"},{"key":"l","value":"1"}]}}}`)
	apply(`{e: "1"}`, `, fieldManager: ""`, `{"outcome":"UPDATED","resource":{"metadata":{"labels":[{"key":"e","value":"1"}]}}}`)
	if got := refusal(t, g.do(`mutation { applyManifest(input: {manifest: "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: net}\nspec: {cloudCredentialsRef: {secretName: cloud, cloudName: region-one}, resource: {}}", fieldManager: "`+strings.Repeat("m", 65)+`"}) { outcome } }`, nil)); !strings.HasPrefix(got, "input.fieldManager: ") {
		t.Error(got)
	}
}

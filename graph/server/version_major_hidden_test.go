package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

// TestMajors_TheOlderOneShowsNothingOfTheNewer asks by every root field for what the newer major has alone.
func TestMajors_TheOlderOneShowsNothingOfTheNewer(t *testing.T) {
	text, identities := token(t)
	c := openChangingOn(t, openMemory(t), server.Config{Identities: identities})
	c.token = text
	catalogue, svc := c.withFolders(major2, "", majors1and2())
	g, err := c.server.Prepare(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	c.server.Replace(g)
	c.run(svc)
	c.bind(svc, "admin")
	const spec = `{cost: 1, hiddenText: "hiddenvalue", shade: HIDDENSHADE, hiddenRef: "h", case: {label: "l", hiddenLabel: "hiddenvalue"}, parts: [{size: 1, hiddenSize: 424242}], slots: [{name: "x", hiddenSize: 424242}]}`
	for _, mutation := range []string{
		`createThing(input: {name: "a", spec: ` + spec + `}) { thing { id } }`,
		`createHidden(input: {name: "h", spec: {thingRef: "a"}}) { hidden { id } }`,
		`patchThingStatus(input: {name: "a", status: {hiddenState: "hiddenvalue", sold: true}}) { thing { id } }`,
		`createSafe(input: {name: "s", spec: {holder: "me", code: "1", hiddenCode: "hiddenvalue"}}) { safe { id } }`,
	} {
		c.answered("/v2/graphql", "mutation { "+mutation+" }")
	}
	var ids struct {
		Data struct{ Hidden, Thing struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(c.answered("/v2/graphql", `{ hidden(name: "h") { id } thing(name: "a") { id } }`)), &ids); err != nil {
		t.Fatal(err)
	}
	id, thing := ids.Data.Hidden.ID, ids.Data.Thing.ID
	whole := c.answered("/v2/graphql", `{ thing(name: "a") { specJSON statusJSON } }`)
	for _, probe := range []string{
		`{ node(id: "` + id + `") { id } }`,
		`{ nodes(ids: ["` + id + `", "` + thing + `"]) { id } }`,
		`{ resource(kind: "Hidden", name: "h") { kind } }`,
		`{ resource(kind: "hid", name: "h") { kind } }`,
		`{ resources(kind: "Hidden") { nodes { kind } } }`,
		`{ resources(kind: "Thing") { nodes { kind specJSON statusJSON manifest(format: JSON) } } }`,
		`{ dependencyTree(id: "` + id + `") { truncated } }`,
		`{ access(kind: "Hidden") }`,
		`{ access(kind: "Thing", name: "a") }`,
		`{ access }`,
		`{ accessGrants(verb: GET, kind: "Hidden") { role } }`,
		`{ reveal(kind: "Hidden", name: "h") { __typename } }`,
		`{ reveal(kind: "Safe", name: "s") { values { path value } } }`,
		`{ unreadables(kind: "Hidden") { __typename } }`,
		`{ namespaces { nodes { name counts { kind count } } } }`,
		`{ kinds { name plural shortNames verbs filterableFields { path } columns { path } references { path kind inverse } } }`,
		`mutation { deleteResource(input: {id: "` + id + `", dryRun: true}) { state } }`,
		`mutation { patchResource(input: {id: "` + id + `", expectedRevision: "1-1", specJSON: {thingRef: null}}) { resource { kind } } }`,
		`mutation { updateResourceStatus(input: {id: "` + id + `", expectedRevision: "1-1", statusJSON: {}}) { resource { kind } } }`,
		`mutation { updateKind(input: {kind: "Hidden", controlled: true}) { __typename } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Hidden\nmetadata: {name: h}\nspec: {}"}) { outcome } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v2\nkind: Thing\nmetadata: {name: a}\nspec: {}"}) { outcome } }`,
		`{ hidden(name: "h") { id } }`,
		`{ __type(name: "Hidden") { name } }`,
		`{ __type(name: "ThingSpec") { fields { name type { name kind } } } }`,
		`{ __schema { types { name } } }`,
		`{ thing(name: "a") { specJSON statusJSON manifest metadata { labels { key } } spec { price colour box { label code } parts { size } slots { name size } } status { sold } } }`,
		`{ thing(name: "a") { spec { hiddenText } } }`,
		`{ things { totalCount nodes { metadata { name } specJSON shelf { id } rack { id } } } }`,
		`{ things(filter: {spec: {hiddenText: {eq: "hiddenvalue"}}}) { totalCount } }`,
		`{ things(orderBy: [{field: SPEC_HIDDEN_TEXT}]) { totalCount } }`,
		`{ thingsSummary(by: ["spec.hiddenText"]) { groups { count } } }`,
		`{ thingsSummary(by: ["spec.hiddenRef"]) { groups { count } } }`,
		`{ safe(name: "s") { specJSON manifest spec { owner } } }`,
		`mutation { createThing(input: {name: "n", dryRun: true, spec: {hiddenText: "x"}}) { thing { specJSON } } }`,
		`mutation { upsertThing(input: {name: "n", dryRun: true, spec: {price: 1}}) { preview { specJSON } } }`,
		`mutation { patchResource(input: {id: "` + thing + `", dryRun: true, expectedRevision: "1-1", specJSON: {hiddenText: null}}) { resource { specJSON } } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {hiddenText: x, box: {hiddenLabel: x}}"}) { outcome } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {price: 4, parts: [{size: 1}]}"}) { outcome preview { specJSON manifest } warnings { message } } }`,
	} {
		for _, path := range []string{"/v1/graphql", "/v1.0/graphql"} {
			got := masked(c.ask(c.Handler, path, probe).Body.String())
			echoed := got
			for _, word := range []string{"Hidden", "hid", "hidden", "hiddenText", "hiddenLabel", "hiddenRef", "HIDDEN_TEXT"} { // what the probe names
				if strings.Contains(probe, word) {
					echoed = strings.ReplaceAll(echoed, word, "")
				}
			}
			switch {
			case strings.Contains(got, "INTERNAL"), strings.Contains(got, "hiddenvalue"), strings.Contains(got, "424242"):
				t.Errorf("%s %s\n  %s", path, probe, got)
			case strings.Contains(strings.ToLower(strings.ReplaceAll(echoed, "HIDDENSHADE", "")), "hidden"): // a value is passed on
				t.Errorf("%s %s\n  names what is hidden: %s", path, probe, got)
			case strings.Contains(got, "cost"), strings.Contains(got, "shade\""), strings.Contains(got, "holder"), strings.Contains(got, "Specification"):
				t.Errorf("%s %s\n  names the newer major: %s", path, probe, got)
			}
		}
	}
	if got := c.answered("/v2/graphql", `{ thing(name: "a") { specJSON statusJSON } }`); got != whole {
		t.Errorf("a probe has changed %s to %s", whole, got)
	}
	for _, write := range []string{
		`updateThing(input: {name: "a", expectedRevision: "R", spec: {price: 2, box: {label: "m"}, parts: [{size: 1}], slots: [{name: "x", size: 3}]}}) { thing { specJSON } }`,
		`patchThing(input: {name: "a", expectedRevision: "R", spec: {price: 3}}) { thing { specJSON } }`,
		`patchResource(input: {id: "` + thing + `", expectedRevision: "R", specJSON: {price: 4}}) { resource { specJSON } }`,
		`applyManifest(input: {manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {price: 5, box: {label: l}, parts: [{size: 1}], slots: [{name: x}, {name: y}]}"}) { outcome }`,
		`updateThingStatus(input: {name: "a", expectedRevision: "R", status: {sold: false}}) { thing { statusJSON } }`,
		`updateSafe(input: {name: "s", expectedRevision: "S", spec: {owner: "you", pin: "p"}}) { safe { specJSON } }`,
	} {
		var safe struct {
			Data struct {
				Safe struct{ Metadata struct{ Revision string } }
			}
		}
		if err := json.Unmarshal([]byte(c.answered("/v1/graphql", `{ safe(name: "s") { metadata { revision } } }`)), &safe); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`"R"`, `"`+c.thingRevision("/v1/graphql", "a")+`"`, `"S"`, `"`+safe.Data.Safe.Metadata.Revision+`"`).Replace(write)
		if got := c.answered("/v1/graphql", "mutation { "+text+" }"); strings.Contains(got, "hidden") {
			t.Errorf("%s\n  %s", write, got)
		}
		got := c.answered("/v2/graphql", `{ thing(name: "a") { specJSON statusJSON } reveal(kind: "Safe", name: "s") { values { path value } } }`)
		for _, want := range []string{`"hiddenText":"hiddenvalue"`, `"hiddenRef":"h"`, `"hiddenLabel":"hiddenvalue"`, `"hiddenSize":424242,"size":1`, `"hiddenSize":424242,"name":"x"`, `"hiddenState":"hiddenvalue"`, `"path":"spec.hiddenCode"`, `"path":"spec.code"`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\n  has lost %s: %s", write, want, got)
			}
		}
	}
	if got := c.answered("/v1/graphql", `mutation { deleteThing(input: {name: "a", dryRun: true}) { state } }`); !strings.Contains(got, "PENDING") {
		t.Errorf("a kind of the newer major does not guard: %s", got)
	}
	if got := c.answered("/v1/graphql", `{ reveal(kind: "Safe", name: "s") { values { path value } } }`); !strings.Contains(got, `{"path":"spec.pin","value":"p"}`) {
		t.Error(got)
	}
	if got := c.answered("/v2/graphql", `{ reveal(kind: "Safe", name: "s") { values { path } } }`); strings.Contains(got, "pin") {
		t.Error(got)
	}
}

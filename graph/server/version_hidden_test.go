package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestVersion_AnswersAsAnOlderGateway: what a version cannot name is for every root field what a gateway with the catalogue
// of the version does not know.
func TestVersion_AnswersAsAnOlderGateway(t *testing.T) {
	v := newVersioned(t)
	for _, mutation := range []string{
		`createThing(input: {name: "a", spec: {price: 1, hiddenText: "hiddenvalue", colour: HIDDENCOLOUR, hiddenRef: "h", box: {label: "l", hiddenLabel: "hiddenvalue"}, parts: [{size: 1, hiddenSize: 424242}], slots: [{name: "x", hiddenSize: 424242}]}}) { created }`,
		`createThing(input: {name: "b", spec: {price: 2}}) { created }`,
		`createHidden(input: {name: "h", spec: {thingRef: "a"}}) { created }`,
		`createSafe(input: {name: "s", spec: {owner: "me", code: "1", hiddenCode: "hiddenvalue"}}) { created }`,
		`createPlain(input: {name: "p", expiresAt: "2030-01-31T00:00:00Z", spec: {size: 1, hiddenLabel: "hiddenvalue"}}) { created }`,
	} {
		v.newest("mutation { " + strings.Replace(mutation, "{ created }", "{ warnings { message } }", 1) + " }")
	}
	id, thing, plain := v.id("hidden", "h"), v.id("thing", "a"), v.id("plain", "p")
	for _, probe := range []string{
		// By the name of the kind or its id.
		`{ node(id: "` + id + `") { id } }`,
		`{ nodes(ids: ["` + id + `"]) { id } }`,
		`{ resource(kind: "Hidden", name: "h") { kind } }`,
		`{ resource(kind: "hid", name: "h") { kind } }`,
		`{ resource(kind: "hiddens", name: "h") { kind } }`,
		`{ resources(kind: "Hidden") { nodes { kind } } }`,
		`{ resources(kind: "Thing") { nodes { kind specJSON statusJSON manifest(format: JSON) } } }`,
		`{ dependencyTree(id: "` + id + `") { truncated } }`,
		`{ dependencyTree(id: "` + thing + `") { root { id } dependencies { id } dependents { id } truncated } }`,
		`{ access(kind: "Hidden") }`,
		`{ access(kind: "Thing", name: "a") }`,
		`{ access }`,
		`{ accessGrants(verb: GET, kind: "Hidden") { role } }`,
		`{ accessGrants(verb: GET, kind: "Thing", name: "a") { role users groups } }`,
		`{ reveal(kind: "Hidden", name: "h") { __typename } }`,
		`{ reveal(kind: "Safe", name: "s") { values { path value } } }`,
		`{ unreadables(kind: "Hidden") { __typename } }`,
		`{ namespaces { nodes { name counts { kind count } } } }`,
		`{ kinds { name plural shortNames subKinds expires verbs allowed filterableFields { path } columns { path } references { path kind inverse } } }`,
		`mutation { deleteResource(input: {id: "` + id + `", dryRun: true}) { state } }`,
		`mutation { patchResource(input: {id: "` + id + `", expectedRevision: "1-1", specJSON: {thingRef: null}}) { resource { kind } } }`,
		`mutation { updateResourceStatus(input: {id: "` + id + `", expectedRevision: "1-1", statusJSON: {}}) { resource { kind } } }`,
		`mutation { updateKind(input: {kind: "Hidden", controlled: true}) { __typename } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Hidden\nmetadata: {name: h}\nspec: {}"}) { outcome } }`,
		`{ hidden(name: "h") { id } }`,
		`{ __type(name: "Hidden") { name } }`,
		`{ __type(name: "ThingSpec") { fields { name type { name kind } } } }`,
		`{ __type(name: "Colour") { enumValues { name } } }`,
		// What the derived schema does not say: short names, sub-kinds, verbs without fields, and expiry.
		`{ resource(kind: "hiddenpl", name: "p") { kind } }`,
		`{ resource(kind: "pl", name: "p") { kind allowed manifest conditions { type } } }`,
		`{ access(kind: "Plain") }`,
		`mutation { updateKind(input: {kind: "Plain", controlled: true}) { kind { name } } }`,
		`mutation { patchResource(input: {id: "` + plain + `", expectedRevision: "1-1", addFinalizers: ["a/b"]}) { resource { kind } } }`,
		`mutation { patchResource(input: {id: "` + plain + `", expectedRevision: "1-1", expiresAt: null}) { resource { kind } } }`,
		`mutation { createPlain(input: {name: "n", dryRun: true, subKind: "HiddenSub", spec: {}}) { dryRun } }`,
		`mutation { createPlain(input: {name: "n", dryRun: true, subKind: "Old", spec: {}}) { dryRun } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Plain\nmetadata: {name: n}\nsubKind: HiddenSub\nspec: {}"}) { outcome } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Plain\nmetadata: {name: p, expiresAt: null}\nspec: {}"}) { outcome } }`,
		// Fields, values and what leads to them.
		`{ thing(name: "a") { specJSON statusJSON manifest metadata { labels { key } } spec { price colour box { label } parts { size } slots { name size } } status { sold } } }`,
		`{ thing(name: "a") { spec { hiddenText } } }`,
		`{ thing(name: "a") { dependents { totalCount nodes { kind name } } dependencies { totalCount nodes { kind name path state resource { kind } } } blockedBy { totalCount nodes { kind name resource { kind } } } allowed } }`,
		`{ things { totalCount nodes { metadata { name } specJSON } } }`,
		`{ things(filter: {spec: {hiddenText: {eq: "hiddenvalue"}}}) { totalCount } }`,
		`{ things(orderBy: [{field: SPEC_HIDDEN_TEXT}]) { totalCount } }`,
		`{ thingsSummary(by: ["spec.price"]) { groups { count } } }`,
		`{ thingsSummary(by: ["spec.hiddenText"]) { groups { count } } }`,
		`{ thingsSummary(by: ["spec.hiddenRef"]) { groups { count } } }`,
		`{ safe(name: "s") { specJSON manifest spec { owner } } }`,
		`mutation { createThing(input: {name: "n", dryRun: true, spec: {hiddenText: "x"}}) { thing { specJSON } } }`,
		`mutation { createThing(input: {name: "n", dryRun: true, spec: {colour: HIDDENCOLOUR}}) { thing { specJSON } } }`,
		`mutation { upsertThing(input: {name: "n", dryRun: true, spec: {price: 1}}) { thing { specJSON } } }`,
		`mutation { patchResource(input: {id: "` + thing + `", dryRun: true, expectedRevision: "1-1", specJSON: {hiddenText: null}}) { resource { specJSON } } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {hiddenText: x, box: {hiddenLabel: x}}"}) { outcome } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: n}\nspec: {colour: HIDDENCOLOUR}"}) { outcome } }`,
		`mutation { applyManifest(input: {dryRun: true, manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {price: 4, parts: [{size: 1}]}"}) { outcome preview { specJSON manifest } warnings { message } } }`,
		`mutation { deleteThing(input: {name: "a", dryRun: true}) { state blockedBy { totalCount nodes { kind name resource { kind } } } thing { specJSON } } }`,
	} {
		want := masked(v.ask(v.older, "/graphql", probe).Body.String())
		got := masked(v.ask(v.newer, "/v1.0/graphql", probe).Body.String())
		if got != want {
			t.Errorf("%s\n  an older gateway: %s\n  the version:      %s", probe, want, got)
		}
		if strings.Contains(got, "INTERNAL") {
			t.Errorf("%s\n  %s", probe, got)
		}
		if strings.Contains(got, "hiddenvalue") || strings.Contains(got, "424242") {
			t.Errorf("%s\n  shows what is hidden: %s", probe, got)
		}
	}
}

// id returns the id of a resource.
func (v *versioned) id(field, name string) string {
	v.Helper()
	var out struct {
		Data struct{ Resource struct{ ID string } }
	}
	got := v.newest(fmt.Sprintf(`{ resource: %s(name: %q) { id } }`, field, name))
	if err := json.Unmarshal([]byte(got), &out); err != nil || out.Data.Resource.ID == "" {
		v.Fatalf("%s %v", got, err)
	}
	return out.Data.Resource.ID
}

// TestVersion_WritesKeepWhatTheyCannotName compares what the newest API reads after a write by a version and after the same
// write by an older gateway.
func TestVersion_WritesKeepWhatTheyCannotName(t *testing.T) {
	v := newVersioned(t)
	whole := `price: 1, hiddenText: "h", hiddenRef: "h", colour: HIDDENCOLOUR, box: {label: "l", hiddenLabel: "h"}, ` +
		`parts: [{size: 1, hiddenSize: 7}, {size: 2, hiddenSize: 8}], slots: [{name: "x", hiddenSize: 7}]`
	for i, write := range []string{
		`updateThing(input: {name: "NAME", expectedRevision: "REVISION", spec: {price: 2, colour: RED, box: {label: "m"}, parts: [{size: 2}], slots: [{name: "x", size: 3}]}}) { thing { specJSON } }`,
		`updateThing(input: {name: "NAME", expectedRevision: "REVISION", spec: {}}) { thing { specJSON } }`,
		`patchThing(input: {name: "NAME", expectedRevision: "REVISION", spec: {price: 3, box: {label: null}, parts: [{size: 1}]}}) { thing { specJSON } }`,
		`patchResource(input: {id: "ID", expectedRevision: "REVISION", specJSON: {price: 4, box: null}}) { resource { specJSON } }`,
		`applyManifest(input: {manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: NAME}\nspec: {price: 5, slots: [{name: x}, {name: y}]}"}) { outcome resource { specJSON } }`,
		`updateThingStatus(input: {name: "NAME", expectedRevision: "REVISION", status: {sold: true}}) { thing { statusJSON } }`,
		`patchThing(input: {name: "NAME", expectedRevision: "REVISION", labels: [{key: "a", value: "b"}]}) { thing { specJSON } }`,
		`updateSafe(input: {name: "NAME", expectedRevision: "SAFE", spec: {owner: "you"}}) { safe { specJSON } }`,
		`updateSafe(input: {name: "NAME", expectedRevision: "SAFE", spec: {owner: "you", code: "2"}}) { safe { specJSON } }`,
		`patchSafe(input: {name: "NAME", expectedRevision: "SAFE", spec: {code: null}}) { safe { specJSON } }`,
		`deleteThing(input: {name: "NAME"}) { state thing { specJSON } }`,
	} {
		var answers, states [2]string
		for j, h := range []struct {
			name, path string
		}{{"older", "/graphql"}, {"newer", "/v1.0/graphql"}} {
			name := fmt.Sprintf("%s-%d", h.name, i)
			v.newest(fmt.Sprintf(`mutation { createThing(input: {name: %q, spec: {%s}}) { clientMutationId } }`, name, whole))
			v.newest(fmt.Sprintf(`mutation { createSafe(input: {name: %q, spec: {owner: "me", code: "1", hiddenCode: "h"}}) { clientMutationId } }`, name))
			status := fmt.Sprintf(`mutation { patchThingStatus(input: {name: %q, status: {hiddenState: "h"}}) { clientMutationId } }`, name)
			v.newest(status)
			text := strings.NewReplacer(
				"NAME", name, "ID", v.id("thing", name), "REVISION", v.revision("thing", name), "SAFE", v.revision("safe", name),
			).Replace(write)
			handler := v.older
			if j == 1 {
				handler = v.newer
			}
			answers[j] = strings.ReplaceAll(masked(v.ask(handler, h.path, "mutation { "+text+" }").Body.String()), name, "NAME")
			states[j] = strings.ReplaceAll(v.newest(fmt.Sprintf(
				`{ thing(name: %q) { specJSON statusJSON metadata { generation } } safe(name: %q) { specJSON } reveal(kind: "Safe", name: %q) { values { path value } } }`,
				name, name, name)), name, "NAME")
		}
		if answers[0] != answers[1] || strings.Contains(answers[1], "errors") || strings.Contains(answers[1], "hiddenText") {
			t.Errorf("%s\n  an older gateway: %s\n  the version:      %s", write, answers[0], answers[1])
		}
		if states[0] != states[1] {
			t.Errorf("%s\n  after an older gateway: %s\n  after the version:      %s", write, states[0], states[1])
		}
		if !strings.HasPrefix(write, "delete") && !strings.Contains(states[1], `"hiddenText":"h"`) || !strings.Contains(states[1], "spec.hiddenCode") {
			t.Errorf("%s\n  lost what is hidden: %s", write, states[1])
		}
	}
}

// TestVersion_ItsManifestsLeaveResourcesUnchanged: a manifest of a version has no more than the version can name, or is
// data that it passes on, so applying it changes nothing.
func TestVersion_ItsManifestsLeaveResourcesUnchanged(t *testing.T) {
	v := newVersioned(t)
	v.newest(`mutation { createThing(input: {name: "a", spec: {price: 1, hiddenText: "h", colour: HIDDENCOLOUR, box: {hiddenLabel: "h"}, slots: [{name: "x", hiddenSize: 1}]}}) { clientMutationId }
		createSafe(input: {name: "a", spec: {owner: "me", code: "1", hiddenCode: "h"}}) { clientMutationId }
		createPlain(input: {name: "a", subKind: "HiddenSub", expiresAt: "2030-01-31T00:00:00Z", spec: {hiddenLabel: "h"}}) { clientMutationId } }`)
	for _, kind := range []string{"Thing", "Safe", "Plain"} {
		for _, format := range []string{"YAML", "JSON"} {
			var out struct {
				Data struct{ Resource struct{ Manifest string } }
			}
			got := v.ask(v.newer, "/v1.0/graphql", fmt.Sprintf(`{ resource(kind: %q, name: "a") { manifest(format: %s) } }`, kind, format))
			if err := json.Unmarshal(got.Body.Bytes(), &out); err != nil {
				t.Fatal(err)
			}
			apply := fmt.Sprintf(`mutation { applyManifest(input: {manifest: %q}) { outcome } }`, out.Data.Resource.Manifest)
			answer := v.ask(v.newer, "/v1.0/graphql", apply).Body.String()
			if want := `{"data":{"applyManifest":{"outcome":"UNCHANGED"}}}`; answer != want {
				t.Errorf("%s\n%s", out.Data.Resource.Manifest, answer)
			}
		}
	}
}

// revision returns the revision of a resource.
func (v *versioned) revision(field, name string) string {
	v.Helper()
	var out struct {
		Data struct {
			Resource struct{ Metadata struct{ Revision string } }
		}
	}
	got := v.newest(fmt.Sprintf(`{ resource: %s(name: %q) { metadata { revision } } }`, field, name))
	if err := json.Unmarshal([]byte(got), &out); err != nil {
		v.Fatal(err)
	}
	return out.Data.Resource.Metadata.Revision
}

func TestVersion_WritesAreJudgedByTheWholeKind(t *testing.T) {
	v := newVersioned(t)
	v.newest(`mutation { createThing(input: {name: "a", spec: {price: 1, hiddenText: "h"}}) { clientMutationId } b: createThing(input: {name: "b", spec: {price: 1}}) { clientMutationId } }`)
	for name, ok := range map[string]bool{"a": false, "b": true} {
		got := v.ask(v.newer, "/v1.0/graphql", fmt.Sprintf(
			`mutation { patchThing(input: {name: %q, expectedRevision: %q, spec: {price: 60}}) { thing { spec { price } } } }`, name, v.revision("thing", name))).Body.String()
		if strings.Contains(got, "VALIDATION_FAILED") == ok || !ok && !strings.Contains(got, "spec: dear") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestVersion_AHiddenKindGuards(t *testing.T) {
	v := newVersioned(t)
	v.newest(`mutation { createThing(input: {name: "a", spec: {price: 1}}) { clientMutationId } createHidden(input: {name: "h", spec: {thingRef: "a"}}) { clientMutationId } }`)
	got := v.ask(v.newer, "/v1.0/graphql", `mutation { deleteThing(input: {name: "a"}) { state } }`).Body.String()
	if want := `{"data":{"deleteThing":{"state":"PENDING"}}}`; got != want {
		t.Error(got)
	}
}

func TestVersion_StreamsShowWhatItHas(t *testing.T) {
	v := newVersioned(t)
	v.changing.url = v.url
	for _, subscription := range []string{
		`subscription { resourceChanges { type resource { kind specJSON manifest } } }`,
		`subscription { resourceChanges(snapshot: true) { type resource { kind specJSON } } }`,
		`subscription { thingChanges { type thing { specJSON spec { box { label } } } } }`,
	} {
		w := v.dialAt("/v1.0/graphql")
		w.begin("1", subscription, nil)
		for {
			m := w.read()
			if m.Type != "next" {
				t.Fatalf("%s: %s %s", subscription, m.Type, m.Payload)
			}
			if strings.Contains(string(m.Payload), "IN_SYNC") {
				break
			}
		}
		v.newest(`mutation { createHidden(input: {name: "h", spec: {}}) { clientMutationId } createThing(input: {name: "a", spec: {hiddenText: "h", box: {label: "l", hiddenLabel: "h"}}}) { clientMutationId } }`)
		m := w.read()
		text := string(m.Payload)
		if !strings.Contains(text, "ADDED") || !strings.Contains(text, `"label":"l"`) || strings.Contains(strings.ToLower(text), "hidden") {
			t.Errorf("%s: %s", subscription, text)
		}
		v.newest(`mutation { deleteHidden(input: {name: "h"}) { state } deleteThing(input: {name: "a"}) { state } }`)
	}
	w := v.dialAt("/v1.0/graphql")
	w.begin("1", `subscription { resourceChanges(kinds: ["Hidden"]) { type } }`, nil)
	if m := w.read(); !strings.Contains(string(m.Payload), `kind \"Hidden\" is not known`) {
		t.Errorf("%s %s", m.Type, m.Payload)
	}
}

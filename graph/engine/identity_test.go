package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds"
)

func TestAResourceIsNamedByItsIDAsByItsName(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	spec := `{cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}`
	for _, create := range []string{`createProject(input: {name: "p", spec: %s}) { project { id } }`, `createNetwork(input: {namespace: "team", name: "n", spec: %s}) { network { id } }`} {
		if got := g.do(`mutation { `+fmt.Sprintf(create, spec)+` }`, nil); len(got.Errors) > 0 {
			t.Fatal(got.Errors)
		}
	}
	network := kind.GlobalID(backend.Key{Kind: "Network", Namespace: "team", Name: "n"})
	project := kind.GlobalID(backend.Key{Kind: "Project", Namespace: "default", Name: "p"})
	revision := func() string {
		got := g.do(`query($id: ID) { network(id: $id) { metadata { revision } } }`, map[string]any{"id": network})
		return strings.Split(string(got.Data), `"`)[7]
	}
	for _, c := range []struct{ query, want string }{
		{`query($id: ID) { network(id: $id) { metadata { namespace name } } }`, `{"network":{"metadata":{"namespace":"team","name":"n"}}}`},
		{`query($id: ID) { resource(kind: "networks", id: $id) { metadata { name } } }`, `{"resource":{"metadata":{"name":"n"}}}`},
		{`mutation($id: ID, $r: String!) { updateNetwork(input: {id: $id, expectedRevision: $r, spec: ` + spec + `}) { network { metadata { name } } } }`, `{"updateNetwork":{"network":{"metadata":{"name":"n"}}}}`},
		{`mutation($id: ID, $r: String!) { patchNetwork(input: {id: $id, expectedRevision: $r, spec: {resource: {mtu: 1500}}}) { network { spec { resource { mtu } } } } }`, `{"patchNetwork":{"network":{"spec":{"resource":{"mtu":1500}}}}}`},
		{`mutation($id: ID, $r: String!) { updateNetworkStatus(input: {id: $id, expectedRevision: $r, status: {cloudId: "x"}}) { network { status { cloudId } } } }`, `{"updateNetworkStatus":{"network":{"status":{"cloudId":"x"}}}}`},
		{`mutation($id: ID, $r: String) { deleteNetwork(input: {id: $id, expectedRevision: $r}) { network { metadata { name } } state } }`, `{"deleteNetwork":{"network":{"metadata":{"name":"n"}},"state":"DELETED"}}`},
	} {
		vars := map[string]any{"id": network}
		if strings.Contains(c.query, "$r") {
			vars["r"] = revision()
		}
		if got := g.do(c.query, vars); string(got.Data) != c.want || len(got.Errors) > 0 {
			t.Errorf("%s\ngot  %s %v\nwant %s", c.query, got.Data, got.Errors, c.want)
		}
	}
	for _, c := range []struct{ query, field, says string }{
		{`query($id: ID) { network(id: $id, name: "n") { id } }`, "", "id and name exclude each other"},
		{`query($id: ID) { network(id: $id, namespace: "team") { id } }`, "namespace", "leave namespace out"},
		{`query($id: ID, $ns: String = "team") { network(id: $id, namespace: $ns) { id } }`, "namespace", "leave namespace out"},
		{`query($id: ID) { subnet(id: $id) { id } }`, "id", "is that of a resource of kind Network, not of kind Subnet"},
		{`query($id: ID) { resource(kind: "Subnet", id: $id) { id } }`, "id", "not of kind Subnet"},
		{`query { network { id } }`, "", "give id, or name"},
		{`query { network(id: "") { id } }`, "id", "is not an id of this API"},
		{`mutation { deleteNetwork(input: {id: "rubbish"}) { state } }`, "input.id", "is not an id of this API"},
		{`mutation { deleteNetwork(input: {}) { state } }`, "input", "give id, or name"},
		{`mutation($id: ID) { deleteNetwork(input: {id: $id, name: "n"}) { state } }`, "input", "exclude each other"},
		{`mutation($id: ID) { deleteNetwork(input: {id: $id, namespace: "team"}) { state } }`, "input.namespace", "leave namespace out"},
		{`mutation { deleteNetwork(input: {id: "` + project + `"}) { state } }`, "input.id", "not of kind Network"},
		{`subscription($id: ID) { networkChanges(id: $id, name: "n") { type } }`, "", "exclude each other"},
		{`subscription($id: ID) { networkChanges(id: $id, namespace: "n") { type } }`, "namespace", "leave namespace out"},
		{`subscription($id: ID) { subnetChanges(id: $id) { type } }`, "id", "not of kind Subnet"},
		{`subscription($id: ID) { resourceChanges(id: $id, kinds: ["Network"]) { type } }`, "kinds", "leave kinds out"},
		{`subscription { resourceChanges(kinds: ["Network", "Nothing"]) { type } }`, "kinds[1]", "is not known"},
	} {
		got := g.first(c.query, map[string]any{"id": network})
		if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, c.says) {
			t.Errorf("%s: %v", c.query, got.Errors)
			continue
		}
		if field, _ := got.Errors[0].Extensions["field"].(string); field != c.field {
			t.Errorf("%s: field %q; want %q", c.query, field, c.field)
		}
	}
	// A namespace that is null, or not defined, is none.
	if got := g.do(`query($id: ID, $ns: String) { network(id: $id, namespace: $ns) { id } project(id: "`+project+`", namespace: null) { metadata { name } } }`, map[string]any{"id": network}); string(got.Data) != `{"network":null,"project":{"metadata":{"name":"p"}}}` || len(got.Errors) > 0 {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}

func TestAStreamFollowsTheResourceOfAnID(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	for _, name := range []string{"a", "b"} {
		if got := g.do(`mutation { createService(input: {name: "`+name+`", spec: {}}) { service { id } } }`, nil); len(got.Errors) > 0 {
			t.Fatal(got.Errors)
		}
	}
	b := kind.GlobalID(backend.Key{Kind: "Service", Name: "b"})
	for _, stream := range []string{
		`subscription($id: ID) { event: serviceChanges(id: $id, snapshot: true) { type of: service { metadata { name } } } }`,
		`subscription($id: ID) { event: resourceChanges(id: $id, snapshot: true) { type of: resource { metadata { name } } } }`,
	} {
		events := g.events(stream, map[string]any{"id": b}, 3)
		want := `{"event":{"type":"RESET","of":null}} {"event":{"type":"SNAPSHOT","of":{"metadata":{"name":"b"}}}} {"event":{"type":"IN_SYNC","of":null}}`
		if got := strings.Join(events, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestResourcesOfAnyKindAreFilteredAndOrderedByWhatAllKindsHave(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	for _, name := range []string{"a", "b", "c"} {
		if got := g.do(`mutation { createService(input: {name: "`+name+`", labels: [{key: "x", value: "`+name+`"}], spec: {}}) { service { id } } }`, nil); len(got.Errors) > 0 {
			t.Fatal(got.Errors)
		}
	}
	query := `query($f: ResourceFilter, $o: [ResourceOrder!]) { resources(kind: "Service", filter: $f, orderBy: $o) { totalCount nodes { metadata { name } } } }`
	got := g.do(query, map[string]any{
		"f": map[string]any{"labels": []any{map[string]any{"key": "x", "in": []any{"a", "c"}}}, "not": map[string]any{"name": map[string]any{"eq": "z"}}},
		"o": []any{map[string]any{"field": "NAME", "direction": "DESC"}},
	})
	if want := `{"resources":{"totalCount":2,"nodes":[{"metadata":{"name":"c"}},{"metadata":{"name":"a"}}]}}`; string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	got = g.do(query, map[string]any{"f": map[string]any{"name": map[string]any{}}})
	if len(got.Errors) != 1 || got.Errors[0].Extensions["field"] != "filter.name" {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
	events := g.events(`subscription { event: resourceChanges(filter: {name: {in: ["b", "c"]}}, snapshot: true) { type of: resource { metadata { name } } } }`, nil, 4)
	want := `{"event":{"type":"RESET","of":null}} {"event":{"type":"SNAPSHOT","of":{"metadata":{"name":"b"}}}} {"event":{"type":"SNAPSHOT","of":{"metadata":{"name":"c"}}}} {"event":{"type":"IN_SYNC","of":null}}`
	if got := strings.Join(events, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAWarningSaysWhichValueOfTheInputItIsAbout(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	got := g.do(`mutation { createToken(input: {name: "t", subKind: "robot", spec: {serviceRef: "a", otherRefs: ["b"]}}) { warnings { code message path field } } }`, nil)
	want := `{"createToken":{"warnings":[{"code":"DEPRECATED","message":"spec.otherRefs is deprecated: name them in \"grants\"","path":["input","spec","otherRefs"],"field":"input.spec.otherRefs"},` +
		`{"code":"WAITING","message":"Waiting for Service/a to be created","path":["input","spec","serviceRef"],"field":"input.spec.serviceRef"},` +
		`{"code":"WAITING","message":"Waiting for Service/b to be created","path":["input","spec","otherRefs"],"field":"input.spec.otherRefs"}]}}`
	if string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	manifest := "apiVersion: example.org/v1\nkind: Token\nsubKind: robot\nmetadata: {name: u}\nspec: {serviceRef: a, otherRefs: [b, b]}\n"
	got = g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { warnings { path } } }`, map[string]any{"m": strings.Replace(manifest, ", b]", "]", 1)})
	if want := `{"applyManifest":{"warnings":[{"path":["input","manifest","spec","otherRefs"]},{"path":["input","manifest","spec","serviceRef"]},{"path":["input","manifest","spec","otherRefs"]}]}}`; string(got.Data) != want {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	got = g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": manifest})
	if len(got.Errors) != 1 || got.Errors[0].Extensions["field"] != "input.manifest.spec.otherRefs[1]" {
		t.Errorf("%v", got.Errors)
	}
}

func TestAnApplyIgnoresARevisionOrExpectsOne(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	const manifest = "apiVersion: example.org/v1\nkind: Service\nmetadata: {name: a, revision: 1-1}\nspec: {}\n"
	apply := func(more string) answer {
		return g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m`+more+`}) { outcome } }`, map[string]any{"m": manifest})
	}
	if got := apply(""); len(got.Errors) != 1 || got.Errors[0].Extensions["field"] != "input.manifest.metadata.revision" {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
	if got := apply(`, ignoreRevision: true, expectedRevision: "1-1"`); len(got.Errors) != 1 || got.Errors[0].Extensions["field"] != "input.ignoreRevision" {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
	if got := apply(`, ignoreRevision: true`); string(got.Data) != `{"applyManifest":{"outcome":"CREATED"}}` {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
	if got := apply(`, ignoreRevision: null`); len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, `revision "1-1" is expected`) {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}

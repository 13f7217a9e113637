package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/schema"
)

// networked is a gateway of the catalogue of networks.
func networked(t *testing.T) *gateway { return newGateway(t, networks(t), nil) }

// networks is the embedded catalogue, in which nothing refers to the Secret with its
// credentials.
func networks(t *testing.T) *kinds.Schema {
	t.Helper()
	v1, err := fs.Sub(schema.Files, "v1")
	if err != nil {
		t.Fatal(err)
	}
	texts, err := kinds.Files(v1, "schema/v1")
	if err != nil {
		t.Fatal(err)
	}
	const reference = `@ref(kind: "Secret", as: "secret", guarded: true)`
	if !strings.Contains(texts["managed.graphqls"], reference) {
		t.Fatal("the credentials of managed kinds are referred to in another way")
	}
	texts["managed.graphqls"] = strings.ReplaceAll(texts["managed.graphqls"], reference, "@constraint(maxLength: 253)")
	catalogue, err := kinds.ReadTexts(texts, "schema/v1")
	if err != nil {
		t.Fatal(err)
	}
	return catalogue
}

// wants compares an answer without errors.
func (g *gateway) wants(query, want string) {
	g.t.Helper()
	if got := g.do(query, nil); string(got.Data) != want || len(got.Errors) > 0 {
		g.t.Errorf("%s\ngot  %s %v\nwant %s", query, got.Data, got.Errors, want)
	}
}

// refusal is the one error of an answer: its code and where.
func refusal(t *testing.T, got answer) string {
	t.Helper()
	if len(got.Errors) != 1 {
		return fmt.Sprint(len(got.Errors), " errors: ", got.Errors, string(got.Data))
	}
	return fmt.Sprint(got.Errors[0].Extensions["field"], ": ", got.Errors[0].Message)
}

// revision is that of a resource now.
func (g *gateway) revision(of, name string) string {
	g.t.Helper()
	res, err := g.svc.Reader.Get(g.t.Context(), kind.Identity{Kind: of, Name: name})
	if err != nil || res == nil {
		g.t.Fatal(res, err)
	}
	return res.Stored.Revision.String()
}

const others = `{ nodes { kind name path state guarded resource { metadata { name } } } totalCount }`

func TestAResourceShowsWhatItReliesOnAndWhatReliesOnIt(t *testing.T) {
	g := networked(t)
	g.create("Port", "early", map[string]any{"networkRef": "n", "securityGroupRefs": []any{"y", "x"}})
	g.create("Network", "n", map[string]any{})
	g.create("SecurityGroup", "x", map[string]any{})
	g.create("Port", "p", map[string]any{"networkRef": "n", "securityGroupRefs": []any{"y", "x"}, "addresses": []any{map[string]any{"subnetRef": "s"}, map[string]any{"subnetRef": "s"}}})
	g.wants(`{ port(name: "p") { dependencies `+others+` } }`, `{"port":{"dependencies":{"nodes":[`+
		`{"kind":"Network","name":"n","path":"spec.resource.networkRef","state":"BOUND","guarded":true,"resource":{"metadata":{"name":"n"}}},`+
		`{"kind":"Subnet","name":"s","path":"spec.resource.addresses.subnetRef","state":"MISSING","guarded":true,"resource":null},`+
		`{"kind":"SecurityGroup","name":"x","path":"spec.resource.securityGroupRefs","state":"BOUND","guarded":true,"resource":{"metadata":{"name":"x"}}},`+
		`{"kind":"SecurityGroup","name":"y","path":"spec.resource.securityGroupRefs","state":"MISSING","guarded":true,"resource":null}],"totalCount":4}}}`)
	g.wants(`{ port(name: "early") { dependencies(first: 1) { nodes { resourceId kind namespace name state } pageInfo { hasNextPage hasPreviousPage } } } }`,
		`{"port":{"dependencies":{"nodes":[{"resourceId":"AQJOZXR3b3JrAAJkZWZhdWx0AAJuAA","kind":"Network","namespace":"default","name":"n","state":"NOT_READY"}],"pageInfo":{"hasNextPage":true,"hasPreviousPage":false}}}}`)
	g.wants(`{ network(name: "n") { dependents `+others+` blockedBy { nodes { name } totalCount } } }`, `{"network":{"dependents":{"nodes":[`+
		`{"kind":"Port","name":"early","path":"spec.resource.networkRef","state":"NOT_READY","guarded":true,"resource":{"metadata":{"name":"early"}}},`+
		`{"kind":"Port","name":"p","path":"spec.resource.networkRef","state":"BOUND","guarded":true,"resource":{"metadata":{"name":"p"}}}],"totalCount":2},`+
		`"blockedBy":{"nodes":[{"name":"p"}],"totalCount":1}}}`)
	g.wants(`mutation { deleteNetwork(input: {name: "n"}) { state } }`, `{"deleteNetwork":{"state":"PENDING"}}`)
	g.wants(`{ port(name: "early") { dependencies(first: 1) { nodes { state } } } network(name: "n") { dependents { nodes { name state } } } }`,
		`{"port":{"dependencies":{"nodes":[{"state":"DELETING"}]}},"network":{"dependents":{"nodes":[{"name":"early","state":"DELETING"},{"name":"p","state":"BOUND"}]}}}`)
	g.wants(`{ resources(kind: "Port", filter: {name: {eq: "p"}}) { nodes { dependencies(last: 1) { edges { node { name resource { id } } } } ... on Port { deep: dependencies(first: 1) { nodes { resource { blockedBy { edges { node { name } } } } } } } } } }`,
		`{"resources":{"nodes":[{"dependencies":{"edges":[{"node":{"name":"y","resource":null}}]},"deep":{"nodes":[{"resource":{"blockedBy":{"edges":[{"node":{"name":"p"}}]}}}]}}]}}`)
}

func TestATreeOfDependenciesHasTheStatesOfItsReferences(t *testing.T) {
	g := networked(t)
	g.create("Port", "early", map[string]any{"networkRef": "n"})
	g.create("Network", "n", map[string]any{"projectRef": "gone"})
	g.create("Port", "p", map[string]any{"networkRef": "m"})
	g.create("Network", "m", map[string]any{})
	g.create("Port", "q", map[string]any{"networkRef": "m"})
	g.wants(`{ dependencyTree(id: "AQJOZXR3b3JrAAJkZWZhdWx0AAJuAA") { root { state } dependencies { name state } dependents { name state } } }`,
		`{"dependencyTree":{"root":{"state":null},"dependencies":[{"name":"gone","state":"MISSING"}],"dependents":[{"name":"early","state":"NOT_READY"}]}}`)
	g.wants(`{ dependencyTree(id: "AQJOZXR3b3JrAAJkZWZhdWx0AAJtAA", direction: DEPENDENTS) { dependents { name state guarded } } }`,
		`{"dependencyTree":{"dependents":[{"name":"p","state":"NOT_READY","guarded":true},{"name":"q","state":"BOUND","guarded":true}]}}`)
}

func TestADeletionSaysWhatItWaitsFor(t *testing.T) {
	g := networked(t)
	g.create("Network", "n", map[string]any{})
	for i := range 5 {
		g.create("Subnet", fmt.Sprint("s", i), map[string]any{"networkRef": "n", "cidr": fmt.Sprintf("10.0.%d.0/24", i), "ipVersion": 4})
	}
	const blockers = `blockedBy(first: 2) { nodes { kind name path state resource { ... on Subnet { network { metadata { name } } } } } totalCount pageInfo { hasNextPage } }`
	shown := `"blockedBy":{"nodes":[{"kind":"Subnet","name":"s0","path":"spec.resource.networkRef","state":"BOUND","resource":{"network":{"metadata":{"name":"n"}}}},{"kind":"Subnet","name":"s1","path":"spec.resource.networkRef","state":"BOUND","resource":{"network":{"metadata":{"name":"n"}}}}],"totalCount":5,"pageInfo":{"hasNextPage":true}}`
	g.wants(`mutation { deleteNetwork(input: {name: "n", dryRun: true}) { state dryRun deletedNetworkId network { metadata { deletionRequestedAt } } `+blockers+` } }`,
		`{"deleteNetwork":{"state":"PENDING","dryRun":true,"deletedNetworkId":null,"network":null,`+shown+`}}`)
	g.wants(`mutation { deleteNetwork(input: {name: "n"}) { state dryRun deletedNetworkId network { metadata { deletionRequestedAt } } `+blockers+` } }`,
		`{"deleteNetwork":{"state":"PENDING","dryRun":false,"deletedNetworkId":null,"network":{"metadata":{"deletionRequestedAt":"2026-01-02T03:04:05.678Z"}},`+shown+`}}`)
	got := g.do(`mutation { deleteNetwork(input: {name: "n"}) { blockedBy(first: 3) { edges { cursor node { name } } pageInfo { endCursor } } } }`, nil)
	_, rest, _ := strings.Cut(string(got.Data), `"endCursor":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	g.wants(fmt.Sprintf(`mutation { deleteNetwork(input: {name: "n"}) { blockedBy(first: 3, after: %q) { nodes { name } pageInfo { hasNextPage hasPreviousPage } } } }`, cursor),
		`{"deleteNetwork":{"blockedBy":{"nodes":[{"name":"s3"},{"name":"s4"}],"pageInfo":{"hasNextPage":false,"hasPreviousPage":true}}}}`)
	got = g.do(`mutation { deleteNetwork(input: {name: "n"}) { blockedBy(first: -1) { totalCount } } }`, nil)
	if refused := refusal(t, got); !strings.Contains(refused, "first is -1") || got.Errors[0].Extensions["outcome"] == nil {
		t.Errorf("%s %v", refused, got.Errors)
	}
	for i := range 5 {
		g.wants(fmt.Sprintf(`mutation { deleteSubnet(input: {name: "s%d"}) { state blockedBy { totalCount nodes { resourceId } } } }`, i), `{"deleteSubnet":{"state":"DELETED","blockedBy":{"totalCount":0,"nodes":[]}}}`)
	}
	g.wants(`mutation { deleteNetwork(input: {name: "n", dryRun: true}) { state deletedNetworkId blockedBy { totalCount } } }`, `{"deleteNetwork":{"state":"DELETED","deletedNetworkId":null,"blockedBy":{"totalCount":0}}}`)
	g.wants(`mutation { deleteNetwork(input: {name: "n"}) { state deletedNetworkId blockedBy { totalCount } } }`, `{"deleteNetwork":{"state":"DELETED","deletedNetworkId":"AQJOZXR3b3JrAAJkZWZhdWx0AAJuAA","blockedBy":{"totalCount":0}}}`)
}

func TestFinalizersAreSetAndRemovedThroughTheAPI(t *testing.T) {
	g := networked(t)
	g.create("Network", "n", map[string]any{})
	patch := func(more string) answer {
		return g.do(fmt.Sprintf(`mutation { patchNetwork(input: {name: "n", expectedRevision: %q, %s}) { network { metadata { finalizers deletionRequestedAt } } } }`, g.revision("Network", "n"), more), nil)
	}
	shows := func(got answer, finalizers, deletion string) {
		t.Helper()
		want := `{"patchNetwork":{"network":{"metadata":{"finalizers":` + finalizers + `,"deletionRequestedAt":` + deletion + `}}}}`
		if string(got.Data) != want || len(got.Errors) > 0 {
			t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
		}
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprint("f", i))
	}
	for _, c := range []struct{ input, want string }{
		{`addFinalizers: ["a", "not a key"]`, `input.addFinalizers[1]: `},
		{`removeFinalizers: ["a", "b", "a"]`, `input.removeFinalizers[2]: metadata.removeFinalizers[2]: repeats the finalizer "a"`},
		{`addFinalizers: ["a"], removeFinalizers: ["b", "a"]`, `input.removeFinalizers[1]: metadata.removeFinalizers[1]: the finalizer "a" is to be added, too`},
		{`addFinalizers: [` + strings.Join(many, ",") + `]`, `input.addFinalizers: metadata.addFinalizers: must be at most 64, are 65`},
	} {
		if got := refusal(t, patch(c.input)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\ngot  %s\nwant %s", c.input, got, c.want)
		}
	}
	shows(patch(`description: "d", addFinalizers: null`), `[]`, `null`)
	shows(patch(`addFinalizers: ["b.org/x", "c"], removeFinalizers: ["absent"]`), `["b.org/x","c"]`, `null`)
	shows(patch(`description: "e"`), `["b.org/x","c"]`, `null`)
	update := func() string {
		t.Helper()
		got := g.do(fmt.Sprintf(`mutation { updateNetwork(input: {name: "n", expectedRevision: %q, spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {}}}) { network { metadata { finalizers } } } }`, g.revision("Network", "n")), nil)
		return string(got.Data)
	}
	shows(patch(`addFinalizers: ["b.org/x", "a"], removeFinalizers: ["c"]`), `["b.org/x","a"]`, `null`)
	if got := update(); got != `{"updateNetwork":{"network":{"metadata":{"finalizers":["b.org/x","a"]}}}}` {
		t.Error(got)
	}
	g.wants(`mutation { deleteNetwork(input: {name: "n"}) { state deletedNetworkId network { status { conditions { type message } } } blockedBy { totalCount } } }`,
		`{"deleteNetwork":{"state":"FINALIZING","deletedNetworkId":null,"network":{"status":{"conditions":[`+
			`{"type":"Available","message":"Waiting for finalizer b.org/x to be removed\nWaiting for finalizer a to be removed"},`+
			`{"type":"Progressing","message":"Waiting for finalizer b.org/x to be removed\nWaiting for finalizer a to be removed"}]}},"blockedBy":{"totalCount":0}}}`)
	requested := `"2026-01-02T03:04:05.678Z"`
	for _, more := range []string{`addFinalizers: ["c"]`, `removeFinalizers: ["b.org/x"], description: "x"`, `description: "x"`, `removeFinalizers: ["a"], spec: {resource: {mtu: 1500}}`} {
		if got := patch(more); len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "being deleted") {
			t.Errorf("%s: %s %v", more, got.Data, got.Errors)
		}
	}
	shows(patch(`removeFinalizers: ["b.org/x"]`), `["a"]`, requested)
	if got := patch(`removeFinalizers: ["a"]`); len(got.Errors) > 0 {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}

func TestManifestsPassOverFinalizers(t *testing.T) {
	g := networked(t)
	const manifest = "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata:\n  name: net\n  finalizers: [openstack.k-orc.cloud/network]\n  deletionTimestamp: null\nspec:\n  cloudCredentialsRef: {secretName: cloud, cloudName: region-one}\n  resource: {mtu: 1500}\n"
	got := g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome warnings { message } resource { metadata { finalizers } } } }`, map[string]any{"m": manifest})
	if want := `{"applyManifest":{"outcome":"CREATED","warnings":[],"resource":{"metadata":{"finalizers":[]}}}}`; string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	if got := g.do(fmt.Sprintf(`mutation { patchNetwork(input: {name: "net", expectedRevision: %q, addFinalizers: ["a"]}) { network { id } } }`, g.revision("Network", "net")), nil); len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	got = g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome resource { metadata { finalizers } manifest } } }`, map[string]any{"m": manifest})
	if text := string(got.Data); !strings.Contains(text, `"outcome":"UNCHANGED","resource":{"metadata":{"finalizers":["a"]}`) || strings.Contains(text, `finalizers:`) {
		t.Errorf("%s %v", text, got.Errors)
	}
}

func TestTheResourceOfAnEventShowsItsDependencies(t *testing.T) {
	g := networked(t)
	g.create("Network", "n", map[string]any{})
	g.create("Subnet", "s", map[string]any{"networkRef": "n", "cidr": "10.0.0.0/24", "ipVersion": 4})
	events := g.events(`subscription { subnetChanges(snapshot: true) { type subnet { dependencies { nodes { name state resource { ... on Network { blockedBy { totalCount } } } } } } } }`, nil, 3)
	want := `{"subnetChanges":{"type":"SNAPSHOT","subnet":{"dependencies":{"nodes":[{"name":"n","state":"BOUND","resource":{"blockedBy":{"totalCount":1}}}]}}}}`
	if events[1] != want {
		t.Errorf("got  %s\nwant %s", events[1], want)
	}
}

func TestAKindIsGivenToAController(t *testing.T) {
	g := networked(t)
	g.wants(`mutation { updateKind(input: {clientMutationId: "m", kind: "networks", controlled: true}) { clientMutationId kind { name controlled } } }`,
		`{"updateKind":{"clientMutationId":"m","kind":{"name":"Network","controlled":true}}}`)
	g.wants(`mutation { createNetwork(input: {name: "n", spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {}}}) { network { status { conditions { type status } } } } }`,
		`{"createNetwork":{"network":{"status":{"conditions":[{"type":"Available","status":"False"},{"type":"Progressing","status":"True"}]}}}}`)
	g.wants(`mutation { updateKind(input: {kind: "Network", controlled: false}) { kind { controlled } } }`, `{"updateKind":{"kind":{"controlled":false}}}`)
	for input, want := range map[string]string{
		`kind: "Nothing", controlled: true`: `kind "Nothing" is not known`,
		`kind: "Network", controlled: true, clientMutationId: "` + strings.Repeat("m", 129) + `"`: `clientMutationId: must have at most 128 characters`,
	} {
		got := g.do(`mutation { updateKind(input: {`+input+`}) { kind { name } } }`, nil)
		if len(got.Errors) != 1 || !strings.HasPrefix(got.Errors[0].Message, want) || string(got.Data) != `{"updateKind":null}` {
			t.Errorf("%s: %s %v", input, got.Data, got.Errors)
		}
	}
	shelf := newGateway(t, shelves(t), nil)
	got := shelf.do(`mutation { updateKind(input: {kind: "Service", controlled: true}) { kind { name } } }`, nil)
	var known *failure.Error
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "does not offer CONTROL") || !errors.As(got.Errors[0], &known) || known.Path != "input.kind" {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}

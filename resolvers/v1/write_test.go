package resolvers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
)

// storedSpec is the spec as it is stored.
func (g *gateway) storedSpec(name string) (out map[string]any) {
	g.t.Helper()
	got, err := g.store.Get(context.Background(), backend.Key{Kind: "Network", Namespace: "default", Name: name})
	if err != nil || got[0] == nil {
		g.t.Fatalf("stored %s: %v", name, err)
	}
	body, err := got[0].DecodeBody()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := json.Unmarshal(body.Spec, &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

func TestWhatIsStoredIsWhatWasSentInStoredForm(t *testing.T) {
	g := open(t)
	a := g.must(`mutation($spec: NetworkSpecInput!) {
		createNetwork(input: {clientMutationId: "m1", name: "net-a", spec: $spec}) {
			clientMutationId warnings network { spec { managementPolicy managedOptions { onDelete } resource { mtu tags description } resyncPeriod } }
		}
	}`, "spec", map[string]any{
		"managementPolicy": "MANAGED", "managedOptions": map[string]any{"onDelete": "DETACH"},
		"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"},
		"resource":            map[string]any{"tags": []any{}, "mtu": 1500, "description": nil, "shared": false},
		"import":              nil,
	})
	want := map[string]any{
		"managementPolicy": "managed", "managedOptions": map[string]any{"onDelete": "detach"},
		"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"},
		"resource":            map[string]any{"tags": []any{}, "mtu": 1500.0, "shared": false},
	}
	if diff := cmp.Diff(want, g.storedSpec("net-a")); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	shown := map[string]any{
		"managementPolicy": "MANAGED", "managedOptions": map[string]any{"onDelete": "DETACH"},
		"resource": map[string]any{"tags": []any{}, "mtu": 1500.0, "description": nil}, "resyncPeriod": nil,
	}
	if diff := cmp.Diff(shown, a.at("createNetwork.network.spec")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if a.at("createNetwork.clientMutationId") != "m1" || len(a.at("createNetwork.warnings").([]any)) != 0 {
		t.Errorf("payload: %v", a.data)
	}
}

func TestAnEffectiveDefaultIsNeverStored(t *testing.T) {
	g := open(t)
	g.create("default", "net-a")
	if _, ok := g.storedSpec("net-a")["managementPolicy"]; ok {
		t.Error("managementPolicy was stored")
	}
	a := g.do(`mutation { createNetwork(input: {name: "net-b", spec: {` + credentials + `}}) { warnings } }`)
	if a.code(0) != service.CodeValidationFailed || !strings.Contains(a.errors[0].Message, "resource is required") {
		t.Errorf("the default is not effective in rules: %v", a.errors)
	}
}

func TestAllViolationsAreErrorsOfTheirOwn(t *testing.T) {
	a := open(t).do(`mutation {
		createNetwork(input: {name: "net-a", spec: {cloudCredentialsRef: {cloudName: "", secretName: "s"}, resource: {mtu: 5, name: "a,b"}}}) { warnings }
	}`)
	var paths []string
	for i := range a.errors {
		if a.code(i) != service.CodeValidationFailed || a.errors[i].Path.String() != "createNetwork" {
			t.Errorf("error %d: %v", i, a.errors[i])
		}
		paths = append(paths, a.errors[i].Err.(*service.Error).Path)
	}
	want := []string{"spec.cloudCredentialsRef.cloudName", "spec.resource.name", "spec.resource.mtu"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestTheMetadataOfAnUpdateIsUntouchedClearedOrReplaced(t *testing.T) {
	g := open(t)
	a := g.must(`mutation { createNetwork(input: {name: "net-a", labels: [{key: "a", value: "1"}], annotations: [{key: "n", value: "x"}], description: "d", spec: {` + credentials + `, resource: {}}}) {
		network { metadata { revision labels { key value } annotations { key value } description } } } }`)
	meta := func(field, arguments string) map[string]any {
		t.Helper()
		out := g.must(`mutation($r: String!) { updateNetwork(input: {name: "net-a", expectedRevision: $r, `+arguments+` spec: {`+credentials+`, resource: {}}}) {
			network { metadata { revision labels { key value } annotations { key value } description } } } }`, "r", a.at(field+".network.metadata.revision"))
		a = out
		return out.at("updateNetwork.network.metadata").(map[string]any)
	}
	pair := func(k, v string) []any { return []any{map[string]any{"key": k, "value": v}} }
	check := func(got map[string]any, labels, annotations []any, description any) {
		t.Helper()
		delete(got, "revision")
		want := map[string]any{"labels": labels, "annotations": annotations, "description": description}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	}
	revision := a.at("createNetwork.network.metadata.revision")
	got := meta("createNetwork", "")
	if got["revision"] != revision {
		t.Error("an identical update changed the revision")
	}
	check(got, pair("a", "1"), pair("n", "x"), "d")
	a.data["updateNetwork"].(map[string]any)["network"].(map[string]any)["metadata"].(map[string]any)["revision"] = revision
	check(clone(meta("updateNetwork", `labels: [{key: "b", value: "2"}],`)), pair("b", "2"), pair("n", "x"), "d")
	check(clone(meta("updateNetwork", `labels: null, annotations: [], description: null,`)), []any{}, []any{}, nil)
}

func clone(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestAnErrorOfOneMutationLeavesTheOthersStanding(t *testing.T) {
	g := open(t)
	a := g.do(`mutation {
		first: createNetwork(input: {name: "net-a", spec: {` + credentials + `, resource: {}}}) { network { id } }
		again: createNetwork(input: {name: "net-a", spec: {` + credentials + `, resource: {}}}) { network { id } }
		third: createNetwork(input: {name: "net-b", spec: {` + credentials + `, resource: {}}}) { network { id } }
	}`)
	if a.at("first.network.id") == nil || a.at("again") != nil || a.at("third.network.id") == nil {
		t.Errorf("data: %v", a.data)
	}
	if len(a.errors) != 1 || a.code(0) != service.CodeAlreadyExists || a.errors[0].Path.String() != "again" {
		t.Errorf("errors: %v", a.errors)
	}
}

func TestADeletionShowsTheLastStateAndItsID(t *testing.T) {
	g := open(t)
	id := g.create("default", "net-a").at("createNetwork.network.id")
	const del = `mutation { deleteNetwork(input: {clientMutationId: "m", name: "net-a"}) { clientMutationId deletedNetworkId state warnings network { metadata { name } } } }`
	a := g.must(del)
	want := map[string]any{
		"clientMutationId": "m", "deletedNetworkId": id, "state": "DELETED", "warnings": []any{},
		"network": map[string]any{"metadata": map[string]any{"name": "net-a"}},
	}
	if diff := cmp.Diff(want, a.at("deleteNetwork")); diff != "" {
		t.Error(diff)
	}
	if a := g.do(del); a.code(0) != service.CodeNotFound || a.at("deleteNetwork") != nil {
		t.Errorf("deleted again: %v %v", a.data, a.errors)
	}
}

func TestAStaleRevisionIsAConflict(t *testing.T) {
	g := open(t)
	g.create("default", "net-a")
	for _, m := range []string{
		`updateNetwork(input: {name: "net-a", expectedRevision: "1-1", spec: {` + credentials + `, resource: {}}})`,
		`deleteNetwork(input: {name: "net-a", expectedRevision: "nonsense"})`,
	} {
		if a := g.do(`mutation { ` + m + ` { warnings } }`); a.code(0) != service.CodeConflict {
			t.Errorf("%s: %v", m, a.errors)
		}
	}
}

func TestApplyingADryRunOfACreationHasNoResource(t *testing.T) {
	g := open(t)
	manifest := "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: net-a}\nspec: {cloudCredentialsRef: {cloudName: c, secretName: s}, resource: {}}\n"
	const apply = `mutation($m: String!, $dry: Boolean) { applyManifest(input: {clientMutationId: "m", manifest: $m, namespace: "n", dryRun: $dry}) { clientMutationId outcome resource { kind metadata { namespace } } } }`
	a := g.must(apply, "m", manifest, "dry", true)
	if a.at("applyManifest.outcome") != "CREATED" || a.at("applyManifest.resource") != nil {
		t.Errorf("dry run: %v", a.data)
	}
	a = g.must(apply, "m", manifest)
	if a.at("applyManifest.outcome") != "CREATED" || a.at("applyManifest.resource.metadata.namespace") != "n" || a.at("applyManifest.clientMutationId") != "m" {
		t.Errorf("applied: %v", a.data)
	}
}

func TestAClientMutationIDIsBounded(t *testing.T) {
	g := open(t)
	const m = `mutation($id: String) { createNetwork(input: {clientMutationId: $id, name: "net-a", spec: {` + credentials + `, resource: {}}}) { clientMutationId } }`
	if a := g.do(m, "id", strings.Repeat("é", 129)); a.code(0) != service.CodeValidationFailed {
		t.Errorf("129 characters: %v", a.errors)
	}
	g.must(m, "id", strings.Repeat("é", 128))
}

func TestInputsOfTheWrongTypeAreRefusedBeforeTheService(t *testing.T) {
	g := open(t)
	const m = `mutation($spec: NetworkSpecInput!) { createNetwork(input: {name: "net-a", spec: $spec}) { warnings } }`
	for name, resource := range map[string]map[string]any{
		"a whole number over 32 bits": {"mtu": json.Number("4294967296123")},
		"a fraction":                  {"mtu": json.Number("1.5")},
		"a null element":              {"tags": []any{nil}},
		"an unknown field":            {"mtuu": 5},
	} {
		spec := map[string]any{"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "resource": resource}
		if a := g.do(m, "spec", spec); len(a.errors) == 0 || a.at("createNetwork") != nil {
			t.Errorf("%s: %v %v", name, a.data, a.errors)
		}
	}
	spec := map[string]any{"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "managementPolicy": "managed"}
	if a := g.do(m, "spec", spec); len(a.errors) == 0 {
		t.Error("a stored form was taken for the name of an enum value")
	}
}

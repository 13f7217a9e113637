package resolvers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
)

func TestAPatchMergesReplacesAndClears(t *testing.T) {
	g := open(t)
	a := g.must(`mutation { upsertNetwork(input: {name: "net-a", labels: [{key: "a", value: "1"}], spec: {` + credentials + `, resyncPeriod: "5m", resource: {mtu: 1500, tags: ["x", "y"], name: "n"}}}) {
		created network { metadata { revision } } } }`)
	if a.at("upsertNetwork.created") != true {
		t.Errorf("created: %v", a.data)
	}
	const patch = `mutation($r: String!, $spec: NetworkSpecPatch) { patchNetwork(input: {clientMutationId: "m", name: "net-a", expectedRevision: $r, description: "d", spec: $spec}) {
		clientMutationId warnings network { metadata { revision description labels { key } } } } }`
	a = g.must(patch, "r", a.at("upsertNetwork.network.metadata.revision"), "spec", map[string]any{
		"resyncPeriod": nil, "managementPolicy": "MANAGED", "resource": map[string]any{"tags": []any{"z"}, "name": nil, "shared": true},
	})
	want := map[string]any{
		"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "managementPolicy": "managed",
		"resource": map[string]any{"mtu": 1500.0, "tags": []any{"z"}, "shared": true},
	}
	if diff := cmp.Diff(want, g.storedSpec("net-a")); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	meta := a.at("patchNetwork.network.metadata").(map[string]any)
	if meta["description"] != "d" || len(meta["labels"].([]any)) != 1 || a.at("patchNetwork.clientMutationId") != "m" {
		t.Errorf("payload: %v", a.data)
	}
	for name, spec := range map[string]any{
		"a required field cleared": map[string]any{"cloudCredentialsRef": nil},
		"a rule broken":            map[string]any{"resource": nil},
		"a limit broken":           map[string]any{"resource": map[string]any{"mtu": 5}},
	} {
		if a := g.do(patch, "r", meta["revision"], "spec", spec); a.code(0) != service.CodeValidationFailed {
			t.Errorf("%s: %v", name, a.errors)
		}
	}
	if a := g.do(patch, "r", meta["revision"], "spec", nil); a.code(0) != service.CodeBadUserInput {
		t.Errorf("spec: null: %v", a.errors)
	}
	if a := g.do(patch, "r", "1-1", "spec", map[string]any{}); a.code(0) != service.CodeConflict {
		t.Errorf("a stale revision: %v", a.errors)
	}
	a = g.must(`mutation($r: String!) { patchNetwork(input: {name: "net-a", expectedRevision: $r, labels: null}) { network { metadata { labels { key } } } } }`, "r", meta["revision"])
	if len(a.at("patchNetwork.network.metadata.labels").([]any)) != 0 {
		t.Errorf("labels: %v", a.data)
	}
}

func TestAnUpsertCreatesOrReplaces(t *testing.T) {
	g := open(t)
	const upsert = `mutation($mtu: Int) { upsertNetwork(input: {name: "net-a", spec: {` + credentials + `, resource: {mtu: $mtu}}}) { created warnings network { spec { resource { mtu } } } } }`
	for i, mtu := range []int{1500, 9000, 9000} {
		a := g.must(upsert, "mtu", mtu)
		if a.at("upsertNetwork.created") != (i == 0) || a.at("upsertNetwork.network.spec.resource.mtu") != float64(mtu) {
			t.Errorf("upsert %d: %v", i, a.data)
		}
	}
}

func TestAStatusIsReplacedAndTheSpecIsNot(t *testing.T) {
	g := open(t)
	revision := g.create("default", "net-a").at("createNetwork.network.metadata.revision")
	before := g.storedSpec("net-a")
	const update = `mutation($r: String!, $status: NetworkStatusInput!) { updateNetworkStatus(input: {clientMutationId: "m", name: "net-a", expectedRevision: $r, status: $status}) {
		clientMutationId warnings network { metadata { revision generation } status { id conditions { type observedGeneration } resource { mtu provider { segmentationID } } } } } }`
	status := map[string]any{
		"id": strings.Repeat("x", 5000), "conditions": []any{map[string]any{"type": "Available", "observedGeneration": 1}},
		"resource": map[string]any{"mtu": 5, "provider": map[string]any{"segmentationID": 7}},
	}
	a := g.must(update, "r", revision, "status", status)
	want := map[string]any{
		"id": status["id"], "conditions": []any{map[string]any{"type": "Available", "observedGeneration": 1.0}},
		"resource": map[string]any{"mtu": 5.0, "provider": map[string]any{"segmentationID": 7.0}},
	}
	if diff := cmp.Diff(want, a.at("updateNetworkStatus.network.status")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, g.storedSpec("net-a")); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	if a.at("updateNetworkStatus.network.metadata.generation") != 1.0 {
		t.Errorf("generation: %v", a.data)
	}
	if a := g.do(update, "r", revision, "status", status); a.code(0) != service.CodeConflict {
		t.Errorf("a stale revision: %v", a.errors)
	}
}

func TestTheStoredFormOfAnEnumGoesInAndOut(t *testing.T) {
	g := open(t)
	a := g.must(`mutation { createSecurityGroup(input: {name: "sg", spec: {` + credentials + `, resource: {rules: [{ethertype: IPV6, protocol: IPV6_ENCAP, direction: EGRESS}]}}}) {
		securityGroup { manifest spec { resource { rules { protocol ethertype direction } } } } } }`)
	if a.at("createSecurityGroup.securityGroup.spec.resource.rules.0.protocol") != "IPV6_ENCAP" {
		t.Errorf("shown: %v", a.data)
	}
	for _, want := range []string{"protocol: ipv6-encap", "ethertype: IPv6", "direction: egress"} {
		if text := a.at("createSecurityGroup.securityGroup.manifest").(string); !strings.Contains(text, want) {
			t.Errorf("manifest has no %q:\n%s", want, text)
		}
	}
}

func TestNodesAreInTheOrderOfTheirIDs(t *testing.T) {
	g := open(t)
	a, b := g.create("default", "a").at("createNetwork.network.id"), g.create("other", "b").at("createNetwork.network.id")
	absent := service.GlobalID(backend.Key{Kind: "Port", Namespace: "default", Name: "x"})
	got := g.must(`query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, "ids", []any{b, absent, a, b}).at("nodes")
	node := func(id any) any { return map[string]any{"id": id} }
	if diff := cmp.Diff([]any{node(b), nil, node(a), node(b)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ids := make([]any, 101)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	if a := g.do(`query($ids: [ID!]!) { nodes(ids: $ids) { id } }`, "ids", ids); a.code(0) != service.CodeValidationFailed {
		t.Errorf("101 ids: %v", a.errors)
	}
	if a := g.do(`{ nodes(ids: ["nonsense"]) { id } }`); a.code(0) != service.CodeBadUserInput {
		t.Errorf("no id: %v", a.errors)
	}
}

func TestResourcesOfAKindAreListedWithoutItsOwnField(t *testing.T) {
	g := open(t)
	g.topology("a")
	a := g.must(`{ resources(kind: "PORTS", namespace: "a", first: 3) { totalCount pageInfo { hasNextPage } nodes { kind ... on Port { network { metadata { name } } } } edges { cursor node { metadata { name } } } } }`)
	if a.at("resources.totalCount") != 4.0 || a.at("resources.pageInfo.hasNextPage") != true || a.at("resources.edges.2.node.metadata.name") != "port-2" {
		t.Error(a.data)
	}
	if a.at("resources.nodes.2.kind") != "Port" || a.at("resources.nodes.2.network.metadata.name") != "net-1" {
		t.Error(a.data)
	}
	if a := g.do(`{ resources(kind: "Widget") { totalCount } }`); a.code(0) != service.CodeBadUserInput {
		t.Errorf("an unknown kind: %v", a.errors)
	}
}

func TestAKindIsData(t *testing.T) {
	a := open(t).must(`{ kinds { name subKinds expires
		fields { path name type required list listType keys immutable default deprecated since until enumValues { name stored }
			limits { minLength maxLength pattern format min max in minItems maxItems unique minProperties maxProperties keyMaxLength } }
		references { path kind field inverse guard } indexes { path sortable } } }`)
	find := func(path, key, value string) map[string]any {
		t.Helper()
		list, _ := a.at(path).([]any)
		for _, e := range list {
			if m := e.(map[string]any); m[key] == value {
				return m
			}
		}
		t.Fatalf("%s has nothing whose %s is %s", path, key, value)
		return nil
	}
	for i, e := range a.at("kinds").([]any) {
		if e.(map[string]any)["name"] != "Subnet" {
			continue
		}
		at := fmt.Sprintf("kinds.%d.", i)
		want := map[string]any{"path": "spec.resource.networkRef", "kind": "Network", "field": "network", "inverse": "subnets", "guard": true}
		if diff := cmp.Diff(want, find(at+"references", "path", "spec.resource.networkRef")); diff != "" {
			t.Errorf("reference (-want +got):\n%s", diff)
		}
		if r := find(at+"references", "path", "spec.import.filter.networkRef"); r["inverse"] != nil || r["guard"] != false {
			t.Errorf("reference of a query: %v", r)
		}
		if x := find(at+"indexes", "path", "spec.resource.cidr"); x["sortable"] != true {
			t.Errorf("index: %v", x)
		}
		cidr := find(at+"fields", "path", "spec.resource.cidr")
		if cidr["required"] != true || cidr["immutable"] != true || cidr["limits"].(map[string]any)["format"] != "cidr" || cidr["limits"].(map[string]any)["maxLength"] != 49.0 {
			t.Errorf("cidr: %v", cidr)
		}
		policy := find(at+"fields", "path", "spec.managementPolicy")
		if policy["default"] != `"managed"` || policy["type"] != "ManagementPolicy" || len(policy["enumValues"].([]any)) != 2 {
			t.Errorf("managementPolicy: %v", policy)
		}
		tags := find(at+"fields", "path", "spec.resource.tags")
		if tags["list"] != true || tags["listType"] != "SET" || tags["limits"].(map[string]any)["unique"] != true || tags["limits"].(map[string]any)["maxItems"] != 64.0 {
			t.Errorf("tags: %v", tags)
		}
		if o := find(at+"fields", "path", "spec.import"); o["type"] != "SubnetImport" || o["limits"].(map[string]any)["maxProperties"] != 1.0 {
			t.Errorf("import: %v", o)
		}
		find(at+"fields", "path", "status.conditions.observedGeneration")
		return
	}
	t.Error("no Subnet")
}

package resolvers_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// topology makes two networks, each with two subnets, each with a port; all
// ports are in one security group, and one names a group that is not there.
func (g *gateway) topology(namespace string) {
	g.t.Helper()
	g.create(namespace, "net-0")
	g.create(namespace, "net-1")
	g.must(`mutation($ns: String) { createSecurityGroup(input: {namespace: $ns, name: "web", spec: {`+credentials+`, resource: {}}}) { warnings } }`, "ns", namespace)
	for i := range 4 {
		g.must(`mutation($ns: String, $name: String!, $net: String!, $cidr: String!) {
			createSubnet(input: {namespace: $ns, name: $name, spec: {`+credentials+`, resource: {networkRef: $net, ipVersion: 4, cidr: $cidr}}}) { warnings } }`,
			"ns", namespace, "name", fmt.Sprint("subnet-", i), "net", fmt.Sprint("net-", i/2), "cidr", fmt.Sprintf("10.0.%d.0/24", i))
		g.must(`mutation($ns: String, $name: String!, $net: String!, $subnet: String!) {
			createPort(input: {namespace: $ns, name: $name, spec: {`+credentials+`, resource: {
				networkRef: $net, addresses: [{subnetRef: $subnet}], securityGroupRefs: ["web", "gone"]}}}) { warnings } }`,
			"ns", namespace, "name", fmt.Sprint("port-", i), "net", fmt.Sprint("net-", i/2), "subnet", fmt.Sprint("subnet-", i))
	}
}

func TestAReferenceResolvesToTheResourceThatItNames(t *testing.T) {
	g := open(t)
	g.topology("a")
	g.topology("b")
	a := g.must(`{ port(namespace: "b", name: "port-3") {
		network { metadata { namespace name } }
		project { id }
		securityGroups { totalCount nodes { metadata { namespace name } } }
		spec { resource { addresses { subnetRef subnet { metadata { namespace name } network { metadata { name } } } } } }
	} }`)
	where := func(name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "b", "name": name}}
	}
	subnet := where("subnet-3")
	subnet["network"] = map[string]any{"metadata": map[string]any{"name": "net-1"}}
	want := map[string]any{
		"network": where("net-1"), "project": nil,
		"securityGroups": map[string]any{"totalCount": 1.0, "nodes": []any{where("web")}},
		"spec":           map[string]any{"resource": map[string]any{"addresses": []any{map[string]any{"subnetRef": "subnet-3", "subnet": subnet}}}},
	}
	if diff := cmp.Diff(want, a.at("port")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAReferenceToWhatIsMissingIsNull(t *testing.T) {
	g := open(t)
	g.topology("a")
	g.must(`mutation { deleteNetwork(input: {namespace: "a", name: "net-0"}) { state } deleteSubnet(input: {namespace: "a", name: "subnet-0"}) { state } }`)
	a := g.must(`{ port(namespace: "a", name: "port-0") { network { id } spec { resource { addresses { subnet { id } } } } } }`)
	if a.at("port.network") != nil || a.at("port.spec.resource.addresses.0.subnet") != nil {
		t.Error(a.data)
	}
	g.must(`mutation { createPort(input: {namespace: "a", name: "imported", spec: {` + credentials + `, managementPolicy: UNMANAGED, import: {filter: {networkRef: "net-1", projectRef: "p"}}}}) { warnings } }`)
	a = g.must(`{ port(namespace: "a", name: "imported") { network { id } securityGroups { totalCount nodes { id } } spec { import { filter { network { metadata { name } } project { id } } } } } }`)
	want := map[string]any{
		"network": nil, "securityGroups": map[string]any{"totalCount": 0.0, "nodes": []any{}},
		"spec": map[string]any{"import": map[string]any{"filter": map[string]any{"network": map[string]any{"metadata": map[string]any{"name": "net-1"}}, "project": nil}}},
	}
	if diff := cmp.Diff(want, a.at("port")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnInverseListsWhoRefersByThatReference(t *testing.T) {
	g := open(t)
	g.topology("a")
	g.topology("b")
	a := g.must(`{ network(namespace: "a", name: "net-1") {
		subnets(first: 1) { totalCount nodes { metadata { namespace name } } pageInfo { hasNextPage endCursor } }
		filtered: subnets(filter: {spec: {resource: {cidr: {eq: "10.0.2.0/24"}}}}) { nodes { metadata { name } } }
		ordered: subnets(orderBy: [{field: SPEC_RESOURCE_CIDR, direction: DESC}]) { nodes { metadata { name } ports { nodes { metadata { name } } } } }
		gatewayRouters { totalCount }
	} }`)
	name := func(n string) map[string]any { return map[string]any{"metadata": map[string]any{"name": n}} }
	with := func(subnet, port string) map[string]any {
		out := name(subnet)
		out["ports"] = map[string]any{"nodes": []any{name(port)}}
		return out
	}
	if a.at("network.subnets.totalCount") != 2.0 || a.at("network.subnets.nodes.0.metadata.name") != "subnet-2" || a.at("network.subnets.pageInfo.hasNextPage") != true {
		t.Errorf("subnets: %v", a.at("network.subnets"))
	}
	if diff := cmp.Diff([]any{name("subnet-2")}, a.at("network.filtered.nodes")); diff != "" {
		t.Errorf("filtered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{with("subnet-3", "port-3"), with("subnet-2", "port-2")}, a.at("network.ordered.nodes")); diff != "" {
		t.Errorf("ordered (-want +got):\n%s", diff)
	}
	a = g.must(`query($after: String) { network(namespace: "a", name: "net-1") { subnets(after: $after) { nodes { metadata { name } } } } }`, "after", a.at("network.subnets.pageInfo.endCursor"))
	if diff := cmp.Diff([]any{name("subnet-3")}, a.at("network.subnets.nodes")); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
}

func TestEachLevelAndKindIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		g.topology("a")
		g.topology("b")
		for _, c := range []struct {
			query          string
			lookups, lists int64
		}{
			{`{ ports { nodes { network { id } } } }`, 1, 0},
			{`{ ports { edges { node { network { id } project { id } } } } }`, 1, 0}, // no port has a project
			{`{ ports { nodes { network { id } spec { resource { addresses { subnet { network { id } } } } } } } }`, 2, 0},
			{`{ networks { nodes { subnets { nodes { ports { nodes { id } } } } } } }`, 0, 2},
			{`{ networks { nodes { subnets { totalCount } ports { nodes { securityGroups { nodes { id } } } } } } }`, 0, 3},
			{`{ networks { nodes { subnets(first: 1) { nodes { id } } again: subnets(last: 1) { nodes { id } } } } }`, 0, 1},
		} {
			g.lookups.Store(0)
			g.lists.Store(0)
			g.must(c.query)
			if g.lookups.Load() != c.lookups || g.lists.Load() != c.lists {
				t.Errorf("%s: %d lookups and %d lists; want %d and %d", c.query, g.lookups.Load(), g.lists.Load(), c.lookups, c.lists)
			}
		}
	})
}

func TestMutationsOfOneRequestSeeEachOthersWrites(t *testing.T) {
	g := open(t)
	g.topology("a")
	a := g.must(`mutation {
		one: deletePort(input: {namespace: "a", name: "port-0"}) { port { network { ports { totalCount } } } }
		two: deletePort(input: {namespace: "a", name: "port-1"}) { port { network { ports { totalCount } } } }
	}`)
	if a.at("one.port.network.ports.totalCount") != 1.0 || a.at("two.port.network.ports.totalCount") != 0.0 {
		t.Error(a.data)
	}
}

func TestAnEventsReferencesAreReadAnewEachTime(t *testing.T) {
	g := open(t)
	g.create("a", "net-0")
	next := g.start(t.Context(), `subscription { subnetChanges { type subnet { network { metadata { name } } } } }`, nil)
	next()
	create := func(name string) {
		g.must(`mutation($n: String!) { createSubnet(input: {namespace: "a", name: $n, spec: {`+credentials+`, resource: {networkRef: "net-0", ipVersion: 4, cidr: "10.0.0.0/24"}}}) { warnings } }`, "n", name)
	}
	create("s1")
	if a := next(); a.at("subnetChanges.subnet.network.metadata.name") != "net-0" {
		t.Error(a.data, a.errors)
	}
	g.must(`mutation { deleteNetwork(input: {namespace: "a", name: "net-0"}) { state } }`)
	create("s2")
	if a := next(); a.at("subnetChanges.subnet") == nil || a.at("subnetChanges.subnet.network") != nil {
		t.Error(a.data, a.errors)
	}
}

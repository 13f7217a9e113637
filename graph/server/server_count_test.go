package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/server"
)

// counting counts the calls of a store, by the kind they are for.
type counting struct {
	backend.Store
	mu    sync.Mutex
	calls []string
}

func (c *counting) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

// take returns the calls since the last time, without those for the index definitions.
func (c *counting) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.calls, ", ")
	c.calls = nil
	return out
}

func (c *counting) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if !keys[0].Internal() {
		var kinds []string
		for _, k := range keys {
			if !slices.Contains(kinds, k.Kind) {
				kinds = append(kinds, k.Kind)
			}
		}
		slices.Sort(kinds)
		c.note("get %d %s", len(keys), strings.Join(kinds, "+"))
	}
	return c.Store.Get(ctx, keys...)
}

func (c *counting) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if !r.Deleting { // the sweep for deletions to finish
		c.note("range %s", r.Kind)
	}
	return c.Store.Range(ctx, r)
}

func (c *counting) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	n := 0
	for _, r := range rs {
		if !r.Deleting {
			n++
		}
	}
	c.note("%d ranges %s", n, rs[0].Kind)
	return backend.Ranges(ctx, c.Store, rs)
}

const createSubnet = `mutation($name: String!, $network: String!, $cidr: String!) { createSubnet(input: {name: $name, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {networkRef: $network, ipVersion: 4, cidr: $cidr}}}) { subnet { id network { metadata { name } } } } }`

const createPort = `mutation($name: String!, $network: String!, $subnet: String!) { createPort(input: {name: $name, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {networkRef: $network, addresses: [{subnetRef: $subnet}]}}}) { port { id } } }`

// topology fills an edge with networks, subnets of them and ports of these.
func topology(t testing.TB, e edge, networks, subnets, ports int) {
	t.Helper()
	must := func(answer string) {
		t.Helper()
		if strings.Contains(answer, `"errors"`) {
			t.Fatal(answer)
		}
	}
	for n := range networks {
		network := fmt.Sprintf("net-%d", n)
		must(e.post(t, create, map[string]any{"name": network, "mtu": 1500}))
		for s := range subnets {
			subnet := fmt.Sprintf("%s-sub-%d", network, s)
			must(e.post(t, createSubnet, map[string]any{"name": subnet, "network": network, "cidr": fmt.Sprintf("10.%d.%d.0/24", n, s)}))
			for p := range ports {
				must(e.post(t, createPort, map[string]any{"name": fmt.Sprintf("%s-port-%d", subnet, p), "network": network, "subnet": subnet}))
			}
		}
	}
}

func TestEachLevelOfAQueryIsOneCallOfTheStore(t *testing.T) {
	var store *counting
	e := newEdge(t, func(s backend.Store) backend.Store {
		store = &counting{Store: s}
		return store
	}, server.Config{LoaderWait: 100 * time.Millisecond}) // longer than a busy machine takes to begin all reads of a level
	topology(t, e, 4, 3, 2)
	for _, c := range []struct{ name, query, calls string }{
		{"each subnet with its network", `{ subnets { nodes { network { metadata { name } } } } }`, "1 ranges Subnet, get 4 Network"},
		{"three levels down by inverse connections", `{ networks { nodes { subnets { nodes { metadata { name } ports { nodes { metadata { name } } } } } } } }`, "1 ranges Network, 4 ranges Subnet, 12 ranges Port"},
		{"three levels up by references", `{ ports { nodes { network { metadata { name } } spec { resource { addresses { subnet { network { metadata { name } } } } } } } } }`, "1 ranges Port, get 16 Network+Subnet"},
		{"what a port depends on", `{ dependencyTree(id: "` + kind.GlobalID(backend.Key{Kind: "Port", Namespace: "default", Name: "net-0-sub-0-port-0"}) + `", direction: DEPENDENCIES) { dependencies { level state resource { metadata { name } } } } }`, "get 1 Port, get 1 Subnet, get 1 Network, get 1 Secret"},
		{"what depends on a network", `{ dependencyTree(id: "` + kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "net-0"}) + `", direction: DEPENDENTS, depth: 2) { dependents { level path resource { metadata { name } } } } }`,
			"get 1 Network, 8 ranges FloatingIP, 48 ranges FloatingIP, get 3 Subnet, get 6 Port"},
		{"one resource", `{ network(name: "net-0") { id } }`, "get 1 Network"},
		{"totalCount and both flags", `{ networks(first: 2) { totalCount pageInfo { hasNextPage } } }`, "2 ranges Network"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store.take()
			if got := e.post(t, c.query, nil); strings.Contains(got, `"errors"`) {
				t.Fatal(got)
			}
			got := strings.Split(store.take(), ", ")
			for _, want := range strings.Split(c.calls, ", ") {
				found := false
				for i, g := range got {
					if g == want {
						got = append(got[:i], got[i+1:]...)
						found = true
						break
					}
				}
				if !found {
					t.Errorf("no call %q", want)
				}
			}
			if len(got) > 0 {
				t.Errorf("more calls: %v", got)
			}
		})
	}
}

func TestTwoMutationsOfOneRequestSeeEachOthersWrites(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	got := e.post(t, `mutation {
		a: createSubnet(input: {name: "s", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {networkRef: "n", ipVersion: 4, cidr: "10.0.0.0/24"}}}) { subnet { network { id } } }
		b: createNetwork(input: {name: "n", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { network { subnets { totalCount } } }
		c: upsertSubnet(input: {name: "s", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {networkRef: "n", ipVersion: 4, cidr: "10.0.0.0/24"}}}) { subnet { network { metadata { name } } } }
	}`, nil)
	if !strings.Contains(got, `"a":{"subnet":{"network":null}}`) || !strings.Contains(got, `"b":{"network":{"subnets":{"totalCount":1}}}`) || !strings.Contains(got, `"c":{"subnet":{"network":{"metadata":{"name":"n"}}}}`) {
		t.Errorf("answer %s", got)
	}
}

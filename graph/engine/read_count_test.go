package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// countingStore notes the calls of a store that read resources.
type countingStore struct {
	backend.Store
	// fail is the error of all reads by key, if there is one.
	fail  error
	mu    sync.Mutex // guards calls
	calls []string
}

func (s *countingStore) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// take returns the calls since the last time, sorted.
func (s *countingStore) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.calls)
	out := strings.Join(s.calls, ", ")
	s.calls = nil
	return out
}

func (s *countingStore) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	if !keys[0].Internal() {
		var kinds []string
		for _, k := range keys {
			kinds = append(kinds, k.Kind)
		}
		slices.Sort(kinds)
		s.note("get %d %s", len(keys), strings.Join(slices.Compact(kinds), "+"))
	}
	return s.Store.Get(ctx, keys...)
}

func (s *countingStore) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	n := 0
	for _, r := range rs {
		if !r.Deleting {
			n++
		}
	}
	s.note("%d ranges %s", n, rs[0].Kind)
	return backend.Ranges(ctx, s.Store, rs)
}

// counted is a gateway of the embedded catalogue whose store counts.
func counted(t *testing.T) (*gateway, *countingStore) {
	t.Helper()
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	store := &countingStore{}
	g := newGateway(t, catalogue, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	})
	// It waits longer than a busy machine takes to begin all reads of a level.
	g.engine = enginetest.New(t, catalogue, g.svc, func(cfg *engine.Config) { cfg.LoaderWait = 100 * time.Millisecond })
	g.exec = executor.New(g.engine)
	return g, store
}

// put stores a resource as another gateway would, whatever its spec is.
func (g *gateway) put(kind, name, body string) {
	g.t.Helper()
	key := backend.Key{Kind: kind, Namespace: descriptor.DefaultNamespace, Name: name}
	_, err := g.store.Apply(g.t.Context(), backend.Batch{RequestID: "put " + name, Deadline: g.store.Now().Add(5e9), Actions: []backend.Action{{
		Key: key, Op: backend.OpPut, Put: backend.Put{UID: "u-" + name, Body: backend.EncodeBody([]byte(body))},
	}}})
	if err != nil {
		g.t.Fatal(err)
	}
}

// create stores a resource as a caller does.
func (g *gateway) create(of, name string, resource map[string]any) {
	g.t.Helper()
	spec := map[string]any{"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "resource": resource}
	if _, err := g.svc.Writer.Create(g.t.Context(), service.CreateRequest{Identity: kind.Identity{Kind: of, Name: name}, Spec: spec}); err != nil {
		g.t.Fatal(err)
	}
}

// spec is a stored body whose spec.resource this is.
func spec(resource any) string {
	raw, _ := json.Marshal(map[string]any{"version": "v1alpha1", "metadata": map[string]any{"generation": 1}, "spec": map[string]any{
		"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "resource": resource,
	}})
	return string(raw)
}

func TestEachLevelOfListsOfReferencesIsOneCall(t *testing.T) {
	g, store := counted(t)
	g.put("Project", "p", spec(map[string]any{}))
	for _, name := range []string{"a", "b", "c", "d"} {
		g.put("SecurityGroup", name, spec(map[string]any{"projectRef": "p"}))
	}
	g.put("SecurityGroup", "bad", `{"version":"v1","spec":`)
	g.put("Network", "n", spec(map[string]any{"projectRef": "p"}))
	for i, groups := range [][]string{{"a", "b"}, {"b", "c", "bad", "gone"}, {}, {"d", "a", "d"}} {
		g.put("Port", fmt.Sprint("p", i), spec(map[string]any{"networkRef": "n", "securityGroupRefs": groups}))
	}
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("g%03d", i))
	}
	for _, c := range []struct{ name, query, data, calls string }{
		{"one level, an unreadable and a missing one among them", `{ ports { nodes { securityGroups { totalCount @skip(if: true) nodes { metadata { name } } } } } }`,
			`{"ports":{"nodes":[{"securityGroups":{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}},{"securityGroups":{"nodes":[{"metadata":{"name":"b"}},{"metadata":{"name":"c"}}]}},{"securityGroups":{"nodes":[]}},{"securityGroups":{"nodes":[{"metadata":{"name":"a"}},{"metadata":{"name":"d"}}]}}]}}`,
			"1 ranges Port, get 6 SecurityGroup"},
		{"lists, references and what is behind both", `{ ports(first: 2) { nodes { network { project { kind } } securityGroups { edges { node { project { kind } } } } } } }`, "",
			"1 ranges Port, get 1 Network, get 1 Project, get 5 SecurityGroup"},
		{"dependents of all, and what these depend on", `{ securityGroups { nodes { dependents { nodes { name } } dependencies { nodes { name state } } } } }`, "",
			"1 ranges SecurityGroup, 4 ranges , get 2 Project+Secret"},
		{"dependencies alone are in the resource", `{ ports { nodes { dependencies { nodes { name path guarded } totalCount } } } }`, "", "1 ranges Port"},
		{"the same list twice under two names", `{ ports { nodes { x: securityGroups { nodes { id } } y: securityGroups(first: 1) { nodes { id } } } } }`, "", "1 ranges Port, get 6 SecurityGroup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store.take()
			got := g.do(c.query, nil)
			if got.Errors != nil || c.data != "" && string(got.Data) != c.data {
				t.Errorf("got %s %v\nwant %s", got.Data, got.Errors, c.data)
			}
			if calls := store.take(); calls != c.calls {
				t.Errorf("calls %s, want %s", calls, c.calls)
			}
		})
	}
	t.Run("more names than are read", func(t *testing.T) {
		g.put("Port", "p9", spec(map[string]any{"networkRef": "n", "securityGroupRefs": many}))
		store.take()
		got := g.do(`{ ports(last: 2) { edges { node { groups: securityGroups { nodes { id } } } } } }`, nil)
		if calls := store.take(); !strings.HasSuffix(string(got.Data), `{"node":{"groups":null}}]}}`) || len(got.Errors) != 1 || calls != "1 ranges Port, get 2 SecurityGroup" {
			t.Fatalf("got %s %v, calls %s", got.Data, got.Errors, calls)
		}
		if e := got.Errors[0]; e.Path.String() != "ports.edges[1].node.groups" || e.Message != "names: more than 100 names" || len(e.Locations) != 1 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a store that fails", func(t *testing.T) {
		store.fail = backend.ErrUnavailable
		defer func() { store.fail = nil }()
		got := g.do(`{ ports(first: 2) { nodes { network { id } } } }`, nil)
		if len(got.Errors) != 2 || got.Errors[1].Path.String() != "ports.nodes[1].network" {
			t.Errorf("%s %v", got.Data, got.Errors)
		}
		got = g.do(`{ ports(first: 2) { nodes { securityGroups { nodes { id } } } } }`, nil)
		if len(got.Errors) != 2 || got.Errors[1].Path.String() != "ports.nodes[1].securityGroups" || string(got.Data) != `{"ports":{"nodes":[{"securityGroups":null},{"securityGroups":null}]}}` {
			t.Errorf("%s %v", got.Data, got.Errors)
		}
	})
}

func TestEachLevelOfATreeOfDependenciesIsOneCallForEachKind(t *testing.T) {
	g, store := counted(t)
	g.create("Project", "p", map[string]any{})
	var groups, addresses []any
	for i := range 64 { // as many as a port may have
		name := fmt.Sprintf("g%02d", i)
		groups = append(groups, name)
		g.create("SecurityGroup", name, map[string]any{"projectRef": "p"})
	}
	g.create("Network", "n", map[string]any{"projectRef": "p"})
	for i := range 100 {
		name := fmt.Sprintf("s%02d", i)
		addresses = append(addresses, map[string]any{"subnetRef": name})
		g.create("Subnet", name, map[string]any{"networkRef": "n", "projectRef": "p", "ipVersion": 4, "cidr": fmt.Sprintf("10.0.%d.0/24", i)})
	}
	g.create("Port", "wide", map[string]any{"networkRef": "gone", "securityGroupRefs": groups, "addresses": addresses})
	g.create("Port", "diamond", map[string]any{"networkRef": "gone", "addresses": addresses[:2]})
	id := func(of, name string) string {
		return kind.GlobalID(backend.Key{Kind: of, Namespace: descriptor.DefaultNamespace, Name: name})
	}
	wide, diamond, network := id("Port", "wide"), id("Port", "diamond"), id("Network", "n")
	const level = "get 1 Network, get 1 Port, get 1 Secret, get 100 Subnet, get 64 SecurityGroup"
	const levels = "get 1 Network, get 1 Network, get 1 Port, get 1 Project, get 1 Secret, get 100 Subnet, get 64 SecurityGroup"
	for _, c := range []struct{ name, query, id, calls string }{
		{"one level", `direction: DEPENDENCIES, depth: 1) { dependencies { name } }`, wide, "get 1 Port"},
		{"one level and its resources", `direction: DEPENDENCIES, depth: 1) { dependencies { name state resource { id } } }`, wide, level},
		{"all levels", `direction: DEPENDENCIES) { dependencies { name level } }`, wide, levels},
		{"all levels and their resources", `direction: DEPENDENCIES) { dependencies { name state resource { id } } }`, wide, levels},
		{"what the engine reads below", `direction: DEPENDENCIES, depth: 1) { dependencies { resource { ... on SecurityGroup { project { id } } } } }`, wide, "get 1 Network, get 1 Port, get 1 Project, get 1 Secret, get 100 Subnet, get 64 SecurityGroup"},
		{"a diamond", `direction: DEPENDENCIES) { dependencies { level name from state } }`, diamond, "get 1 Network, get 1 Network, get 1 Port, get 1 Project, get 1 Secret, get 2 Subnet"},
		{"what refers to a network", `direction: DEPENDENTS) { dependents { level name } }`, network, "100 ranges FloatingIP, 100 ranges FloatingIP, 100 ranges FloatingIP, 100 ranges FloatingIP, 12 ranges FloatingIP, 8 ranges FloatingIP, get 1 Network"},
		{"both ways", `direction: BOTH, depth: 1) { dependencies { state } dependents { state } }`, network, "8 ranges FloatingIP, get 1 Network, get 1 Project, get 1 Secret, get 100 Subnet"},
	} {
		// The network "gone" and the network "n" are on two levels. Pages of several kinds,
		// of which the first is a FloatingIP, are a call of 100. The first time the service
		// asks whether the index serves.
		for range 2 {
			store.take()
			got := g.do(fmt.Sprintf("{ dependencyTree(id: %q, %s }", c.id, c.query), nil)
			if got.Errors != nil {
				t.Fatal(c.name, got.Errors)
			}
		}
		if calls := store.take(); calls != c.calls {
			t.Errorf("%s: calls %s\nwant  %s", c.name, calls, c.calls)
		}
	}
}

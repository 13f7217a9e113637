package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
)

// partlyFailing is a store that refuses some reads: it is asked which.
type partlyFailing struct {
	backend.Store
	refuses atomic.Pointer[func(kinds []string, r *backend.Range) bool]
}

func (s *partlyFailing) refused(kinds []string, r *backend.Range) error {
	if f := s.refuses.Load(); f != nil && (*f)(kinds, r) {
		return fmt.Errorf("%w: connection refused", backend.ErrUnavailable)
	}
	return nil
}

func (s *partlyFailing) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	var of []string
	for _, k := range keys {
		of = append(of, k.Kind)
	}
	if err := s.refused(of, nil); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, keys...)
}

func (s *partlyFailing) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if err := s.refused([]string{r.Kind}, &r); err != nil {
		return backend.Page{}, err
	}
	return s.Store.Range(ctx, r)
}

func (s *partlyFailing) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	for i := range rs {
		if err := s.refused([]string{rs[i].Kind}, &rs[i]); err != nil {
			return nil, err
		}
	}
	return backend.Ranges(ctx, s.Store, rs)
}

// erase sets a value of a tree to null.
func erase(t *testing.T, tree any, path ast.Path) {
	t.Helper()
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case ast.PathName:
			object, ok := tree.(map[string]any)
			if !ok {
				t.Fatalf("%s leads to nothing", path)
			}
			if last {
				object[string(step)] = nil
			}
			tree = object[string(step)]
		case ast.PathIndex:
			list, ok := tree.([]any)
			if !ok {
				t.Fatalf("%s leads to nothing", path)
			}
			if last {
				list[step] = nil
			}
			tree = list[step]
		}
	}
}

// A page that shows several things shows those that can be read: whatever fails is null by
// itself, where its error says, and all other values are as if it had not failed.
func TestAPartThatFailsErasesNothingElse(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	store := &partlyFailing{}
	g := newGateway(t, catalogue, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	})
	g.create("Project", "p", map[string]any{})
	for i := range 3 {
		name := fmt.Sprint("n", i)
		g.create("Network", name, map[string]any{"projectRef": "p", "mtu": 1500})
		g.create("Subnet", fmt.Sprint("s", i), map[string]any{"networkRef": name, "cidr": "10.0.0.0/24", "ipVersion": 4})
		g.create("SecurityGroup", fmt.Sprint("g", i), map[string]any{"projectRef": "p"})
		g.create("Port", fmt.Sprint("p", i), map[string]any{"networkRef": name, "securityGroupRefs": []any{"g0", "g1"}})
	}
	var id struct{ Network struct{ ID string } }
	if err := json.Unmarshal(g.do(`{ network(name: "n0") { id } }`, nil).Data, &id); err != nil {
		t.Fatal(err)
	}
	const query = `query ($id: ID!, $bad: NetworkFilter, $order: [PortOrder!]) {
		networks { totalCount nodes { metadata { name } subnets { totalCount nodes { metadata { name } } } dependents { totalCount nodes { name } } } }
		wide: networks(filter: {spec: {resource: {mtu: {gt: 1}}}}) { nodes { metadata { name } } }
		filtered: networks(filter: $bad) { totalCount }
		subnets { nodes { metadata { name } network { metadata { name } } blockedBy { totalCount } } }
		ports(orderBy: $order) { nodes { metadata { name } securityGroups { nodes { metadata { name } } } dependencies { nodes { name state } } } }
		groups: resources(kind: "SecurityGroup") { totalCount nodes { metadata { name } } }
		network(name: "n1") { metadata { name } }
		node(id: $id) { id }
		nodes(ids: [$id]) { id }
		kinds { name controlled }
		dependencyTree(id: $id) { root { name } dependencies { name } dependents { name } }
		absent: network(name: "nobody") { id }
	}`
	ask := func(g *gateway, more map[string]any) answer {
		t.Helper()
		vars := map[string]any{"id": id.Network.ID}
		for name, v := range more {
			vars[name] = v
		}
		oc, errs := g.prepare(query, vars)
		if errs != nil {
			t.Fatal(errs)
		}
		next, ctx := g.exec.DispatchOperation(t.Context(), oc)
		res := next(ctx)
		return answer{Data: res.Data, Errors: res.Errors}
	}
	all := ask(g, nil)
	if len(all.Errors) > 0 {
		t.Fatal(all.Errors)
	}
	of := func(kind string) func([]string, *backend.Range) bool {
		return func(kinds []string, r *backend.Range) bool {
			return r != nil && r.Referenced == nil && slices.Contains(kinds, kind)
		}
	}
	for name, c := range map[string]struct {
		refuses func(kinds []string, r *backend.Range) bool
		more    map[string]any
		says    string
		at      []string
	}{
		"a list":                {refuses: of("Port"), says: "not available", at: []string{"ports"}},
		"another one":           {refuses: of("SecurityGroup"), says: "not available", at: []string{"groups"}},
		"a list with its parts": {refuses: of("Network"), says: "not available", at: []string{"networks", "wide", "filtered"}},
		"counts": {refuses: func(_ []string, r *backend.Range) bool { return r != nil && r.Count && r.Referenced == nil }, says: "not available",
			at: []string{"networks"}},
		"what refers to others": {refuses: func(_ []string, r *backend.Range) bool { return r != nil && r.Referenced != nil }, says: "not available",
			at: []string{"networks.nodes[0].subnets", "networks.nodes[1].dependents", "subnets.nodes[0].blockedBy", "dependencyTree.dependents"}},
		"what is referred to": {refuses: func(kinds []string, r *backend.Range) bool {
			return r == nil && slices.Contains(kinds, "SecurityGroup")
		}, says: "not available",
			at: []string{"ports.nodes[2].securityGroups"}},
		"single reads": {refuses: func(kinds []string, r *backend.Range) bool { return r == nil && slices.Contains(kinds, "Network") }, says: "not available",
			at: []string{"network", "node", "nodes", "absent", "subnets.nodes[0].network", "dependencyTree"}},
		"settings of kinds": {refuses: func(kinds []string, r *backend.Range) bool {
			return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(kind, "_") })
		}, says: "not available", at: []string{"kinds[0].controlled"}},
		"a filter": {more: map[string]any{"bad": map[string]any{"name": map[string]any{}}}, says: "name", at: []string{"filtered"}},
		"an order": {more: map[string]any{"order": slices.Repeat([]any{map[string]any{"field": "NAME"}}, 6)}, says: "more than 5", at: []string{"ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.refuses != nil {
				store.refuses.Store(&c.refuses)
				defer store.refuses.Store(nil)
			}
			got := ask(gatewayOver(t, catalogue, func(testing.TB, func() time.Time) backend.Store { return store }), c.more)
			var want, data any
			if err := json.Unmarshal(all.Data, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got.Data, &data); err != nil || data == nil {
				t.Fatalf("%s %v %v", got.Data, got.Errors, err)
			}
			var paths []string
			for _, e := range got.Errors {
				erase(t, want, e.Path)
				paths = append(paths, e.Path.String())
				if !strings.Contains(e.Message, c.says) {
					t.Errorf("%s: %s", e.Path, e.Message)
				}
			}
			for _, at := range c.at {
				if !slices.Contains(paths, at) {
					t.Errorf("no error at %s but at %v", at, paths)
				}
			}
			if diff := cmp.Diff(want, data); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What would look at too much is refused before anything is spent, and by itself.
func TestAListThatLooksAtTooMuchErasesNothingElse(t *testing.T) {
	g := networked(t)
	for i := range 3 {
		g.create("Network", fmt.Sprint("n", i), map[string]any{"mtu": 1500})
	}
	g.create("Subnet", "s", map[string]any{"networkRef": "n0", "cidr": "10.0.0.0/24", "ipVersion": 4})
	oc, errs := g.prepare(`{ networks(filter: {spec: {resource: {mtu: {gt: 1}}}}) { totalCount } subnets { nodes { metadata { name } } } }`, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	next, ctx := g.exec.DispatchOperation(budget.With(t.Context(), budget.New(budget.Limits{budget.Rows: 2})), oc)
	res := next(ctx)
	if string(res.Data) != `{"networks":null,"subnets":{"nodes":[{"metadata":{"name":"s"}}]}}` || len(res.Errors) != 1 {
		t.Fatalf("%s %v", res.Data, res.Errors)
	}
	var e *failure.Error
	if err := res.Errors[0]; err.Path.String() != "networks" || !errors.As(err, &e) || e.Code != failure.CodeLimitExceeded || e.Limit != 2 || e.Setting != "limit-rows" {
		t.Errorf("%+v %+v", err, e)
	}
}

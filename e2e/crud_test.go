package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	createNetwork = `mutation($input: CreateNetworkInput!) { createNetwork(input: $input) { clientMutationId warnings { code message path field } network { id kind apiVersion metadata { namespace name uid revision generation } spec { managementPolicy resource { mtu tags } } } } }`
	updateNetwork = `mutation($input: UpdateNetworkInput!) { updateNetwork(input: $input) { network { metadata { revision generation } spec { resource { mtu } } } } }`
	deleteNetwork = `mutation($input: DeleteNetworkInput!) { deleteNetwork(input: $input) { deletedNetworkId state network { metadata { name } } } }`
)

func spec(resource map[string]any) map[string]any {
	if resource == nil {
		resource = map[string]any{}
	}
	return map[string]any{
		"cloudCredentialsRef": map[string]any{"secretName": "cloud-config", "cloudName": "openstack"},
		"managementPolicy":    "MANAGED",
		"resource":            resource,
	}
}

func (g *gateway) create(name string, resource map[string]any) answer {
	g.t.Helper()
	return g.post(createNetwork, map[string]any{"input": map[string]any{"name": name, "spec": spec(resource), "clientMutationId": "c1"}})
}

func (g *gateway) update(name, revision string, resource map[string]any) answer {
	g.t.Helper()
	return g.post(updateNetwork, map[string]any{"input": map[string]any{"name": name, "expectedRevision": revision, "spec": spec(resource)}})
}

func TestAFreshGatewayAnswersTheFirstQuery(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	a := g.post(`{ networks(first: 1) { edges { node { id } } } }`, nil)
	if len(a.Errors) > 0 || a.Status != 200 || len(a.get("networks", "edges").([]any)) != 0 {
		t.Fatalf("%+v", a)
	}
}

func TestTheVerbsByHTTP(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	created := g.create("net-a", map[string]any{"mtu": 1400, "tags": []string{"x"}})
	if created.codes() != "" || created.get("createNetwork", "clientMutationId") != "c1" || created.get("createNetwork", "network", "metadata", "namespace") != "default" {
		t.Fatalf("create: %+v", created)
	}
	first := created.get("createNetwork", "network", "metadata", "revision").(string)
	id := created.get("createNetwork", "network", "id").(string)
	if again := g.create("net-a", nil); again.codes() != "ALREADY_EXISTS" {
		t.Errorf("create again: %+v", again)
	}
	updated := g.update("net-a", first, map[string]any{"mtu": 1500})
	second, _ := updated.get("updateNetwork", "network", "metadata", "revision").(string)
	if updated.codes() != "" || second == first || updated.get("updateNetwork", "network", "metadata", "generation") != 2.0 {
		t.Fatalf("update: %+v", updated)
	}
	for _, stale := range []string{first, "rubbish", ""} {
		a := g.update("net-a", stale, map[string]any{"mtu": 1600})
		if a.codes() != "CONFLICT" || a.Errors[0].Extensions["currentRevision"] != second || a.Errors[0].Extensions["retryable"] != false {
			t.Errorf("update at %q: %+v", stale, a)
		}
	}
	three := g.create("net-b", map[string]any{"mtu": 1, "name": "a,b", "dnsDomain": "!"})
	if three.codes() != "VALIDATION_FAILED VALIDATION_FAILED VALIDATION_FAILED" {
		t.Errorf("three violations: %+v", three)
	}
	for i, path := range []string{"spec.resource.name", "spec.resource.mtu", "spec.resource.dnsDomain"} {
		found := false
		for _, e := range three.Errors {
			found = found || e.Extensions["field"] == "input."+path && len(e.Extensions["path"].([]any)) == 4 && e.Extensions["rule"] != nil && e.Extensions["requestId"] != ""
		}
		if !found {
			t.Errorf("violation %d: %s is not among %+v", i, path, three.Errors)
		}
	}
	g.create("net-c", map[string]any{"projectRef": "p1"})
	revision := g.post(`{ network(name: "net-c") { metadata { revision } } }`, nil).get("network", "metadata", "revision").(string)
	if a := g.update("net-c", revision, map[string]any{"projectRef": "p2"}); a.codes() != "VALIDATION_FAILED" || a.Errors[0].Extensions["rule"] != "immutable" {
		t.Errorf("immutable field: %+v", a)
	}
	node := g.post(`query($id: ID!) { node(id: $id) { __typename id ... on Network { metadata { name } } } resource(kind: "network", name: "net-a") { id kind manifest } nobody: network(name: "nobody") { id } }`, map[string]any{"id": id})
	if node.codes() != "" || node.get("node", "id") != id || node.get("node", "__typename") != "Network" || node.get("resource", "id") != id || node.get("nobody") != nil {
		t.Errorf("node: %+v", node)
	}
	if a := g.post(`{ network(name: "") { id } }`, nil); a.codes() != "VALIDATION_FAILED" {
		t.Errorf("empty name: %+v", a)
	}
	if a := g.post(deleteNetwork, map[string]any{"input": map[string]any{"name": "net-a", "expectedRevision": first}}); a.codes() != "CONFLICT" {
		t.Errorf("delete at a stale revision: %+v", a)
	}
	deleted := g.post(deleteNetwork, map[string]any{"input": map[string]any{"name": "net-a", "expectedRevision": second}})
	if deleted.codes() != "" || deleted.get("deleteNetwork", "deletedNetworkId") != id || deleted.get("deleteNetwork", "state") != "DELETED" || deleted.get("deleteNetwork", "network", "metadata", "name") != "net-a" {
		t.Errorf("delete: %+v", deleted)
	}
	if a := g.post(deleteNetwork, map[string]any{"input": map[string]any{"name": "net-a"}}); a.codes() != "NOT_FOUND" {
		t.Errorf("delete again: %+v", a)
	}
}

func TestOneOfTwentyConcurrentUpdatesWins(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	r := g.create("net-a", map[string]any{"mtu": 1400}).get("createNetwork", "network", "metadata", "revision").(string)
	var won, conflicts atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a, err := g.send(updateNetwork, map[string]any{"input": map[string]any{"name": "net-a", "expectedRevision": r, "spec": spec(map[string]any{"mtu": 1500 + i})}})
			switch {
			case err != nil:
				t.Error(err)
			case a.codes() == "":
				won.Add(1)
			case a.codes() == "CONFLICT":
				conflicts.Add(1)
			default:
				t.Errorf("%+v", a)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || conflicts.Load() != 19 {
		t.Errorf("%d won, %d conflicts", won.Load(), conflicts.Load())
	}
}

func TestAThousandNetworksAreWalkedWhileOthersComeAndGo(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	const total, workers = 1000, 8
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < total; i += workers {
				if a, err := g.send(createNetwork, map[string]any{"input": map[string]any{"name": fmt.Sprintf("n%04d", i), "spec": spec(map[string]any{})}}); err != nil || a.codes() != "" {
					t.Errorf("%v %+v", err, a)
				}
			}
		})
	}
	wg.Wait()
	stop := make(chan struct{})
	var churned atomic.Int32
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("n%04d-other", i*37%total)
			_, err1 := g.send(createNetwork, map[string]any{"input": map[string]any{"name": name, "spec": spec(map[string]any{})}})
			_, err2 := g.send(deleteNetwork, map[string]any{"input": map[string]any{"name": name}})
			if err1 != nil || err2 != nil {
				t.Error(err1, err2)
			}
			churned.Add(1)
		}
	})
	check := func(how string, got []string) {
		t.Helper()
		if len(got) != total {
			t.Errorf("%s: %d networks, want %d", how, len(got), total)
			return
		}
		for i, name := range got {
			if name != fmt.Sprintf("n%04d", i) {
				t.Errorf("%s: network %d is %s", how, i, name)
				return
			}
		}
	}
	forward := g.walk(`query($c: String) { networks(first: 7, after: $c) { edges { node { metadata { name } } } pageInfo { more: hasNextPage cursor: endCursor } } }`)
	check("forward by 7", forward)
	backward := g.walk(`query($c: String) { networks(last: 13, before: $c) { edges { node { metadata { name } } } pageInfo { more: hasPreviousPage cursor: startCursor } } }`)
	sorted := make([]string, 0, len(backward))
	for page := range chunks(backward) {
		sorted = append(page, sorted...)
	}
	check("backward by 13", sorted)
	close(stop)
	wg.Wait()
	if churned.Load() == 0 {
		t.Error("nothing else was written meanwhile")
	}
}

// walk follows the pages and returns the names without the churn, with an
// empty string between two pages.
func (g *gateway) walk(query string) []string {
	g.t.Helper()
	var out []string
	var cursor any
	backward := strings.Contains(query, "before")
	for {
		a := g.post(query, map[string]any{"c": cursor})
		if a.codes() != "" {
			g.t.Fatalf("%+v", a)
		}
		for _, e := range a.get("networks", "edges").([]any) {
			if name := e.(map[string]any)["node"].(map[string]any)["metadata"].(map[string]any)["name"].(string); len(name) == 5 {
				out = append(out, name)
			}
		}
		if backward {
			out = append(out, "")
		}
		if a.get("networks", "pageInfo", "more") != true {
			return out
		}
		cursor = a.get("networks", "pageInfo", "cursor")
	}
}

// chunks cuts a backward walk at its pages.
func chunks(names []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		var page []string
		for _, n := range names {
			if n != "" {
				page = append(page, n)
				continue
			}
			if !yield(page) {
				return
			}
			page = nil
		}
	}
}

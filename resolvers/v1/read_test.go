package resolvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
)

func TestOneResourceIsTheSameByNameByIDAndByKind(t *testing.T) {
	g := open(t)
	id := g.create("default", "net-a").at("createNetwork.network.id")
	a := g.must(`query($id: ID!) {
		network(name: "net-a") { ...all }
		node(id: $id) { id ...all }
		resource(kind: "networks", name: "net-a") { id kind manifest ...all }
	}
	fragment all on Network { id kind subKind version metadata { namespace name uid revision generation createdAt labels { key } } spec { managementPolicy cloudCredentialsRef { cloudName } } status { id } }`, "id", id)
	want, _ := a.at("network").(map[string]any)
	if want == nil || want["kind"] != "Network" || want["version"] != "v1alpha1" || want["status"] != nil {
		t.Fatalf("network: %v", want)
	}
	resource, _ := a.at("resource").(map[string]any)
	if text, _ := resource["manifest"].(string); !strings.Contains(text, "kind: Network") {
		t.Errorf("manifest: %q", text)
	}
	delete(resource, "manifest")
	for _, field := range []string{"node", "resource"} {
		if diff := cmp.Diff(want, a.at(field)); diff != "" {
			t.Errorf("%s (-network +%s):\n%s", field, field, diff)
		}
	}
	meta := want["metadata"].(map[string]any)
	if meta["namespace"] != "default" || meta["generation"] != 1.0 || !strings.HasSuffix(meta["createdAt"].(string), "Z") {
		t.Errorf("metadata: %v", meta)
	}
}

func TestWhatIsAbsentIsNullWithoutAnError(t *testing.T) {
	g := open(t)
	a := g.must(`query($id: ID!) { network(name: "x") { id } node(id: $id) { id } resource(kind: "Network", name: "x") { id } }`,
		"id", service.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "x"}))
	if diff := cmp.Diff(map[string]any{"network": nil, "node": nil, "resource": nil}, a.data); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorOfAReadIsTheServicesOwn(t *testing.T) {
	g := open(t)
	for query, want := range map[string]service.Code{
		`{ node(id: "nonsense") { id } }`:                  service.CodeBadUserInput,
		`{ resource(kind: "Widget", name: "x") { id } }`:   service.CodeBadUserInput,
		`{ network(name: "") { id } }`:                     service.CodeValidationFailed,
		`{ networks(first: -1) { totalCount } }`:           service.CodeBadUserInput,
		`{ networks(first: 1, last: 1) { totalCount } }`:   service.CodeBadUserInput,
		`{ networks(after: "nonsense") { totalCount } }`:   service.CodeCursorInvalid,
		`{ networks(namespace: "No!") { totalCount } }`:    service.CodeValidationFailed,
		`{ network(namespace: "NO", name: "") { id } }`:    service.CodeValidationFailed,
		`{ networks(first: 1001) { edges { cursor } } }`:   service.CodeBadUserInput,
		`{ networks(last: 1001) { edges { cursor } } }`:    service.CodeBadUserInput,
		`{ resource(kind: "Network", name: "") { kind } }`: service.CodeValidationFailed,
	} {
		if a := g.do(query); a.code(0) != want {
			t.Errorf("%s: %v, want %s", query, a.errors, want)
		}
	}
}

func TestAPageHasEdgesNodesAndWhatWasAskedFor(t *testing.T) {
	g := open(t)
	for i := range 5 {
		g.create("default", fmt.Sprintf("net-%d", i))
	}
	g.create("other", "net-0")
	const fields = `{ totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } edges { cursor node { metadata { name } } } nodes { metadata { namespace name } } }`
	a := g.must(`{ networks(namespace: "default", first: 2) ` + fields + ` }`)
	if a.at("networks.totalCount") != 5.0 || a.at("networks.pageInfo.hasNextPage") != true || a.at("networks.pageInfo.hasPreviousPage") != false {
		t.Errorf("first page: %v", a.data)
	}
	if a.at("networks.edges.1.node.metadata.name") != "net-1" || a.at("networks.nodes.1.metadata.name") != "net-1" || a.at("networks.nodes.2") != nil {
		t.Errorf("first page: %v", a.data)
	}
	if a.at("networks.edges.1.cursor") != a.at("networks.pageInfo.endCursor") {
		t.Errorf("cursors: %v", a.data)
	}
	a = g.must(`query($at: String) { networks(namespace: "default", last: 2, before: $at) `+fields+` }`, "at", a.at("networks.edges.1.cursor"))
	if a.at("networks.nodes.0.metadata.name") != "net-0" || a.at("networks.nodes.1") != nil || a.at("networks.pageInfo.hasNextPage") != true {
		t.Errorf("page before net-1: %v", a.data)
	}
	if a := g.must(`{ networks ` + fields + ` }`); a.at("networks.totalCount") != 6.0 || a.at("networks.nodes.5.metadata.namespace") != "other" {
		t.Errorf("all namespaces: %v", a.data)
	}
}

func TestAPageCostsOneRangeAndMoreOnlyWhatIsAskedFor(t *testing.T) {
	g := open(t)
	for i := range 10 {
		g.create("default", fmt.Sprintf("net-%d", i))
	}
	for _, c := range []struct {
		query          string
		ranges, counts int64
	}{
		{`{ networks(first: 5) { nodes { id manifest spec { resource { tags } } } } }`, 1, 0},
		{`{ networks(first: 5) { nodes { id } pageInfo { hasNextPage } } }`, 1, 0},
		{`{ networks(first: 5) { nodes { id } totalCount } }`, 1, 1},
		{`{ networks(first: 5) { nodes { id } pageInfo { hasNextPage hasPreviousPage } totalCount } }`, 2, 1},
	} {
		gets, ranges, counts := g.store.gets.Load(), g.store.ranges.Load(), g.store.counts.Load()
		g.must(c.query)
		gets, ranges, counts = g.store.gets.Load()-gets, g.store.ranges.Load()-ranges, g.store.counts.Load()-counts
		if gets != 0 || ranges != c.ranges || counts != c.counts {
			t.Errorf("%s: %d gets, %d ranges, %d counts; want 0, %d, %d", c.query, gets, ranges, counts, c.ranges, c.counts)
		}
	}
}

func TestKindsAreThoseOfTheCatalogue(t *testing.T) {
	a := open(t).must(`{ kinds { name plural singular group version scope verbs description } }`)
	want := map[string]any{
		"name": "Network", "plural": "networks", "singular": "network", "group": "openstack.k-orc.cloud", "version": "v1alpha1",
		"scope": "NAMESPACED", "verbs": []any{"GET", "LIST", "WATCH", "CREATE", "UPDATE", "PATCH", "UPSERT", "STATUS", "DELETE"}, "description": "An isolated layer 2 network.",
	}
	if diff := cmp.Diff(want, a.at("kinds.0")); diff != "" {
		t.Error(diff)
	}
}

func TestAManifestIsWrittenAsAsked(t *testing.T) {
	g := open(t)
	g.create("default", "net-a")
	a := g.must(`{ network(name: "net-a") { yaml: manifest json: manifest(format: JSON) } }`)
	if text, _ := a.at("network.json").(string); !strings.HasPrefix(text, "{") {
		t.Errorf("json: %q", text)
	}
	yaml, _ := a.at("network.yaml").(string)
	if a := g.must(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, "m", yaml); a.at("applyManifest.outcome") != "UNCHANGED" {
		t.Errorf("applied again: %v", a.data)
	}
}

// put stores a body as another gateway or a controller may have.
func (g *gateway) put(name string, body *backend.Body) {
	g.t.Helper()
	raw, err := body.Encode()
	if err != nil {
		g.t.Fatal(err)
	}
	_, err = g.store.Apply(g.t.Context(), backend.Batch{RequestID: "put-" + name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
		Key: backend.Key{Kind: "Network", Namespace: "default", Name: name}, Do: backend.DeedPut, Put: backend.Put{UID: "u-" + name, Body: raw},
	}}})
	if err != nil {
		g.t.Fatal(err)
	}
}

func TestWhatIsStoredIsShownAsItIs(t *testing.T) {
	g := open(t)
	g.put("net-a", &backend.Body{
		Version: "v1alpha0", Metadata: backend.BodyMetadata{Generation: 7},
		Spec:   []byte(`{"cloudCredentialsRef": {"cloudName": "c", "secretName": "s", "new": 1}, "managementPolicy": "half\u0001managed", "later": {"a": []}}`),
		Status: []byte(`{"id": "", "conditions": [{"type": "Available", "status": "Perhaps", "observedGeneration": 9007199254740991}], "resource": {"mtu": 9000}}`),
	})
	a := g.must(`{ network(name: "net-a") { version metadata { generation } spec { managementPolicy } status { id conditions { type status reason observedGeneration } resource { mtu tags } } } }`)
	want := map[string]any{
		"version": "v1alpha0", "metadata": map[string]any{"generation": 7.0},
		"spec": map[string]any{"managementPolicy": "half\u0001managed"},
		"status": map[string]any{
			"id": "", "resource": map[string]any{"mtu": 9000.0, "tags": nil},
			"conditions": []any{map[string]any{"type": "Available", "status": "Perhaps", "reason": nil, "observedGeneration": 9007199254740991.0}},
		},
	}
	if diff := cmp.Diff(want, a.at("network")); diff != "" {
		t.Error(diff)
	}
}

func TestAStatusThatCannotBeReadDoesNotHideAWrite(t *testing.T) {
	g := open(t)
	g.put("net-a", &backend.Body{
		Version: "v1alpha1", Metadata: backend.BodyMetadata{Generation: 1},
		Spec:   []byte(`{"cloudCredentialsRef": {"cloudName": "c", "secretName": "s"}, "resource": {}}`),
		Status: []byte(`{"resource": {"mtu": "many"}}`),
	})
	if a := g.do(`{ network(name: "net-a") { id } }`); a.code(0) != service.CodeUnreadable || a.at("network") != nil {
		t.Errorf("read: %v %v", a.data, a.errors)
	}
	if a := g.must(`{ networks { totalCount nodes { id } } }`); len(a.at("networks.nodes").([]any)) != 0 {
		t.Errorf("listed: %v", a.data)
	}
	got, err := g.store.Get(t.Context(), backend.Key{Kind: "Network", Namespace: "default", Name: "net-a"})
	if err != nil {
		t.Fatal(err)
	}
	a := g.must(`mutation($r: String!) { updateNetwork(input: {name: "net-a", expectedRevision: $r, spec: {`+credentials+`, resource: {mtu: 1500}}}) { network { id } warnings } }`, "r", got[0].Revision.String())
	if a.at("updateNetwork.network") != nil || a.at("updateNetwork.warnings") == nil {
		t.Errorf("updated: %v", a.data)
	}
	if a := g.must(`mutation { deleteNetwork(input: {name: "net-a"}) { network { id } state deletedNetworkId } }`); a.at("deleteNetwork.state") != "DELETED" || a.at("deleteNetwork.deletedNetworkId") == nil {
		t.Errorf("deleted: %v", a.data)
	}
}

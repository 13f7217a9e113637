package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds"
)

const campusKinds = `type Site @resource(plural: "sites", group: "example.org", version: "v1", scope: GLOBAL) { spec: SiteSpec! }
type SiteSpec { title: String @constraint(maxLength: 9) }
type Room @resource(plural: "rooms", group: "example.org", version: "v1", scope: NAMESPACED) { spec: RoomSpec! }
type RoomSpec {
  siteRef: String @ref(kind: "Site", inverse: "rooms", guarded: true)
  nearRefs: [String!] @list(type: SET) @constraint(maxItems: 3) @ref(kind: "Site", as: "near")
}
`

func TestFieldsLeadFromANamespaceToAGlobalKindAndBack(t *testing.T) {
	catalogue, err := kinds.Load(&ast.Source{Name: "campus.graphqls", Input: campusKinds})
	if err != nil {
		t.Fatal(err)
	}
	store := &countingStore{}
	g := newGateway(t, catalogue, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	})
	for _, site := range []string{"s", "t"} {
		g.do(fmt.Sprintf(`mutation { createSite(input: {name: %q, spec: {title: %q}}) { site { id } } }`, site, site+"!"), nil)
	}
	for _, floor := range []string{"f1", "f2", "f3"} {
		for _, site := range []string{"s", "t"} {
			g.do(fmt.Sprintf(`mutation { createRoom(input: {namespace: %q, name: "at-%s", spec: {siteRef: %q, nearRefs: ["t", "s", "u"]}}) { room { id } } }`, floor, site, site), nil)
		}
	}
	store.take()
	const room = `{"site":{"metadata":{"name":"%s","namespace":null},"spec":{"title":"%[1]s!"}},"near":{"nodes":[{"metadata":{"name":"s"}},{"metadata":{"name":"t"}}]}}`
	at, to := fmt.Sprintf(room, "s"), fmt.Sprintf(room, "t")
	g.wants(`{ rooms { nodes { site { metadata { name namespace } spec { title } } near { nodes { metadata { name } } } } } }`,
		`{"rooms":{"nodes":[`+at+`,`+to+`,`+at+`,`+to+`,`+at+`,`+to+`]}}`)
	if got := store.take(); got != "1 ranges Room, get 2 Site, get 3 Site" {
		t.Errorf("calls: %s", got)
	}
	g.wants(`{ site(name: "s") { rooms { totalCount nodes { metadata { namespace name } } } one: rooms(namespace: "f2", filter: {name: {eq: "at-s"}}) { totalCount nodes { metadata { namespace } } } } }`,
		`{"site":{"rooms":{"totalCount":3,"nodes":[{"metadata":{"namespace":"f1","name":"at-s"}},{"metadata":{"namespace":"f2","name":"at-s"}},{"metadata":{"namespace":"f3","name":"at-s"}}]},"one":{"totalCount":1,"nodes":[{"metadata":{"namespace":"f2"}}]}}}`)
	if got := g.do(`{ site(name: "s") { rooms(namespace: "No") { totalCount } } }`, nil); len(got.Errors) != 1 {
		t.Errorf("a namespace that cannot be: %s", got.Data)
	}
	site := kind.GlobalID(backend.Key{Kind: "Site", Name: "s"})
	g.wants(fmt.Sprintf(`{ dependencyTree(id: %q, direction: DEPENDENTS) { dependents { namespace name state guarded } } }`, site),
		`{"dependencyTree":{"dependents":[{"namespace":"f1","name":"at-s","state":"BOUND","guarded":true},{"namespace":"f2","name":"at-s","state":"BOUND","guarded":true},{"namespace":"f3","name":"at-s","state":"BOUND","guarded":true},{"namespace":"f1","name":"at-s","state":"BOUND","guarded":false},{"namespace":"f1","name":"at-t","state":"BOUND","guarded":false},{"namespace":"f2","name":"at-s","state":"BOUND","guarded":false},{"namespace":"f2","name":"at-t","state":"BOUND","guarded":false},{"namespace":"f3","name":"at-s","state":"BOUND","guarded":false},{"namespace":"f3","name":"at-t","state":"BOUND","guarded":false}]}}`)
	g.wants(`{ room(namespace: "f1", name: "at-t") { dependencies { nodes { namespace name path state } } } site(name: "t") { blockedBy { totalCount nodes { namespace name } } } }`,
		`{"room":{"dependencies":{"nodes":[{"namespace":null,"name":"t","path":"spec.siteRef","state":"BOUND"},{"namespace":null,"name":"s","path":"spec.nearRefs","state":"BOUND"},{"namespace":null,"name":"t","path":"spec.nearRefs","state":"BOUND"},{"namespace":null,"name":"u","path":"spec.nearRefs","state":"MISSING"}]}},"site":{"blockedBy":{"totalCount":3,"nodes":[{"namespace":"f1","name":"at-t"},{"namespace":"f2","name":"at-t"},{"namespace":"f3","name":"at-t"}]}}}`)
	events := g.events(`subscription { roomChanges(namespace: "f1", snapshot: true, filter: {spec: {siteRef: {eq: "s"}}}) { type room { metadata { name } site { spec { title } } } } }`, nil, 3)
	want := []string{`{"roomChanges":{"type":"RESET","room":null}}`, `{"roomChanges":{"type":"SNAPSHOT","room":{"metadata":{"name":"at-s"},"site":{"spec":{"title":"s!"}}}}}`, `{"roomChanges":{"type":"IN_SYNC","room":null}}`}
	if d := cmp.Diff(want, events); d != "" {
		t.Error(d)
	}
	got := g.do(`mutation { deleteSite(input: {name: "t"}) { state blockedBy { nodes { namespace name } } } }`, nil)
	if want := `{"deleteSite":{"state":"PENDING","blockedBy":{"nodes":[{"namespace":"f1","name":"at-t"},{"namespace":"f2","name":"at-t"},{"namespace":"f3","name":"at-t"}]}}}`; string(got.Data) != want {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}

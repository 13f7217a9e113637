package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/server"
)

// role creates or replaces the role of a name, with one rule.
func (c *changing) role(svc *service.Service, name string, kinds, verbs []any) {
	c.Helper()
	root := access.Caller{Identity: &access.Identity{Name: "token:root", Groups: []string{admins}}}
	spec := map[string]any{"rules": []any{map[string]any{"kinds": kinds, "verbs": verbs}}}
	request := service.UpsertRequest{Identity: kind.Identity{Kind: access.RoleKind, Name: name}, Spec: spec}
	if _, err := svc.Writer.Upsert(access.WithCaller(c.Context(), root), request); err != nil {
		c.Fatal(err)
	}
}

// TestMajors_RolesOfKindsHoldInBoth gives rights to some kinds: one of both majors, one of the older one and one of the
// newer one.
func TestMajors_RolesOfKindsHoldInBoth(t *testing.T) {
	text, identities := token(t)
	c := openChangingOn(t, openMemory(t), server.Config{Identities: identities})
	c.token = text
	catalogue, svc := c.withFolders(major2, "", majors1and2())
	g, err := c.server.Prepare(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	c.server.Replace(g)
	c.run(svc)
	c.bind(svc, "admin")
	for _, one := range []struct{ path, mutation string }{
		{"/v1/graphql", `createRack(input: {name: "r", spec: {height: 1}}) { rack { id } }`},
		{"/v1/graphql", `createThing(input: {name: "t", spec: {price: 1, rackRef: "r"}}) { thing { id } }`},
		{"/v1/graphql", `createShelf(input: {name: "s", spec: {width: 1}}) { shelf { id } }`},
		{"/v2/graphql", `createHidden(input: {name: "h", spec: {thingRef: "t"}}) { hidden { id } }`},
	} {
		c.answered(one.path, "mutation { "+one.mutation+" }")
	}
	reads := map[string]string{
		"Thing":  `{ things { nodes { metadata { name } } } }`,
		"Rack":   `{ racks { nodes { metadata { name } } } }`,
		"Shelf":  `{ shelves { nodes { metadata { name } } } }`,
		"Hidden": `{ hiddens { nodes { metadata { name } } } }`,
	}
	writes := map[string]string{
		"/v1/graphql": `mutation { upsertThing(input: {name: "t", spec: {price: 2}}) { thing { id } } }`,
		"/v2/graphql": `mutation { upsertThing(input: {name: "t", spec: {cost: 3}}) { thing { id } } }`,
		"/graphql":    `mutation { upsertThing(input: {name: "t", spec: {cost: 4}}) { thing { id } } }`,
	}
	has := map[string]string{"/v1/graphql": "Thing Rack Shelf", "/v2/graphql": "Thing Shelf Hidden", "/graphql": "Thing Shelf Hidden"}
	for _, given := range []struct {
		kinds, verbs []any
		writes       bool
	}{
		{[]any{"Thing"}, []any{"GET", "LIST"}, false},
		{[]any{"Thing"}, []any{"GET", "LIST", "UPSERT"}, true},
		{[]any{"Rack"}, []any{"GET", "LIST", "UPSERT"}, false},
		{[]any{"Hidden", "Shelf"}, []any{"GET", "LIST", "UPSERT"}, false},
		{[]any{"*"}, []any{"GET", "LIST", "UPSERT"}, true},
	} {
		c.role(svc, "some", given.kinds, given.verbs)
		c.bind(svc, "some")
		for path, kinds := range has {
			for name, query := range reads {
				got := c.ask(c.Handler, path, query).Body.String()
				may := given.kinds[0] == "*"
				for _, k := range given.kinds {
					may = may || k == name
				}
				want := `"nodes":[{`
				switch {
				case !strings.Contains(kinds, name):
					want = "Cannot query field"
				case !may:
					want = `"FORBIDDEN"`
				}
				if !strings.Contains(got, want) {
					t.Errorf("%v may %v: %s of %s is answered %s", given.kinds, given.verbs, name, path, got)
				}
			}
			got := c.ask(c.Handler, path, writes[path]).Body.String()
			if strings.Contains(got, `"FORBIDDEN"`) == given.writes || strings.Contains(got, `"errors"`) == given.writes {
				t.Errorf("%v may %v: an upsert by %s is answered %s", given.kinds, given.verbs, path, got)
			}
		}
	}
}

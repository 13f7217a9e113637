package main

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/cmd/sluice/admin"
)

const (
	createShelf = `mutation { createShelf(input: {name: "a", spec: {width: 1, label: "x"}}) { shelf { id } } }`
	createBox   = `mutation { createBox(input: {name: "a", spec: {size: 1}}) { box { id } } }`
	box         = `type Box @resource(plural: "boxes", group: "example.org", version: "v1", scope: NAMESPACED) { spec: BoxSpec! }
type BoxSpec { size: Int }
`
)

// TestNothingIsWrittenThatTheNextCatalogueWouldLookForElsewhere: from before the gate
// looks at what is stored until the catalogue is served, or is refused.
func TestNothingIsWrittenThatTheNextCatalogueWouldLookForElsewhere(t *testing.T) {
	secretive := hiddenLabel() + box
	for name, c := range map[string]struct{ before, then string }{
		"another scope": {shelves + box, strings.Replace(shelves, "scope: NAMESPACED", "scope: GLOBAL", 1) + box},
		"sensitive":     {secretive, strings.Replace(secretive, "scope: NAMESPACED", "scope: NAMESPACED, sensitive: true", 1)},
	} {
		for _, flag := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", accepted", false: ", refused"}[flag], func(t *testing.T) {
				s := openShop(t, c.before)
				looked := false
				s.store.list = func(r backend.Range) {
					if looked || r.Kind != "Shelf" {
						return
					}
					looked = true
					if got := s.post(createShelf); !strings.Contains(got, `"code":"UNAVAILABLE"`) || !strings.Contains(got, `"retryable":true`) {
						t.Errorf("while the gate looks: %s", got)
					}
					if got := s.post(createBox); strings.Contains(got, "errors") {
						t.Errorf("another kind: %s", got)
					}
				}
				want := map[bool]admin.Result{true: admin.Replaced, false: admin.Refused}[flag]
				if a := s.apply(c.then, flag); a.Result != want || !looked {
					t.Fatalf("%v, looked: %v", a, looked)
				}
				if got := s.post(createShelf); strings.Contains(got, "errors") {
					t.Errorf("afterwards: %s", got)
				}
				if got := s.post(`{ shelves { nodes { metadata { name namespace } } } }`); !strings.Contains(got, `"name":"a"`) {
					t.Errorf("it is listed as %s", got)
				}
				if err := s.accepted(true); err != nil {
					t.Errorf("the next start is refused: %v", err)
				}
			})
		}
	}
}

func TestADryRunKeepsNoWritesBack(t *testing.T) {
	s := openShop(t, shelves)
	s.store.list = func(backend.Range) {
		s.store.list = func(backend.Range) {}
		if got := s.post(createShelf); strings.Contains(got, "errors") {
			t.Errorf("meanwhile: %s", got)
		}
	}
	next := strings.Replace(shelves, "scope: NAMESPACED", "scope: GLOBAL", 1)
	if a := s.catalogues.Reload(t.Context(), admin.Request{DryRun: true, Folder: "next", Files: map[string]string{"shelves.graphqls": next}}); a.Result != admin.Refused {
		t.Errorf("%v", a)
	}
	if len(s.beside()) > 0 || s.sdl() != shelves {
		t.Errorf("beside the folder there is %v", s.beside())
	}
}

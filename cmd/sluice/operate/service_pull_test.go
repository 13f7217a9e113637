package operate

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

// describedService is a service whose Describe is given.
type describedService struct {
	*ownertest.Service
	says owner.Description
}

func (s *describedService) Describe(context.Context) (owner.Description, error) { return s.says, nil }

// describe serves a service with this SDL and these kinds, and returns its address.
func describe(t *testing.T, sdl string, kinds ...owner.Kind) string {
	t.Helper()
	server := httptest.NewServer(remote.Handler(&describedService{
		ownertest.New("storage"), owner.Description{Service: "storage", Kinds: kinds, SDL: sdl},
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// resource returns a kind in SDL whose @resource has more arguments.
func resource(more string) string {
	return strings.Replace(shelves, "scope: NAMESPACED)", "scope: NAMESPACED"+more+")", 1)
}

func TestServicePull_WritesTheVerbsThatTheServiceCanCarryOut(t *testing.T) {
	const all = "GET, LIST, WATCH, CREATE, UPDATE, PATCH, UPSERT, DELETE"
	full := ownertest.Full("Shelf")
	for name, one := range map[string]struct {
		can      owner.Kind
		more     string
		expected string
	}{
		"everything": {full, ``, `, service: "storage", verbs: [` + all + `]`},
		"without changes": {
			owner.Kind{Name: "Shelf", Writes: true, Conditional: true}, ``,
			`, service: "storage", verbs: [` + all + `]`,
		},
		"unconditional": {
			owner.Kind{Name: "Shelf", Writes: true}, ``,
			`, service: "storage", verbs: [GET, LIST, WATCH, CREATE, UPSERT, DELETE]`,
		},
		"read-only": {owner.Kind{Name: "Shelf"}, ``, `, service: "storage", verbs: [GET, LIST, WATCH]`},
		"fewer verbs": {
			owner.Kind{Name: "Shelf", Writes: true}, `, verbs: [PATCH, GET, CREATE]`,
			`, service: "storage", verbs: [GET, CREATE]`,
		},
		"excepted verbs": {
			full, `, exceptVerbs: [UPSERT, STATUS], shortNames: ["sh"]`,
			`, shortNames: ["sh"], service: "storage", verbs: [GET, LIST, WATCH, CREATE, UPDATE, PATCH, DELETE]`,
		},
		"another service": {full, `, service: "other", verbs: GET`, `, service: "storage", verbs: [GET]`},
		"all as it is": {
			full, `, # as it (is
    service: "storage"  verbs: [GET,LIST]`, `, # as it (is
    service: "storage"  verbs: [GET,LIST]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := commandtest.Run(t, newRoot, "service", "pull", describe(t, resource(one.more), one.can))
			if diff := cmp.Diff(resource(one.expected), out); diff != "" || code != 0 || errOut != "" {
				t.Errorf("exit %d %s (-expected +written):\n%s", code, errOut, diff)
			}
		})
	}
}

func TestServicePull_LeavesAllElseAsItIs(t *testing.T) {
	sdl := "# Größe ä 😀\n\n" + `"""
@resource(plural: "none") \""" )
"""
type Shelf
  @resource( # the (first
    plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED, shortNames: ["\u0073h"]
  )
  # kept (too
  @column(title: "WIDTH", path: "spec.width") {
  spec: ShelfSpec!
}

type ShelfSpec { width: Int }`
	address := describe(t, sdl, owner.Kind{Name: "Shelf"})
	expected := "# Größe ä 😀\n\n" + `"""
@resource(plural: "none") \""" )
"""
type Shelf
  @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED, shortNames: ["sh"], ` +
		`service: "crm", verbs: [GET, LIST, WATCH])
  # kept (too
  @column(title: "WIDTH", path: "spec.width") {
  spec: ShelfSpec!
}

type ShelfSpec { width: Int }
`
	to := filepath.Join(t.TempDir(), "storage.graphqls")
	for range 2 { // the second time, it replaces the file
		out := commandtest.Must(t, newRoot, "service", "pull", address, "--name", "crm", "--to", to)
		if out != to+": 1 kind of the service crm\n" {
			t.Errorf("it says %q", out)
		}
		written, err := os.ReadFile(to)
		if diff := cmp.Diff(expected, string(written)); diff != "" || err != nil {
			t.Errorf("%v (-expected +written):\n%s", err, diff)
		}
	}
	commandtest.Must(t, newRoot, "catalogue", "check", filepath.Dir(to))
}

func TestServicePull_ChecksTheKindsWithThoseOfTheCatalogue(t *testing.T) {
	sdl := strings.Replace(shelves, "label:", "roomRef: String @ref(kind: \"Room\")\n  label:", 1)
	address := describe(t, sdl, ownertest.Full("Shelf"))
	dir := t.TempDir()
	to := filepath.Join(dir, "storage.graphqls")
	_, errOut, code := commandtest.Run(t, newRoot, "service", "pull", address, "--to", to)
	if code == 0 || !strings.Contains(errOut, "storage.graphqls:7: ") || !strings.Contains(errOut, "Room") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("what cannot be served was written")
	}
	rooms := strings.NewReplacer("Shelf", "Room", "shelves", "rooms").Replace(shelves)
	commandtest.WriteFile(t, dir, "rooms.graphqls", rooms)
	commandtest.WriteFile(t, dir, "storage.graphqls", "type Old { it: Int }")
	commandtest.Must(t, newRoot, "service", "pull", address, "--catalogue", dir, "--to", to)
	commandtest.Must(t, newRoot, "catalogue", "check", dir)
}

func TestServicePull_SaysWhatItCannotTake(t *testing.T) {
	full := ownertest.Full("Shelf")
	for name, one := range map[string]struct {
		address string
		args    []string
		code    int
		says    string
	}{
		"no SDL":     {describe(t, "", full), nil, 1, "the service has no SDL"},
		"no GraphQL": {describe(t, "type Shelf {", full), nil, 1, "storage.graphqls:1"},
		"terminal":   {describe(t, shelves+"# \x1b[2J", full), nil, 1, "control characters"},
		"undescribed kind": {
			describe(t, shelves), nil, 1,
			"storage.graphqls:1: the SDL has the kind Shelf, which Describe does not name",
		},
		"no verb left": {
			describe(t, resource(`, verbs: [CREATE]`), owner.Kind{Name: "Shelf"}), nil, 1,
			"kind Shelf: none of the verbs that the SDL has is one that the service can carry out",
		},
		"bad name":    {describe(t, shelves, full), []string{"--name", "A b"}, 2, `"A b": a name of small letters`},
		"bad address": {"ftp://x", nil, 2, "http and https are accepted"},
		"bad file": {
			describe(t, shelves, full), []string{"--to", "x.txt"}, 2,
			"to: x.txt: a name that ends with .graphqls",
		},
		"no catalogue":   {describe(t, shelves, full), []string{"--catalogue", "/nowhere/at/all"}, 2, "catalogue"},
		"no service":     {"http://127.0.0.1:1", nil, 1, "the service was not asked"},
		"finding in SDL": {describe(t, resource(`, expires: true`), full), nil, 2, "expires does not go with service"},
	} {
		out, errOut, code := commandtest.Run(t, newRoot, append([]string{"service", "pull", one.address}, one.args...)...)
		if code != one.code || !strings.Contains(errOut, one.says) || out != "" {
			t.Errorf("%s: exit %d %q %s", name, code, out, errOut)
		}
	}
}

func TestServicePull_NotesKindsWithoutSDL(t *testing.T) {
	address := describe(t, shelves, ownertest.Full("Shelf"), ownertest.Full("Box"))
	_, errOut, code := commandtest.Run(t, newRoot, "service", "pull", address)
	if code != 0 || errOut != "sluice: note: the service has the kind Box, which its SDL does not have\n" {
		t.Errorf("exit %d %s", code, errOut)
	}
}

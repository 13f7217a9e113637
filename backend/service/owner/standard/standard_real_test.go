package standard_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// protosVariable names a folder with .proto files of others: those of googleapis, and those of Teleport's api/proto.
// Without it, or without a file, the tests of these APIs are skipped.
const protosVariable = "SLUICE_TEST_PROTOS"

// published is an API that nobody here has written.
type published struct {
	name  string
	files []string
	// server serves one of its kinds, mapped by mapping; none: the API is only pulled.
	server  standardtest.Config
	mapping string
	// there is the name of a resource that is there already; empty for none.
	there string
	// kinds are those that are pulled; none: all. served are those that can be served, with their verbs, and refused is the
	// one that cannot.
	kinds           []string
	served, refused string
}

func publishedAPIs() []published {
	return []published{
		{
			name:  "Teleport, database objects",
			files: []string{"teleport/dbobject/v1/dbobject_service.proto"},
			server: standardtest.Config{
				Services: []string{"teleport.dbobject.v1.DatabaseObjectService"}, Message: "teleport.dbobject.v1.DatabaseObject",
				Name: "metadata.name", Tag: "metadata.revision", TagPresent: true,
			},
			mapping: "kinds: {DatabaseObject: {set: {kind: db_object, version: v1}}}",
			served:  "DatabaseObject GET,LIST,WATCH,CREATE,UPDATE,PATCH,UPSERT,DELETE",
		},
		{
			name:  "Teleport, crown jewels",
			files: []string{"teleport/crownjewel/v1/crownjewel_service.proto"},
			server: standardtest.Config{
				Services: []string{"teleport.crownjewel.v1.CrownJewelService"}, Message: "teleport.crownjewel.v1.CrownJewel",
				Name: "metadata.name", Tag: "metadata.revision", TagPresent: true,
			},
			mapping: "kinds: {CrownJewel: {}}",
			served:  "CrownJewel GET,LIST,WATCH,CREATE,UPDATE,PATCH,UPSERT,DELETE",
		},
		{
			name:  "Teleport, the older AuthService",
			files: []string{"teleport/legacy/client/proto/authservice.proto", "gogoproto/gogo.proto"},
			mapping: `kinds: {App: {message: types.AppV3, service: proto.AuthService, spec: Spec, name: Metadata.Name,
  labels: Metadata.Labels, description: Metadata.Description, set: {Kind: app, Version: v3},
  get: {method: GetApp}, list: {method: GetApps, answer: Apps, token: "-"}, create: {method: CreateApp, resource: .},
  update: {method: UpdateApp, resource: .}, delete: {method: DeleteApp}}}`,
			kinds:  []string{"App"},
			served: "App GET,LIST,WATCH,CREATE,UPSERT,DELETE",
		},
		{
			name:  "Google's example library",
			files: []string{"google/example/library/v1/library.proto"},
			server: standardtest.Config{
				Services: []string{"google.example.library.v1.LibraryService"}, Message: "google.example.library.v1.Book",
				Name: "name", Collection: "books",
			},
			mapping: "kinds: {Book: {}}",
			there:   "shelves/novels/books/emma",
			served:  "Book GET,LIST,WATCH,DELETE; Shelf GET,LIST,WATCH,DELETE",
		},
		{
			name:  "Google Cloud Pub/Sub",
			files: []string{"google/pubsub/v1/pubsub.proto", "google/pubsub/v1/schema.proto"},
			server: standardtest.Config{
				Services: []string{"google.pubsub.v1.Publisher"}, Message: "google.pubsub.v1.Topic",
				Name: "name",
			},
			mapping: "kinds: {Topic: {}}",
			kinds:   []string{"Topic", "Snapshot", "Schema"},
			served:  "Schema GET,LIST,WATCH,CREATE,DELETE; Snapshot GET,LIST,WATCH,DELETE; Topic GET,LIST,WATCH,CREATE,UPSERT,DELETE",
		},
		{
			name:  "Google Secret Manager",
			files: []string{"google/cloud/secretmanager/v1/service.proto"},
			server: standardtest.Config{
				Services: []string{"google.cloud.secretmanager.v1.SecretManagerService"},
				Message:  "google.cloud.secretmanager.v1.Secret", Name: "name", Tag: "etag", Collection: "secrets",
			},
			mapping: "kinds: {Secret: {}}",
			served:  "Secret GET,LIST,WATCH,CREATE,UPDATE,PATCH,UPSERT,DELETE",
		},
	}
}

// openProtos returns what opens the files of protosVariable.
func openProtos(t *testing.T, files []string) func(string) (io.ReadCloser, error) {
	t.Helper()
	dir := os.Getenv(protosVariable)
	if dir == "" {
		t.Skip("no folder with .proto files of others: " + protosVariable)
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Skip(err)
		}
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, path)) }
}

func TestCatalogue_PublishedAPIs(t *testing.T) {
	for _, api := range publishedAPIs() {
		t.Run(api.name, func(t *testing.T) {
			raw := standardtest.Compile(t, openProtos(t, api.files), api.files...)
			d, err := standard.ReadDescriptors(raw)
			if err != nil {
				t.Fatal(err)
			}
			given, err := standard.ParseMapping([]byte("{kinds: {}}"))
			if err == nil && api.mapping != "" {
				given, err = standard.ParseMapping([]byte(api.mapping))
			}
			if err != nil {
				t.Fatal(err)
			}
			c, err := d.Catalogue("x", api.kinds, given, standard.Limits{Length: 1000, Items: 100})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("served: %s", served(c))
			for _, one := range append(append(c.Refused, c.Omitted...), c.Notes...) {
				t.Log(one)
			}
			if api.served != "" && served(c) != api.served {
				t.Errorf("served: %s, want %s", served(c), api.served)
			}
			for _, one := range c.Refused {
				if api.refused != "" && one.Path != api.refused {
					t.Errorf("%s cannot be served: %s", one.Path, one.Why)
				}
			}
			if len(c.Kinds) == 0 {
				return
			}
			if _, err := kinds.Load(&ast.Source{Name: "pulled.graphqls", Input: c.SDL}); err != nil {
				t.Errorf("%v in\n%s", err, c.SDL)
			}
			testPublished(t, api, raw)
		})
	}
}

// served returns the kinds of a catalogue with their verbs.
func served(c *standard.Catalogue) string {
	var out []string
	for _, name := range c.Kinds {
		_, after, _ := strings.Cut(c.SDL, fmt.Sprintf("type %s\n", name))
		_, after, _ = strings.Cut(after, "verbs: [")
		verbs, _, _ := strings.Cut(after, "]")
		out = append(out, name+" "+strings.ReplaceAll(verbs, ", ", ","))
	}
	return strings.Join(out, "; ")
}

// testPublished runs the kit over a server of a kind of an API.
func testPublished(t *testing.T, api published, raw []byte) {
	t.Helper()
	if api.server.Message == "" {
		return
	}
	mapping, err := standard.ParseMapping([]byte(api.mapping))
	if err != nil {
		t.Fatal(err)
	}
	api.server.Descriptors = raw
	w := newWorld(t, api.server, "", mapping)
	if api.there != "" {
		w.server.Put(api.there, nil)
	}
	counts := map[kit.Status]int{}
	for name, r := range broken(t, w, true) {
		counts[r.Status]++
		if r.Status == kit.Failed {
			t.Errorf("%s: %s", name, r.Detail)
		}
	}
	t.Logf("promises: %v", counts)
}

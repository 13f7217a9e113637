package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
)

// shelves is a catalogue that others are made of.
const shelves = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ShelfSpec!
}

type ShelfSpec {
  width: Int
  label: String @constraint(maxLength: 20)
}
`

// watched is a store that tells of its writes, and of reads of lists.
type watched struct {
	*memory.Store
	write func(apply func() error) error
	list  func(r backend.Range)
}

func (w *watched) Apply(ctx context.Context, b backend.Batch) (res backend.Result, err error) {
	err = w.write(func() error {
		res, err = w.Store.Apply(ctx, b)
		return err
	})
	return res, err
}

func (w *watched) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	w.list(r)
	return w.Store.Range(ctx, r)
}

func (w *watched) Ready(context.Context) error { return nil }

func (w *watched) Unreadable() uint64 { return 0 }

// shop is a gateway over a store in memory, with a catalogue in a folder. It listens
// nowhere.
type shop struct {
	*testing.T
	store      *watched
	dir        string
	catalogues *catalogues
	registry   *prometheus.Registry
	changes    *hub.Hub
}

// openShop makes a gateway that serves some SDL.
func openShop(t *testing.T, sdl string) *shop {
	t.Helper()
	kept, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	s := &shop{T: t, dir: filepath.Join(t.TempDir(), "kinds")}
	s.store = &watched{Store: kept, write: func(apply func() error) error { return apply() }, list: func(backend.Range) {}}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "shelves.graphqls"), []byte(sdl), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.accepted(false); err != nil {
		t.Fatal(err)
	}
	s.serve(s.dir)
	return s
}

// serve makes a gateway on a folder.
func (s *shop) serve(dir string) {
	s.Helper()
	served, err := sdl.Read(dir)
	if err != nil {
		s.Fatal(err)
	}
	h, err := hub.New(hub.Config{Store: s.store})
	if err != nil {
		s.Fatal(err)
	}
	settings := config.NewGateway()
	settings.Catalogue.Dir = dir
	on := shared{store: s.store, changes: h, owners: &owners{}, measures: newMeasures()}
	if s.catalogues, err = (&Gateway{Gateway: settings}).gateway(s.Context(), served, on, zap.NewNop()); err != nil {
		s.Fatal(err)
	}
	s.registry = settings.Server.Metrics
	s.changes = h
}

// accepted returns why a gateway that starts now, without a flag, is refused.
func (s *shop) accepted(dryRun bool) error { return s.start(catalogue.Candidate{DryRun: dryRun}) }

// acceptedWithFlag is accepted for a start with --allow-breaking.
func (s *shop) acceptedWithFlag() error {
	return s.start(catalogue.Candidate{DryRun: true, AllowBreaking: true})
}

func (s *shop) start(how catalogue.Candidate) error {
	served, err := sdl.Read(s.dir)
	if err != nil {
		return err
	}
	candidate := served.Candidate()
	candidate.DryRun, candidate.AllowBreaking = how.DryRun, how.AllowBreaking
	return sdl.Accept(s.Context(), catalogue.Gate{Store: s.store.Store}, candidate)
}

// apply asks for another catalogue.
func (s *shop) apply(sdl string, flag bool) reload.Answer {
	return s.catalogues.Reload(s.Context(), reload.Request{AllowBreaking: flag, Folder: "next", Files: map[string]string{"shelves.graphqls": sdl}})
}

// post answers a document.
func (s *shop) post(query string) string {
	s.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		s.Fatal(err)
	}
	r := httptest.NewRequestWithContext(s.Context(), http.MethodPost, "http://127.0.0.1/graphql", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.catalogues.server.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

// beside is what lies beside the folder.
func (s *shop) beside() (names []string) {
	s.Helper()
	all, err := os.ReadDir(filepath.Dir(s.dir))
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range all {
		if e.Name() != filepath.Base(s.dir) {
			names = append(names, e.Name())
		}
	}
	return names
}

func (s *shop) sdl() string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "shelves.graphqls"))
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// The catalogue without the label, and with one that is hidden.
func withoutLabel() string {
	return strings.Replace(shelves, "  label: String @constraint(maxLength: 20)\n", "", 1)
}

func hiddenLabel() string {
	return strings.Replace(shelves, "maxLength: 20)", "maxLength: 20) @writeOnly", 1)
}

// TestWheneverTheProcessDiesTheNextOneStarts: the folder and the record of the store
// fit at every step of an apply, with its flag until the catalogue is recorded.
func TestWheneverTheProcessDiesTheNextOneStarts(t *testing.T) {
	for name, c := range map[string]struct {
		before, then string
		flag         bool
	}{
		"a secret comes":    {shelves, hiddenLabel(), false},
		"a secret is shown": {hiddenLabel(), shelves, true},
		"a field goes":      {shelves, withoutLabel(), true},
		"another type":      {shelves, strings.Replace(shelves, "width: Int", "width: Float", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, c.before)
			if got := s.post(`mutation { createShelf(input: {name: "a", spec: {width: 1, label: "x"}}) { shelf { id } } }`); strings.Contains(got, "errors") {
				t.Fatal(got)
			}
			var folders []string // at each step
			step := func() {
				folders = append(folders, s.sdl())
				if err := s.accepted(true); (err != nil) != (c.flag && len(folders) == 1) {
					t.Errorf("step %d: the next start is refused: %v", len(folders), err)
				}
				if err := s.acceptedWithFlag(); err != nil {
					t.Errorf("step %d: the next start with the flag is refused: %v", len(folders), err)
				}
			}
			s.store.write = func(apply func() error) error {
				step()
				defer step()
				return apply()
			}
			if a := s.apply(c.then, c.flag); a.Result != reload.Replaced {
				t.Fatal(a)
			}
			if want := []string{c.then, c.then}; !slices.Equal(folders, want) {
				t.Errorf("the folder was %q", folders)
			}
			if left := s.beside(); len(left) > 0 {
				t.Errorf("beside the folder there is %v", left)
			}
		})
	}
}

func TestAStoreThatDoesNotRecordTheCatalogueLeavesTheFolderAsItWas(t *testing.T) {
	s := openShop(t, shelves)
	s.store.write = func(func() error) error { return backend.ErrUnavailable }
	a := s.apply(withoutLabel(), true)
	if a.Result != reload.Failed || s.sdl() != shelves || len(s.beside()) > 0 || s.accepted(true) != nil {
		t.Errorf("%v, the folder is %q, beside it there is %v; a start: %v", a, s.sdl(), s.beside(), s.accepted(true))
	}
	s.store.write = func(apply func() error) error { return apply() }
	if got := s.post(`{ shelves { nodes { spec { label } } } }`); strings.Contains(got, "errors") {
		t.Errorf("it serves another one: %s", got)
	}
	if a := s.apply(withoutLabel(), false); a.Result != reload.Refused {
		t.Errorf("once more, without the flag: %v", a)
	}
}

// TestAKindThatWouldBeStoredElsewhereNeedsARestart, with or without the flag, although it
// has no resources.
func TestAKindThatWouldBeStoredElsewhereNeedsARestart(t *testing.T) {
	global := strings.Replace(shelves, "scope: NAMESPACED", "scope: GLOBAL", 1)
	for name, c := range map[string]struct{ before, then string }{
		"another scope": {shelves, global},
		"a service":     {shelves, strings.Replace(shelves, "scope: NAMESPACED", `scope: NAMESPACED, service: "crm"`, 1)},
		"sensitive":     {hiddenLabel(), strings.Replace(hiddenLabel(), "scope: NAMESPACED", "scope: NAMESPACED, sensitive: true", 1)},
	} {
		s := openShop(t, c.before)
		for _, flag := range []bool{false, true} {
			a := s.apply(c.then, flag)
			if a.Result != reload.Refused || s.sdl() != c.before || !strings.Contains(strings.Join(a.Lines, "\n"), "next/shelves.graphqls:1: kind Shelf ") || !strings.Contains(strings.Join(a.Lines, "\n"), "restart the gateway") {
				t.Errorf("%s: %v", name, a)
			}
		}
		if err := os.WriteFile(filepath.Join(s.dir, "shelves.graphqls"), []byte(c.then), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.acceptedWithFlag(); err != nil {
			t.Errorf("%s: a start: %v", name, err)
		}
	}
}

// TestAnApplyThatFailsIsForgotten: whoever wants its catalogue later says the flag
// again, and what it would have shown is a secret still.
func TestAnApplyThatFailsIsForgotten(t *testing.T) {
	s := openShop(t, hiddenLabel())
	if a := s.apply(withoutLabel(), true); a.Result != reload.Replaced {
		t.Fatal(a)
	}
	s.store.list = func(backend.Range) { s.removeStaged() } // the folder cannot be replaced any more
	if a := s.apply(shelves, true); a.Result != reload.Failed || !strings.Contains(a.Lines[0], "cannot be replaced") {
		t.Fatalf("%v", a)
	}
	s.store.list = func(backend.Range) {}
	wider := strings.Replace(shelves, "width: Int", "width: Int\n  depth: Int", 1)
	for name, sdl := range map[string]string{"the same": shelves, "another one": wider} {
		if err := os.WriteFile(filepath.Join(s.dir, "shelves.graphqls"), []byte(sdl), 0o600); err != nil {
			t.Fatal(err)
		}
		a := s.catalogues.Reload(t.Context(), reload.Request{})
		if a.Result != reload.Refused || !strings.Contains(strings.Join(a.Lines, "\n"), "Shelf.spec.label was @writeOnly in an earlier catalogue") {
			t.Errorf("%s: %v", name, a)
		}
	}
}

// removeStaged removes what lies beside the folder.
func (s *shop) removeStaged() {
	for _, name := range s.beside() {
		if err := os.RemoveAll(filepath.Join(filepath.Dir(s.dir), name)); err != nil {
			s.Error(err)
		}
	}
}

// TestAGatewayThatWasStartedInItsFolderGoesOn although that folder is removed.
func TestAGatewayThatWasStartedInItsFolderGoesOn(t *testing.T) {
	s := openShop(t, shelves)
	t.Chdir(s.dir)
	s.serve(".")
	for _, sdl := range []string{withoutLabel(), shelves} {
		if a := s.apply(sdl, true); a.Result != reload.Replaced || s.sdl() != sdl {
			t.Errorf("%v", a)
		}
		if a := s.catalogues.Reload(t.Context(), reload.Request{}); a.Result != reload.Unchanged {
			t.Errorf("%v", a)
		}
	}
}

func TestACatalogueOfTooManyFilesIsNotWrittenToTheDisk(t *testing.T) {
	s, files := openShop(t, shelves), map[string]string{}
	for n := range 1001 {
		files[fmt.Sprintf("%d.graphqls", n)] = shelves
	}
	before, err := os.Stat(filepath.Dir(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	a := s.catalogues.Reload(t.Context(), reload.Request{Files: files, Folder: "next"})
	if a.Result != reload.Refused || !strings.Contains(a.Lines[0], "next has 1001 files; at most 1000 are read") {
		t.Errorf("%v", a)
	}
	if after, err := os.Stat(filepath.Dir(s.dir)); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Error("something was written beside the folder")
	}
}

func TestCatalogues_RefuseToPurgeAKindThatIsMisspelt(t *testing.T) {
	s := openShop(t, shelves)
	for what, want := range map[string]string{
		"Shlef": "nothing is stored of kind Shlef; kinds with a name like it: Shelf",
		"shelf": "nothing is stored of kind shelf; kinds with a name like it: Shelf",
	} {
		a := s.catalogues.Reload(t.Context(), reload.Request{Purge: what})
		if a.Result != reload.Refused || len(a.Lines) != 1 || a.Lines[0] != want {
			t.Errorf("%s: %v", what, a)
		}
	}
	a := s.catalogues.Reload(t.Context(), reload.Request{Purge: "Terminal"})
	if a.Result == reload.Refused || a.Purged == nil || a.Purged.Removed != 0 {
		t.Errorf("a kind that is gone: %v", a)
	}
}

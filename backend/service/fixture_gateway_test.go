package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// kinds are a shelf and a library, which is GLOBAL, and the books that refer to them.
func kinds() []descriptor.Kind {
	verbs := []descriptor.Verb{
		descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate,
		descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus, descriptor.VerbFinalize, descriptor.VerbControl, descriptor.VerbDelete,
	}
	short := descriptor.Constraint{MaxLength: new(20)}
	colour := &descriptor.Enum{Name: "Colour", Values: []descriptor.EnumValue{{Name: "RED", Stored: "red"}, {Name: "BLUE", Stored: "blue"}}}
	book := descriptor.Kind{
		Name: "Book", Singular: "book", Plural: "books", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced,
		Verbs: verbs, Expires: true,
		FilterableFields: []descriptor.FilterableField{
			{Path: "spec.title", Sortable: true}, {Path: "spec.colour", Sortable: true}, {Path: "spec.weight", Sortable: true}, {Path: "spec.tags"},
		},
		References: []descriptor.Reference{
			{Path: "spec.shelfRef", Kind: "Shelf", Field: "shelf", Inverse: "books"}, {Path: "spec.libraryRef", Kind: "Library", Field: "library", Inverse: "books"},
		},
		Spec: &descriptor.Shape{Name: "BookSpec", Fields: []descriptor.Field{
			{Name: "title", Type: descriptor.TypeString, Constraint: short},
			{Name: "colour", Type: descriptor.TypeEnum, Enum: colour, Default: "blue"},
			{Name: "weight", Type: descriptor.TypeInt},
			{Name: "tags", Type: descriptor.TypeString, List: true, ListType: descriptor.ListSet, Constraint: descriptor.Constraint{MaxItems: new(3), MaxLength: new(5)}},
			{Name: "shelfRef", Type: descriptor.TypeString, Constraint: short},
			{Name: "libraryRef", Type: descriptor.TypeString, Constraint: short},
		}},
	}
	shelf := descriptor.Kind{
		Name: "Shelf", Singular: "shelf", Plural: "shelves", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced, Verbs: verbs,
		Spec: &descriptor.Shape{Name: "ShelfSpec", Fields: []descriptor.Field{{Name: "title", Type: descriptor.TypeString, Constraint: short}}},
	}
	library := shelf
	library.Name, library.Singular, library.Plural, library.Scope = "Library", "library", "libraries", descriptor.Global
	return []descriptor.Kind{book, shelf, library}
}

// anybody is who asks.
func anybody() access.Caller { return access.Caller{} }

func book(namespace, name string) kind.Identity {
	return kind.Identity{Kind: "Book", Namespace: &namespace, Name: name}
}

// titleOf is that of a book that was read.
func titleOf(t testing.TB, r *backend.Resource) string {
	t.Helper()
	raw, err := backend.DecodeBody(r.Body)
	var tree struct{ Spec struct{ Title string } }
	if err == nil {
		err = json.Unmarshal(raw, &tree)
	}
	if err != nil {
		t.Errorf("%s: %v", r.Key, err)
	}
	return tree.Spec.Title
}

// store is what the tests need of one.
type store interface {
	backend.Store
	backend.Clock
	Purge(context.Context) (int, error)
	Close() error
}

// gateway is a service on a store of its own, with a hub and an index that are started
// and stopped one by one.
type gateway struct {
	*service.Service
	t     testing.TB
	store store
	hub   *hub.Hub

	stopHub func()
	mu      sync.Mutex // guards stopIndex
	// stopIndex is nil while the index does not run.
	stopIndex func()
}

// newGateway starts a gateway without its index. The configuration lacks what all have.
func newGateway(t testing.TB, s store, cfg service.Config) *gateway {
	t.Helper()
	g := &gateway{t: t, store: s}
	var err error
	if g.hub, err = hub.New(hub.Config{Store: s}); err != nil {
		t.Fatal(err)
	}
	cfg.Kinds, cfg.Store, cfg.Hub = kinds(), s, g.hub
	if g.Service, err = service.New(cfg); err != nil {
		t.Fatal(err)
	}
	g.stopHub = g.run(g.hub.Run)
	return g
}

// run runs a part of the gateway until stop is called.
func (g *gateway) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			g.t.Error(err)
		}
	})
}

// startIndex runs the index, if there is one and it does not run.
func (g *gateway) startIndex() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Index() != nil && g.stopIndex == nil {
		g.stopIndex = g.run(g.Index().Run)
	}
}

// endIndex stops the index, if it runs.
func (g *gateway) endIndex() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopIndex != nil {
		g.stopIndex()
		g.stopIndex = nil
	}
}

// loseIndex lets the index forget everything, as when the hub has lost its place.
func (g *gateway) loseIndex() {
	if g.Index() != nil {
		g.hub.AddFollower(beginning{g.Index()})() // the hub delivers nothing meanwhile
	}
}

// beginning is a follower that makes an index begin again at the position of the hub when it is added.
type beginning struct{ index *index.Index }

func (b beginning) Begin(at backend.Position) {
	if !at.IsZero() {
		b.index.Begin(at)
	}
}

func (b beginning) Deliver(backend.Delivery) {}

// filled returns once the index serves all kinds.
func (g *gateway) filled() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := g.Index().Filled(ctx); err != nil {
		g.t.Fatal(err)
	}
}

// end stops all that runs.
func (g *gateway) end() {
	g.endIndex()
	g.stopHub()
}

// opened is a store that was opened and is closed with the test.
func opened[S store](t testing.TB, s S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// codeOf is that of an error of the service, empty for none.
func codeOf(t testing.TB, err error) (failure.Code, *failure.Error) {
	t.Helper()
	var known *failure.Error
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &known):
		t.Errorf("error %v is none of the service", err)
		return failure.CodeInternal, &failure.Error{}
	}
	return known.Code, known
}

// setting is a number of the environment.
func setting(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// sized is how many of something a test does: fewer in short tests.
func sized(full, short uint64) uint64 {
	if testing.Short() {
		return short
	}
	return full
}

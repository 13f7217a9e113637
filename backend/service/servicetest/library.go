package servicetest

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
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Library returns the kinds Shelf and Library, of which Library is GLOBAL, and the kind Book, which refers to both.
func Library() []descriptor.Kind {
	verbs := []descriptor.Verb{
		descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate,
		descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus,
		descriptor.VerbFinalize, descriptor.VerbControl, descriptor.VerbDelete,
	}
	short := descriptor.Constraint{MaxLength: new(20)}
	title := descriptor.Field{Name: "title", Type: descriptor.TypeString, Constraint: short}
	colour := &descriptor.Enum{
		Name:   "Colour",
		Values: []descriptor.EnumValue{{Name: "RED", Stored: "red"}, {Name: "BLUE", Stored: "blue"}},
	}
	book := descriptor.Kind{
		Name:     "Book",
		Singular: "book",
		Plural:   "books",
		Group:    "example.org",
		Version:  "v1",
		Scope:    descriptor.Namespaced,
		Verbs:    verbs,
		Expires:  true,
		FilterableFields: []descriptor.FilterableField{
			{Path: "spec.title", Sortable: true},
			{Path: "spec.colour", Sortable: true},
			{Path: "spec.weight", Sortable: true},
			{Path: "spec.tags"},
		},
		References: []descriptor.Reference{
			{Path: "spec.shelfRef", Kind: "Shelf", Field: "shelf", Inverse: "books"},
			{Path: "spec.libraryRef", Kind: "Library", Field: "library", Inverse: "books"},
		},
		Spec: &descriptor.Shape{Name: "BookSpec", Fields: []descriptor.Field{
			title,
			{Name: "colour", Type: descriptor.TypeEnum, Enum: colour, Default: "blue"},
			{Name: "weight", Type: descriptor.TypeInt},
			{
				Name:       "tags",
				Type:       descriptor.TypeString,
				List:       true,
				ListType:   descriptor.ListSet,
				Constraint: descriptor.Constraint{MaxItems: new(3), MaxLength: new(5)},
			},
			{Name: "shelfRef", Type: descriptor.TypeString, Constraint: short},
			{Name: "libraryRef", Type: descriptor.TypeString, Constraint: short},
		}},
	}
	shelf := descriptor.Kind{
		Name:     "Shelf",
		Singular: "shelf",
		Plural:   "shelves",
		Group:    "example.org",
		Version:  "v1",
		Scope:    descriptor.Namespaced,
		Verbs:    verbs,
		Spec:     &descriptor.Shape{Name: "ShelfSpec", Fields: []descriptor.Field{title}},
	}
	library := shelf
	library.Name = "Library"
	library.Singular = "library"
	library.Plural = "libraries"
	library.Scope = descriptor.Global
	return []descriptor.Kind{book, shelf, library}
}

// Book returns the identity of a book.
func Book(namespace, name string) kind.Identity {
	return kind.Identity{Kind: "Book", Namespace: &namespace, Name: name}
}

// BookTitle returns the title of a stored book.
func BookTitle(t testing.TB, r *backend.Resource) string {
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

// Driver is a store with the additional methods that all drivers have.
type Driver interface {
	backend.Store
	backend.Clock
	Purge(context.Context) (int, error)
	Close() error
}

// Gateway is a service over a store. Its hub and its index can be started and stopped separately.
type Gateway struct {
	*service.Service
	T     testing.TB
	Store Driver
	Hub   *hub.Hub

	stopHub func()
	mu      sync.Mutex // guards stopIndex
	// stopIndex is nil while the index does not run.
	stopIndex func()
}

// NewGateway starts a gateway without its index. cfg need not have a store and a hub. The default of its kinds is
// [Library].
func NewGateway(t testing.TB, store Driver, cfg service.Config) *Gateway {
	t.Helper()
	g := &Gateway{T: t, Store: store}
	var err error
	g.Hub, err = hub.New(hub.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Kinds == nil {
		cfg.Kinds = Library()
	}
	cfg.Store = store
	cfg.Hub = g.Hub
	g.Service, err = service.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.stopHub = g.run(g.Hub.Run)
	return g
}

// run runs a part of the gateway until stop is called.
func (g *Gateway) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			g.T.Error(err)
		}
	})
}

// StartIndex runs the index, unless there is none or it is already running.
func (g *Gateway) StartIndex() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Index() != nil && g.stopIndex == nil {
		g.stopIndex = g.run(g.Index().Run)
	}
}

// EndIndex stops the index if it runs.
func (g *Gateway) EndIndex() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopIndex != nil {
		g.stopIndex()
		g.stopIndex = nil
	}
}

// LoseIndex makes the index read all resources again. The index does so too when the hub cannot continue from its
// position.
func (g *Gateway) LoseIndex() {
	if g.Index() != nil {
		g.Hub.AddFollower(beginAgain{g.Index()})() // the hub delivers nothing meanwhile
	}
}

// beginAgain is a follower of the hub. When it is added to the hub, it makes an index begin again at the position of
// the hub.
type beginAgain struct{ index *index.Index }

func (b beginAgain) Begin(at backend.Position) {
	if !at.IsZero() {
		b.index.Begin(at)
	}
}

func (b beginAgain) Deliver(backend.Delivery) {}

// WaitFilled waits until the index serves all kinds.
func (g *Gateway) WaitFilled() {
	g.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := g.Index().Filled(ctx); err != nil {
		g.T.Fatal(err)
	}
}

// End stops the index and the hub.
func (g *Gateway) End() {
	g.EndIndex()
	g.stopHub()
}

// ErrorOf returns an error of the service and its code. The code is "" if err is nil. It fails the test if err is an
// error of another type.
func ErrorOf(t testing.TB, err error) (failure.Code, *failure.Error) {
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

// Setting returns the number in an environment variable. If the variable is not set, it returns the argument otherwise.
// It fails the test if the variable is not a number.
func Setting(t testing.TB, name string, otherwise uint64) uint64 {
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

// Sized returns full. If the tests run with -short, it returns short.
func Sized(full, short uint64) uint64 {
	if testing.Short() {
		return short
	}
	return full
}

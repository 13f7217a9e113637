package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// widget is a kind that has one of everything.
func widget() descriptor.Kind {
	n := func(i int) *int { return &i }
	x := func(f float64) *float64 { return &f }
	colour := &descriptor.Enum{Name: "Colour", Values: []descriptor.EnumValue{{Name: "DARK_RED", Stored: "dark-red"}, {Name: "BLUE", Stored: "blue"}}}
	part := &descriptor.Shape{Name: "Part", Fields: []descriptor.Field{
		{Name: "slot", Type: descriptor.TypeString, Required: true, Constraint: descriptor.Constraint{MaxLength: n(20)}},
		{Name: "serial", Type: descriptor.TypeString, Immutable: true, Constraint: descriptor.Constraint{MaxLength: n(20)}},
	}}
	box := &descriptor.Shape{Name: "Box", MinProperties: 1, MaxProperties: 1, Fields: []descriptor.Field{
		{Name: "id", Type: descriptor.TypeString, Constraint: descriptor.Constraint{Format: descriptor.FormatUUID, MaxLength: n(36)}},
		{Name: "import", Type: descriptor.TypeBoolean},
	}}
	spec := &descriptor.Shape{
		Name: "WidgetSpec",
		Fields: []descriptor.Field{
			{Name: "title", Type: descriptor.TypeString, Required: true, Constraint: descriptor.Constraint{MinLength: n(1), MaxLength: n(10), Pattern: "^[^,]+$"}},
			{Name: "colour", Type: descriptor.TypeEnum, Enum: colour, Default: "blue", Immutable: true},
			{Name: "weight", Type: descriptor.TypeInt, Constraint: descriptor.Constraint{Min: x(68), Max: x(9216)}},
			{Name: "bytes", Type: descriptor.TypeSafeInt},
			{Name: "heavy", Type: descriptor.TypeBoolean},
			{Name: "tags", Type: descriptor.TypeString, List: true, ListType: descriptor.ListSet, Constraint: descriptor.Constraint{MaxItems: n(3), MaxLength: n(5)}},
			{Name: "zones", Type: descriptor.TypeString, List: true, ListType: descriptor.ListSet, Immutable: true, Constraint: descriptor.Constraint{MaxItems: n(3), MaxLength: n(5)}},
			{Name: "parts", Type: descriptor.TypeObject, Shape: part, List: true, ListType: descriptor.ListMap, Keys: []string{"slot"}, Constraint: descriptor.Constraint{MaxItems: n(4)}},
			{Name: "box", Type: descriptor.TypeObject, Shape: box},
			{Name: "notes", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MinItems: n(1), MaxItems: n(2), MaxLength: n(5), KeyMinLength: n(2), KeyMaxLength: n(4), KeyPattern: "^[a-z]+$"}},
			{Name: "ratio", Type: descriptor.TypeFloat},
			{Name: "every", Type: descriptor.TypeString, Constraint: descriptor.Constraint{Format: descriptor.FormatDuration, MaxLength: n(20)}},
			{Name: "old", Type: descriptor.TypeString, Deprecated: "use title", Constraint: descriptor.Constraint{MaxLength: n(5)}},
		},
		Rules: []descriptor.Rule{
			{CEL: "self.colour == 'blue' || !has(self.heavy)", Message: "only a blue widget may say whether it is heavy"},
			{CEL: "!has(self.box) || !has(self.box.__import__) || self.box.__import__", Message: "import cannot be false"},
			{CEL: "!has(self.ratio) || self.ratio * 2.0 > 1.0", Message: "ratio is more than a half"},
		},
	}
	return descriptor.Kind{
		Name: "Widget", Singular: "widget", Plural: "widgets", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced,
		Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus, descriptor.VerbFinalize, descriptor.VerbControl, descriptor.VerbDelete},
		FilterableFields: []descriptor.FilterableField{
			{Path: "spec.title", Sortable: true}, {Path: "spec.colour", Sortable: true}, {Path: "spec.weight", Sortable: true}, {Path: "spec.ratio", Sortable: true},
			{Path: "spec.heavy"}, {Path: "spec.tags"}, {Path: "spec.parts.slot"}, {Path: "status.id"},
		},
		Spec: spec, Status: &descriptor.Shape{Name: "WidgetStatus", Fields: []descriptor.Field{{Name: "id", Type: descriptor.TypeString}}},
	}
}

// withConditions is a kind whose status has conditions.
func withConditions(k descriptor.Kind) descriptor.Kind {
	condition := &descriptor.Shape{Name: "Condition", Fields: []descriptor.Field{{Name: "type", Type: descriptor.TypeString}, {Name: "status", Type: descriptor.TypeString}}}
	k.Status.Fields = append(k.Status.Fields, descriptor.Field{Name: "conditions", Type: descriptor.TypeObject, Shape: condition, List: true, ListType: descriptor.ListAtomic})
	return k
}

// cluster is a GLOBAL kind that can only be read and created.
func cluster() descriptor.Kind {
	k := widget()
	k.Name, k.Singular, k.Plural, k.Scope = "Cluster", "cluster", "clusters", descriptor.Global
	k.Verbs = []descriptor.Verb{descriptor.VerbGet, descriptor.VerbCreate, descriptor.VerbUpsert}
	k.Expires, k.SubKinds = true, []string{"edge", "core"}
	return k
}

// title is that of a widget whose body was read.
func title(b *body.Body) string {
	spec := b.Shape.Fields[body.SlotSpec].Shape
	slot, _ := spec.Slot("title")
	return b.Text(b.At(b.Object(b.At(body.Root, body.SlotSpec)), slot))
}

// fixture is a service over a store of its own.
type fixture struct {
	*service.Service
	t     *testing.T
	store *memory.Store
	// unreadable counts what the service found unreadable.
	unreadable *atomic.Int32
}

func setup(t *testing.T) *fixture {
	t.Helper()
	return setupOn(t, memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
}

// setupOn is setup with a store of another configuration.
func setupOn(t *testing.T, cfg memory.Config) *fixture {
	t.Helper()
	store, err := memory.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	counted := &atomic.Int32{}
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{widget(), cluster()}, Store: store, Unreadable: kind.NewUnreadableCounter(func(string) { counted.Add(1) })})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Service: s, t: t, store: store, unreadable: counted}
}

// setupIndexed is setup of a service that runs, and serves all kinds from memory.
func setupIndexed(t *testing.T) *fixture {
	t.Helper()
	f := setup(t)
	f.serveIndexed()
	return f
}

// serveIndexed runs the service until the test ends, and waits until it serves all kinds from memory.
func (f *fixture) serveIndexed() {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	f.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	if f.PolicySource() != nil {
		if err := f.PolicySource().Filled(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
	if f.Index() == nil {
		return
	}
	if err := f.Index().Filled(ctx); err != nil {
		f.t.Fatal(err)
	}
	if s := f.Index().Stats(); s.Served != s.Kinds {
		f.t.Fatalf("%+v", s)
	}
}

func named(name string) kind.Identity { return kind.Identity{Kind: "Widget", Name: name} }

func (f *fixture) create(name, spec string) *service.Written {
	f.t.Helper()
	out, err := f.Create(context.Background(), service.CreateRequest{Identity: named(name), Spec: json.RawMessage(spec)})
	if err != nil {
		f.t.Fatalf("create %s: %v", name, err)
	}
	return out
}

func (f *fixture) update(name, revision, spec string) (*service.Written, error) {
	return f.Update(context.Background(), service.UpdateRequest{Identity: named(name), ExpectedRevision: revision, Spec: json.RawMessage(spec)})
}

func (f *fixture) stored(name string) *backend.Resource {
	f.t.Helper()
	got, err := f.store.Get(context.Background(), backend.Key{Kind: "Widget", Namespace: "default", Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	return got[0]
}

// rewrite stores another body under a widget, as another gateway or a
// controller would; caller reports whether it moves the spec revision.
func (f *fixture) rewrite(name string, caller bool, change func(map[string]any)) *backend.Resource {
	f.t.Helper()
	r := f.stored(name)
	raw, _ := backend.DecodeBody(r.Body)
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		f.t.Fatal(err)
	}
	change(tree)
	raw, _ = json.Marshal(tree)
	return f.put(r.Key, backend.Put{UID: r.UID, Caller: caller, Body: backend.EncodeBody(raw)})
}

func (f *fixture) put(key backend.Key, put backend.Put) *backend.Resource {
	f.t.Helper()
	res, err := f.store.Apply(context.Background(), backend.Batch{
		RequestID: "test", Deadline: f.store.Now().Add(5e9),
		Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return res.Resources[0]
}

func (f *fixture) position() string {
	f.t.Helper()
	p, err := f.store.Position(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return p.String()
}

// wantCode returns the error as the service's own, with that code.
func wantCode(t *testing.T, err error, code failure.Code) *failure.Error {
	t.Helper()
	var e *failure.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want one with code %s", err, code)
	}
	if e.Code != code {
		t.Fatalf("code %s (%s), want %s", e.Code, e.Message, code)
	}
	return e
}

// paths of all violations, joined.
func paths(e *failure.Error) string {
	var out []string
	for _, v := range e.Violations {
		out = append(out, v.Path+" "+v.Rule)
	}
	return strings.Join(out, "; ")
}

func raw(spec string) json.RawMessage { return json.RawMessage(spec) }

// reading is a store that counts the resources it returns.
type reading struct {
	*memory.Store
	resources int
}

func (s *reading) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := s.Store.Range(ctx, r)
	s.resources += len(page.Resources)
	return page, err
}

func (s *reading) Ranges(ctx context.Context, list []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, list)
	for _, p := range pages {
		s.resources += len(p.Resources)
	}
	return pages, err
}

func open(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// Package servicetest provides fixtures for tests of backend/service and its subpackages: services over several stores,
// and kinds with all features.
package servicetest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Widget returns a kind that has each type of field and each constraint.
func Widget() descriptor.Kind {
	n := func(i int) *int { return &i }
	x := func(f float64) *float64 { return &f }
	colour := &descriptor.Enum{
		Name:   "Colour",
		Values: []descriptor.EnumValue{{Name: "DARK_RED", Stored: "dark-red"}, {Name: "BLUE", Stored: "blue"}},
	}
	part := &descriptor.Shape{Name: "Part", Fields: []descriptor.Field{
		{
			Name:       "slot",
			Type:       descriptor.TypeString,
			Required:   true,
			Constraint: descriptor.Constraint{MaxLength: n(20)},
		},
		{
			Name:       "serial",
			Type:       descriptor.TypeString,
			Immutable:  true,
			Constraint: descriptor.Constraint{MaxLength: n(20)},
		},
	}}
	box := &descriptor.Shape{Name: "Box", MinProperties: 1, MaxProperties: 1, Fields: []descriptor.Field{
		{
			Name:       "id",
			Type:       descriptor.TypeString,
			Constraint: descriptor.Constraint{Format: descriptor.FormatUUID, MaxLength: n(36)},
		},
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
			{
				Name:       "tags",
				Type:       descriptor.TypeString,
				List:       true,
				ListType:   descriptor.ListSet,
				Constraint: descriptor.Constraint{MaxItems: n(3), MaxLength: n(5)},
			},
			{
				Name:       "zones",
				Type:       descriptor.TypeString,
				List:       true,
				ListType:   descriptor.ListSet,
				Immutable:  true,
				Constraint: descriptor.Constraint{MaxItems: n(3), MaxLength: n(5)},
			},
			{Name: "parts", Type: descriptor.TypeObject, Shape: part, List: true, ListType: descriptor.ListMap, Keys: []string{"slot"}, Constraint: descriptor.Constraint{MaxItems: n(4)}},
			{Name: "box", Type: descriptor.TypeObject, Shape: box},
			{Name: "notes", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MinItems: n(1), MaxItems: n(2), MaxLength: n(5), KeyMinLength: n(2), KeyMaxLength: n(4), KeyPattern: "^[a-z]+$"}},
			{Name: "ratio", Type: descriptor.TypeFloat},
			{
				Name:       "every",
				Type:       descriptor.TypeString,
				Constraint: descriptor.Constraint{Format: descriptor.FormatDuration, MaxLength: n(20)},
			},
			{
				Name:       "old",
				Type:       descriptor.TypeString,
				Deprecated: "use title",
				Constraint: descriptor.Constraint{MaxLength: n(5)},
			},
		},
		Rules: []descriptor.Rule{
			{
				CEL:     "self.colour == 'blue' || !has(self.heavy)",
				Message: "only a blue widget may say whether it is heavy",
			},
			{CEL: "!has(self.box) || !has(self.box.__import__) || self.box.__import__", Message: "import cannot be false"},
			{CEL: "!has(self.ratio) || self.ratio * 2.0 > 1.0", Message: "ratio is more than a half"},
		},
	}
	return descriptor.Kind{
		Name:     "Widget",
		Singular: "widget",
		Plural:   "widgets",
		Group:    "example.org",
		Version:  "v1",
		Scope:    descriptor.Namespaced,
		Verbs: []descriptor.Verb{
			descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate,
			descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus,
			descriptor.VerbFinalize, descriptor.VerbControl, descriptor.VerbDelete,
		},
		FilterableFields: []descriptor.FilterableField{
			{Path: "spec.title", Sortable: true},
			{Path: "spec.colour", Sortable: true},
			{Path: "spec.weight", Sortable: true},
			{Path: "spec.ratio", Sortable: true},
			{Path: "spec.heavy"},
			{Path: "spec.tags"},
			{Path: "spec.parts.slot"},
			{Path: "status.id"},
		},
		Spec: spec,
		Status: &descriptor.Shape{
			Name:   "WidgetStatus",
			Fields: []descriptor.Field{{Name: "id", Type: descriptor.TypeString}},
		},
	}
}

// WithConditions returns a kind with conditions in its status.
func WithConditions(k descriptor.Kind) descriptor.Kind {
	condition := &descriptor.Shape{
		Name: "Condition",
		Fields: []descriptor.Field{
			{Name: "type", Type: descriptor.TypeString}, {Name: "status", Type: descriptor.TypeString},
		},
	}
	k.Status.Fields = append(
		k.Status.Fields,
		descriptor.Field{
			Name:     "conditions",
			Type:     descriptor.TypeObject,
			Shape:    condition,
			List:     true,
			ListType: descriptor.ListAtomic,
		},
	)
	return k
}

// Cluster returns a GLOBAL kind that can only be read and created.
func Cluster() descriptor.Kind {
	k := Widget()
	k.Name = "Cluster"
	k.Singular = "cluster"
	k.Plural = "clusters"
	k.Scope = descriptor.Global
	k.Verbs = []descriptor.Verb{descriptor.VerbGet, descriptor.VerbCreate, descriptor.VerbUpsert}
	k.Expires, k.SubKinds = true, []string{"edge", "core"}
	return k
}

// Title returns the title of a widget.
func Title(b *body.Body) string {
	spec := b.Shape.Fields[body.SlotSpec].Shape
	slot, _ := spec.Slot("title")
	return b.Text(b.At(b.Object(b.At(body.Root, body.SlotSpec)), slot))
}

// Fixture is a service over a store in memory.
type Fixture struct {
	*service.Service
	T     testing.TB
	Store *memory.Store
	// UnreadableCount is the number of resources that the service has found to be unreadable.
	UnreadableCount *atomic.Int32
}

// Setup returns a service over an empty store in memory. It reads from the store until ServeIndexed is called.
func Setup(t *testing.T) *Fixture {
	t.Helper()
	return SetupOn(t, memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
}

// SetupOn is like Setup, with a given configuration of the store.
func SetupOn(t *testing.T, cfg memory.Config) *Fixture {
	t.Helper()
	store, err := memory.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	counted := &atomic.Int32{}
	s, err := service.New(service.Config{
		Kinds:      []descriptor.Kind{Widget(), Cluster()},
		Store:      store,
		Unreadable: kind.NewUnreadableCounter(func(string) { counted.Add(1) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Fixture{Service: s, T: t, Store: store, UnreadableCount: counted}
}

// SetupIndexed is like Setup, but the service runs and serves all kinds from memory.
func SetupIndexed(t *testing.T) *Fixture {
	t.Helper()
	f := Setup(t)
	f.ServeIndexed()
	return f
}

// ServeIndexed runs the service until the test ends. It returns when the service serves all kinds from memory.
func (f *Fixture) ServeIndexed() {
	f.T.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	f.T.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.T.Error(err)
		}
	})
	if f.Reader.PolicySource() != nil {
		if err := f.Reader.PolicySource().Filled(ctx); err != nil {
			f.T.Fatal(err)
		}
	}
	if f.Index() == nil {
		return
	}
	if err := f.Index().Filled(ctx); err != nil {
		f.T.Fatal(err)
	}
	if s := f.Index().Stats(); s.Served != s.Kinds {
		f.T.Fatalf("%+v", s)
	}
}

// Named returns the identity of a widget in the default namespace.
func Named(name string) kind.Identity { return kind.Identity{Kind: "Widget", Name: name} }

// CreateWidget creates a widget with a spec.
func (f *Fixture) CreateWidget(name, spec string) *service.Written {
	f.T.Helper()
	out, err := f.Writer.Create(
		context.Background(), service.CreateRequest{Identity: Named(name), Spec: json.RawMessage(spec)},
	)
	if err != nil {
		f.T.Fatalf("create %s: %v", name, err)
	}
	return out
}

// UpdateWidget replaces the spec of a widget.
func (f *Fixture) UpdateWidget(name, revision, spec string) (*service.Written, error) {
	return f.Writer.Update(
		context.Background(),
		service.UpdateRequest{Identity: Named(name), ExpectedRevision: revision, Spec: json.RawMessage(spec)},
	)
}

// Stored returns a widget from the store; nil if there is none.
func (f *Fixture) Stored(name string) *backend.Resource {
	f.T.Helper()
	got, err := f.Store.Get(context.Background(), backend.Key{Kind: "Widget", Namespace: "default", Name: name})
	if err != nil {
		f.T.Fatal(err)
	}
	return got[0]
}

// Rewrite stores another body for a widget, as another gateway or a controller would do. If caller is set, the spec
// revision changes.
func (f *Fixture) Rewrite(name string, caller bool, change func(map[string]any)) *backend.Resource {
	f.T.Helper()
	r := f.Stored(name)
	raw, _ := backend.DecodeBody(r.Body)
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		f.T.Fatal(err)
	}
	change(tree)
	raw, _ = json.Marshal(tree)
	return f.Put(r.Key, backend.Put{UID: r.UID, Caller: caller, Body: backend.EncodeBody(raw)})
}

// Put writes to the store without the service.
func (f *Fixture) Put(key backend.Key, put backend.Put) *backend.Resource {
	f.T.Helper()
	res, err := f.Store.Apply(context.Background(), backend.Batch{
		RequestID: "test", Deadline: f.Store.Now().Add(5e9),
		Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}},
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return res.Resources[0]
}

// LogPosition returns the position of the store.
func (f *Fixture) LogPosition() string {
	f.T.Helper()
	p, err := f.Store.Position(context.Background())
	if err != nil {
		f.T.Fatal(err)
	}
	return p.String()
}

// WantCode returns err as a [failure.Error]. It fails the test if err does not have the code.
func WantCode(t testing.TB, err error, code failure.Code) *failure.Error {
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

// ViolationPaths returns the paths and rules of all violations as one text.
func ViolationPaths(e *failure.Error) string {
	var out []string
	for _, v := range e.Violations {
		out = append(out, v.Path+" "+v.Rule)
	}
	return strings.Join(out, "; ")
}

// Raw returns a JSON text as a spec.
func Raw(spec string) json.RawMessage { return json.RawMessage(spec) }

// ReadCounter is a store that counts the resources that it returns.
type ReadCounter struct {
	*memory.Store
	Resources int
}

func (s *ReadCounter) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := s.Store.Range(ctx, r)
	s.Resources += len(page.Resources)
	return page, err
}

func (s *ReadCounter) Ranges(ctx context.Context, list []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, list)
	for _, p := range pages {
		s.Resources += len(p.Resources)
	}
	return pages, err
}

// Pointer returns a pointer to v.
func Pointer[T any](v T) *T { return &v }

// PageNames returns the names of the resources of a page.
func PageNames(p *query.Page) []string {
	out := make([]string, len(p.Edges))
	for i, e := range p.Edges {
		out[i] = e.Resource.Stored.Name
	}
	return out
}

// MustList returns a page of widgets, and fails the test if there is an error.
func (f *Fixture) MustList(req query.ListRequest) *query.Page {
	f.T.Helper()
	req.Kind = "Widget"
	p, err := f.Reader.List(context.Background(), req)
	if err != nil {
		f.T.Fatal(err)
	}
	return p
}

// Take reads a stream until it has at least n events, and returns them.
func Take(t testing.TB, c *change.Stream, n int) (out []change.Change) {
	t.Helper()
	for len(out) < n {
		more, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, more...)
	}
	return out
}

// Story returns the types of events and the names of their resources as one text.
func Story(changes []change.Change) string {
	s := ""
	for _, c := range changes {
		s += string(c.Type)
		if c.Stored != nil {
			s += " " + c.Stored.Name
		}
		s += "; "
	}
	return s
}

// StartChanges opens a stream, which is closed when the test ends.
func (f *Fixture) StartChanges(req change.Request) *change.Stream {
	f.T.Helper()
	c, err := f.Feed.Changes(context.Background(), req)
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(c.Close)
	return c
}

// Damage replaces the body of a widget by bytes that are not JSON.
func (f *Fixture) Damage(name string) *backend.Resource {
	f.T.Helper()
	r := f.Stored(name)
	return f.Put(r.Key, backend.Put{UID: r.UID, Caller: true, Body: backend.EncodeBody([]byte(`{"version":"v1","spec":`))})
}

// Labelled returns a patch that sets a label.
func Labelled(key, value string) service.MetadataPatch {
	return service.MetadataPatch{
		Labels: service.Optional[[]service.PairPatch]{Set: true, Value: []service.PairPatch{{Key: key, Value: &value}}},
	}
}

// MovingStore is a store that calls Then after the first call of a method that reads resources.
type MovingStore struct {
	*memory.Store
	Then func()
}

func (s *MovingStore) Ranges(ctx context.Context, list []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, list)
	if s.Then != nil && slices.ContainsFunc(pages, func(p backend.Page) bool { return len(p.Resources) > 0 }) {
		then := s.Then
		s.Then = nil
		then()
	}
	return pages, err
}

// Gateways returns n services over one store.
func Gateways(t *testing.T, store backend.Store, n int) []*service.Service {
	t.Helper()
	out := make([]*service.Service, n)
	for i := range out {
		svc, err := service.New(service.Config{Kinds: []descriptor.Kind{Widget(), Cluster()}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		out[i] = svc
	}
	return out
}

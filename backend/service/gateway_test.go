package service_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
)

// spy notes what a service asks of its store.
type spy struct {
	*memory.Store
	mu      sync.Mutex
	indexes []string // of the steps of queries since they were taken last
	applied int
	onApply func(n int) // before the n-th batch
	onRead  func()      // before each Ranges
}

func (s *spy) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	s.mu.Lock()
	for _, r := range rs {
		if r.Index != backend.DefinitionIndex {
			s.indexes = append(s.indexes, r.Index)
		}
	}
	s.mu.Unlock()
	if s.onRead != nil {
		s.onRead()
	}
	return s.Store.Ranges(ctx, rs)
}

func (s *spy) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	s.mu.Lock()
	s.applied++
	n := s.applied
	s.mu.Unlock()
	if s.onApply != nil {
		s.onApply(n)
	}
	return s.Store.Apply(ctx, b)
}

// gateway is one of several on the same data.
type gateway struct {
	*fixture
	spy *spy
}

// join starts a gateway with these indexes of a widget.
func join(t *testing.T, store *memory.Store, change func(*descriptor.Kind)) *gateway {
	t.Helper()
	kind := widget()
	change(&kind)
	g := &gateway{spy: &spy{Store: store.Handle()}}
	t.Cleanup(func() { _ = g.spy.Close() })
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{kind, cluster()}, Store: g.spy, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	g.fixture = &fixture{Service: s, t: t, store: g.spy.Store}
	return g
}

// The two definitions: the newer one has another index and an older one less.
func older(k *descriptor.Kind) {
	k.Indexes = []descriptor.Index{{Path: "spec.title"}, {Path: "spec.heavy"}}
}
func newer(k *descriptor.Kind) {
	k.Indexes = []descriptor.Index{{Path: "spec.title"}, {Path: "spec.weight"}}
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

// run starts the gateway's Run and returns what ends it.
func (g *gateway) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			g.t.Errorf("run: %v", err)
		}
	})
	g.t.Cleanup(stop)
	return stop
}

// by returns the names that a filter on one field finds, and the index it read, "" for a scan.
func (g *gateway) by(field string, value any) (names []string, index string) {
	g.t.Helper()
	g.spy.mu.Lock()
	g.spy.indexes = nil
	g.spy.mu.Unlock()
	filter, _ := json.Marshal(map[string]any{"spec": map[string]any{field: map[string]any{"eq": value}}})
	var tree any
	d := json.NewDecoder(strings.NewReader(string(filter)))
	d.UseNumber()
	_ = d.Decode(&tree)
	page, err := g.List(context.Background(), access.Caller{}, query.ListRequest{Kind: "Widget", Filter: tree})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range page.Edges {
		names = append(names, e.Resource.Stored.Name)
	}
	g.spy.mu.Lock()
	defer g.spy.mu.Unlock()
	return names, g.spy.indexes[len(g.spy.indexes)-1]
}

// want fails unless the filter finds the names by the index.
func (g *gateway) want(field string, value any, index string, names ...string) {
	g.t.Helper()
	got, by := g.by(field, value)
	if !slices.Equal(got, names) || by != index {
		g.t.Fatalf("%s %v: found %v by index %q, want %v by %q", field, value, got, by, names, index)
	}
}

// fingerprints counts the widgets by fingerprint.
func (g *gateway) fingerprints() map[string]int {
	g.t.Helper()
	out := map[string]int{}
	r := backend.Range{Kind: "Widget", Limit: 1000}
	page, err := g.store.Range(context.Background(), r)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, r := range page.Resources {
		out[r.Fingerprint]++
	}
	return out
}

func namesOf(rs []*backend.Resource) (names []string) {
	for _, r := range rs {
		names = append(names, r.Name)
	}
	return names
}

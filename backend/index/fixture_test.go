package index_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// store is what the tests need of one.
type store interface {
	backend.Store
	backend.Clock
	Purge(context.Context) (int, error)
	Close() error
}

// fixture is an index over a store, filled and following.
type fixture struct {
	testing.TB
	store store
	hub   *hub.Hub
	*index.Index
	ids atomic.Int64
}

// onEachStore runs a test on each kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, open func(*testing.T) store)) {
	t.Run("memory", func(t *testing.T) { test(t, openMemory) })
	t.Run("bolt", func(t *testing.T) {
		test(t, openBolt)
	})
	t.Run("redis", func(t *testing.T) {
		test(t, func(t *testing.T) store {
			s, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL()})
			return opened(t, s, err)
		})
	})
}

func openMemory(t *testing.T) store {
	s, err := memory.Open(memory.Config{})
	return opened(t, s, err)
}

func openBolt(t *testing.T) store {
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")})
	return opened(t, s, err)
}

func opened(t *testing.T, s store, err error) store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// thing is a kind whose bodies end in the values of their rows, see bodyOf.
func thing(name string) index.Definition {
	return index.Definition{
		Name: name, Indexes: []string{"colour", index.NameIndex}, Sortable: []string{"colour"}, ByCreation: []string{"colour"},
		Rows: func(b *body.Body) []index.Row { return rowsOf(b.Stored) },
		Keep: func(r *backend.Resource, more func(*body.Body) []byte) (body.Body, string, int, error) {
			raw, err := backend.DecodeBody(r.Body)
			if text, _, _ := strings.Cut(string(raw), "|"); err != nil || text == "bad" {
				return body.Body{}, "", len(r.Body), backend.ErrUnreadable
			}
			kept := body.Body{Stored: r}
			return kept, string(more(&kept)), len(r.Body), nil
		},
	}
}

// bodyOf is a body with rows of the index by colour.
func bodyOf(text string, rows ...index.Row) []byte {
	var values []string
	for _, row := range rows {
		values = append(values, string(row.Value))
	}
	if len(values) > 0 {
		text += "|" + strings.Join(values, ",")
	}
	return backend.EncodeBody([]byte(text))
}

// rowsOf are the rows of a resource by its body.
func rowsOf(r *backend.Resource) (out []index.Row) {
	_, values, found := strings.Cut(string(r.Body), "|")
	if !found {
		return nil
	}
	for value := range strings.SplitSeq(values, ",") {
		out = append(out, index.Row{Index: "colour", Value: []byte(value)})
	}
	return out
}

// start runs an index of two kinds over a store, as the configuration says.
func start(t *testing.T, s store, cfg index.Config) *fixture {
	t.Helper()
	f := &fixture{TB: t, store: s}
	var err error
	if f.hub, err = hub.New(hub.Config{Store: s}); err != nil {
		t.Fatal(err)
	}
	cfg.Store, cfg.Hub, cfg.Kinds = s, f.hub, []index.Definition{thing("Thing"), thing("Other")}
	if f.Index, err = index.New(cfg); err != nil {
		t.Fatal(err)
	}
	f.run(f.hub.Run)
	f.run(f.Run)
	f.filled()
	return f
}

// run runs a service until the test ends, or stop is called.
func (f *fixture) run(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	f.Cleanup(stop)
	return stop
}

// beginAgain makes the index forget everything and begin at the position of the hub. The hub delivers nothing
// meanwhile: an index that began before a change that it has been given already would wait for it forever.
func (f *fixture) beginAgain() { f.hub.AddFollower(beginning{f.Index})() }

// beginning is a follower that makes an index begin again when it is added.
type beginning struct{ index *index.Index }

func (b beginning) Begin(at backend.Position) {
	b.index.Begin(backend.Position{})
	b.index.Begin(at)
}

func (b beginning) Deliver(backend.Delivery) {}

func (f *fixture) filled() {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.Filled(ctx); err != nil {
		f.Fatal(err)
	}
}

// view takes the view of a kind, which must be served.
func (f *fixture) view(kind string) (index.View, *index.Kind) {
	f.Helper()
	v, ok := f.View(context.Background())
	k, served := v.Kind(kind)
	if !ok || !served {
		f.Fatalf("%s is not served: %+v", kind, f.Stats())
	}
	return v, k
}

func key(name string) backend.Key {
	return backend.Key{Kind: "Thing", Namespace: "ns", Name: name}
}

func (f *fixture) apply(a backend.Action) (backend.Result, error) {
	return f.store.Apply(context.Background(), backend.Batch{
		RequestID: fmt.Sprint("r", f.ids.Add(1)), Deadline: f.store.Now().Add(10 * time.Second), Actions: []backend.Action{a},
	})
}

func (f *fixture) put(k backend.Key, text string, rows ...index.Row) *backend.Resource {
	f.Helper()
	res, err := f.apply(backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: bodyOf(text, rows...)}})
	if err != nil {
		f.Fatal(err)
	}
	return res.Resources[0]
}

func (f *fixture) remove(k backend.Key) {
	f.Helper()
	if _, err := f.apply(backend.Action{Key: k, Op: backend.OpDelete}); err != nil {
		f.Fatal(err)
	}
}

func equalRows(a, b index.Row) bool { return a.Index == b.Index && bytes.Equal(a.Value, b.Value) }

func colour(c string) index.Row {
	return index.Row{Index: "colour", Value: backend.AppendString(nil, c)}
}

func names(k *index.Kind, r index.Run, reverse bool) string {
	var out []string
	k.Scan(r, reverse, func(_ string, e *index.Entry) bool {
		out = append(out, e.Resource.Name)
		return true
	})
	return strings.Join(out, " ")
}

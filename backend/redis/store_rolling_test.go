package redis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/redistest"
)

// rollingTime is how long two releases work side by side. SLUICE_TEST_ROLLING
// sets it, for a run of many minutes.
func rollingTime(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("SLUICE_TEST_ROLLING"))
	if os.Getenv("SLUICE_TEST_ROLLING") != "" && err != nil {
		t.Fatalf("SLUICE_TEST_ROLLING: %v", err)
	}
	return max(d, 2*time.Second)
}

// releaseThing is the kind of the tests as an older release has it, or as a
// newer one: with a field more in the spec, which is indexed, in an object, in
// an immutable object and in the elements of a list without key.
func releaseThing(newer bool) descriptor.Kind {
	text := func(name string) descriptor.Field {
		n := 200
		return descriptor.Field{Name: name, Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: &n}}
	}
	shape := func(name string, fields ...descriptor.Field) *descriptor.Shape {
		if newer {
			fields = append(fields, text("novel"))
		}
		return &descriptor.Shape{Name: name, Fields: fields}
	}
	most := 20
	k := thing()
	k.Spec = shape("ThingSpec", text("title"),
		descriptor.Field{Name: "box", Type: descriptor.TypeObject, Shape: shape("Box", text("label"))},
		descriptor.Field{Name: "origin", Type: descriptor.TypeObject, Shape: shape("Origin", text("place")), Immutable: true},
		descriptor.Field{Name: "rules", Type: descriptor.TypeObject, Shape: shape("Rule", text("port")), List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MaxItems: &most}})
	if newer {
		k.FilterableFields = append(k.FilterableFields, descriptor.FilterableField{Path: "spec.novel", Sortable: true}, descriptor.FilterableField{Path: "spec.rules.novel"})
	}
	return k
}

// rolling is an older and a newer gateway on one Redis.
type rolling struct {
	*testing.T
	store        *redis.Store // of the older one
	older, newer *service.Service
	things       []*rollingThing
}

// rollingThing is one resource, and what was last acknowledged of it.
type rollingThing struct {
	name string
	mu   sync.Mutex // one writer of each half at a time
	// titles is what the older fields have, novels what the newer ones have.
	titles, novels string
}

func (r *rolling) start(newer bool, server *redistest.Server, prefix string) (*redis.Store, *service.Service) {
	r.Helper()
	st, err := redis.Open(r.Context(), redis.Config{URL: server.URL(), Prefix: prefix})
	if err != nil {
		r.Fatal(err)
	}
	svc, err := service.New(service.Config{Kinds: []descriptor.Kind{releaseThing(newer)}, Store: st})
	if err != nil {
		r.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(ctx) })
	r.Cleanup(func() {
		stop()
		running.Wait()
		_ = st.Close()
	})
	return st, svc
}

// again repeats a conditional write that lost against another one.
func (r *rolling) again(s *service.Service, name string, write func(current *query.Resource) (*service.Written, error)) *service.Written {
	for {
		current, err := s.Reader.Get(r.Context(), thingNamed(name))
		if err != nil || current == nil {
			r.Errorf("get %s: %v %v", name, current, err)
			return nil
		}
		out, err := write(current)
		if err == nil {
			return out
		}
		if code(r.T, err) != failure.CodeConflict {
			r.Errorf("write of %s: %+v", name, err)
			return nil
		}
	}
}

// writeOlder changes what the older release can name, in every way it has.
func (r *rolling) writeOlder(rnd *rand.Rand, th *rollingThing) {
	value := fmt.Sprint("t", rnd.Uint32())
	spec := func() map[string]any {
		return map[string]any{"title": value, "box": map[string]any{"label": value}, "origin": map[string]any{"place": "fixed"}, "rules": []any{map[string]any{"port": "80"}, map[string]any{"port": "443"}}}
	}
	id, who := thingNamed(th.name), access.Caller{}
	switch rnd.IntN(5) {
	case 0:
		r.again(r.older, th.name, func(c *query.Resource) (*service.Written, error) {
			return r.older.Writer.Patch(access.WithCaller(r.Context(), who), service.PatchRequest{Identity: id, ExpectedRevision: c.Stored.Revision.String(), Patch: map[string]any{"title": value, "box": map[string]any{"label": value}}})
		})
	case 1:
		r.again(r.older, th.name, func(c *query.Resource) (*service.Written, error) {
			return r.older.Writer.Update(access.WithCaller(r.Context(), who), service.UpdateRequest{Identity: id, ExpectedRevision: c.Stored.Revision.String(), Spec: spec()})
		})
	case 2:
		if _, err := r.older.Writer.Upsert(access.WithCaller(r.Context(), who), service.UpsertRequest{Identity: id, Spec: spec()}); err != nil {
			r.Errorf("upsert: %v", err)
		}
	case 3: // edit
		r.again(r.older, th.name, func(c *query.Resource) (*service.Written, error) {
			text, err := r.older.Manifest(c.Stored, service.YAML)
			if err != nil {
				return nil, err
			}
			revision := c.Stored.Revision.String()
			out, err := r.older.Writer.Apply(access.WithCaller(r.Context(), who), service.ApplyRequest{Manifest: text, ExpectedRevision: &revision})
			if err != nil {
				return nil, err
			}
			if out.Outcome != service.Unchanged {
				r.Errorf("get and apply is %s\n%s", out.Outcome, text)
			}
			edited := strings.ReplaceAll(text, th.titles, value)
			return r.older.Writer.Apply(access.WithCaller(r.Context(), who), service.ApplyRequest{Manifest: edited, ExpectedRevision: &revision})
		})
	case 4:
		r.again(r.older, th.name, func(c *query.Resource) (*service.Written, error) {
			return r.older.Writer.UpdateStatus(access.WithCaller(r.Context(), who), service.StatusRequest{Identity: id, ExpectedRevision: c.Stored.Revision.String(), Status: map[string]any{"id": value}})
		})
		return
	}
	th.titles = value
}

// writeNewer changes what only the newer release can name.
func (r *rolling) writeNewer(rnd *rand.Rand, th *rollingThing) {
	value := fmt.Sprint("n", rnd.Uint32())
	r.again(r.newer, th.name, func(c *query.Resource) (*service.Written, error) {
		return r.newer.Writer.Patch(r.Context(), service.PatchRequest{Identity: thingNamed(th.name), ExpectedRevision: c.Stored.Revision.String(), Patch: map[string]any{
			"novel": value, "box": map[string]any{"novel": value},
			"rules": []any{map[string]any{"port": "80", "novel": value}, map[string]any{"port": "443", "novel": value}},
		}})
	})
	th.novels = value
}

// check wants what was acknowledged to be stored.
func (r *rolling) check(th *rollingThing) {
	stored, err := r.store.Get(r.Context(), thingKey(th.name))
	if err != nil || stored[0] == nil {
		r.Errorf("%s: %v", th.name, err)
		return
	}
	raw, err := backend.DecodeBody(stored[0].Body)
	if err != nil {
		r.Error(err)
		return
	}
	var body struct{ Spec json.RawMessage }
	_ = json.Unmarshal(raw, &body)
	var got, want any
	_ = json.Unmarshal(body.Spec, &got)
	_ = json.Unmarshal(fmt.Appendf(nil, `{"title":%[1]q,"novel":%[2]q,"box":{"label":%[1]q,"novel":%[2]q},"origin":{"place":"fixed","novel":"kept"},
		"rules":[{"port":"80","novel":%[2]q},{"port":"443","novel":%[2]q}]}`, th.titles, th.novels), &want)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("%s holds %s\nwant %v", th.name, body.Spec, want)
	}
}

// listen keeps the state that a stream tells, until ctx ends.
func (r *rolling) listen(ctx context.Context, s *service.Service, filter any) func() map[string]string {
	c, err := s.Feed.Changes(ctx, change.Request{Kinds: []string{"Thing"}, Snapshot: true, Filter: filter})
	if err != nil {
		r.Fatal(err)
	}
	var mu sync.Mutex
	state := map[string]string{}
	go func() {
		defer c.Close()
		for {
			list, err := c.Next(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			for _, e := range list {
				switch e.Type {
				case change.Reset:
					clear(state)
				case change.Deleted:
					delete(state, e.Stored.Name)
				case change.Snapshot, change.Added, change.Modified:
					state[e.Stored.Name] = e.Revision
				}
			}
			mu.Unlock()
		}
	}()
	return func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(state)
	}
}

func TestStore_TwoReleasesWorkSideBySide(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	server, prefix := server.Server(t), redistest.Prefix()
	r := &rolling{T: t}
	r.store, r.older = r.start(false, server, prefix)
	_, r.newer = r.start(true, server, prefix)
	for i := range 20 {
		th := &rollingThing{name: fmt.Sprint("thing-", i), titles: "t0", novels: "n0"}
		r.things = append(r.things, th)
		if _, err := r.newer.Writer.Create(t.Context(), service.CreateRequest{Identity: thingNamed(th.name), Spec: json.RawMessage(`{"title":"t0","novel":"n0","box":{"label":"t0","novel":"n0"},
			"origin":{"place":"fixed","novel":"kept"},"rules":[{"port":"80","novel":"n0"},{"port":"443","novel":"n0"}]}`)}); err != nil {
			t.Fatal(err)
		}
	}
	titles := map[string]any{"spec": map[string]any{"title": map[string]any{"startsWith": "t"}}}
	novels := map[string]any{"spec": map[string]any{"novel": map[string]any{"startsWith": "n"}}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	streams := map[string]func() map[string]string{
		"older":           r.listen(ctx, r.older, nil),
		"older, filtered": r.listen(ctx, r.older, titles),
		"newer":           r.listen(ctx, r.newer, nil),
		"newer, filtered": r.listen(ctx, r.newer, novels),
	}
	end := time.Now().Add(rollingTime(t))
	var writers sync.WaitGroup
	for w := range 8 {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				th := r.things[rnd.IntN(len(r.things))]
				th.mu.Lock()
				if rnd.IntN(3) == 0 {
					r.writeNewer(rnd, th)
				} else {
					r.writeOlder(rnd, th)
				}
				if rnd.IntN(10) == 0 {
					r.check(th)
				}
				th.mu.Unlock()
			}
		})
	}
	var readers sync.WaitGroup
	for name, list := range map[string]struct {
		service *service.Service
		filter  any
	}{"older": {r.older, titles}, "newer": {r.newer, novels}} {
		readers.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				page, err := list.service.Reader.List(t.Context(), query.ListRequest{Kind: "Thing", Filter: list.filter})
				if err != nil || len(page.Edges) != len(r.things) {
					t.Errorf("%s: a list of all that always match has %v, error %v", name, page, err)
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
	for _, th := range r.things {
		r.check(th)
	}
	want := map[string]string{}
	for _, th := range r.things {
		stored, err := r.store.Get(t.Context(), thingKey(th.name))
		if err != nil {
			t.Fatal(err)
		}
		want[th.name] = stored[0].Revision.String()
	}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		redistest.Await(t, "the stream of the "+name+" gateway tells the state", func() error {
			if got := streams[name](); !maps.Equal(got, want) {
				return fmt.Errorf("it tells %v, want %v", got, want)
			}
			return nil
		})
	}
}

package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestList_AnswersAreThoseOfAPlainSortAtOneMoment holds pages and counts, while others write,
// resources expire and the index fails, against a plain sort of the states that the
// store had between request and answer. SLUICE_TEST_MOMENTS says how many rounds.
func TestList_AnswersAreThoseOfAPlainSortAtOneMoment(t *testing.T) {
	t.Parallel()
	seed := servicetest.Setting(t, "SLUICE_TEST_SEED", rand.Uint64N(1<<32))
	rounds := servicetest.Setting(t, "SLUICE_TEST_MOMENTS", servicetest.Sized(2, 1))
	for _, on := range []string{"memory", "bolt", "redis"} {
		if testing.Short() && on == "bolt" {
			continue
		}
		for _, how := range []string{"store", "index", "failing index", "small index"} {
			t.Run(on+" "+how, func(t *testing.T) {
				for round := range rounds {
					r := newRound(t, on, how, seed+round)
					r.run()
					if r.check(); t.Failed() {
						t.Fatalf("SLUICE_TEST_SEED=%d SLUICE_TEST_MOMENTS=1", seed+round)
					}
				}
			})
		}
	}
}

// round is a gateway, its writers, and the answers that it gave.
type round struct {
	*servicetest.Gateway
	t         *testing.T
	on        string
	how       string
	rnd       *rand.Rand
	clock     atomic.Int64 // ms
	begin     backend.Position
	events    []backend.Event
	questions []question
}

// question is a request and its answer.
type question struct {
	listQuery
	first, last uint64 // sequences of the store's head before and after
	from, to    int64  // the clock before and after
	// keys are the resources of the answer with their revisions; of a count there are none.
	keys  []string
	more  bool
	count int
	// mixed: the store of Redis has answered, which reads the resources after what has led
	// to them. Each is of a state in between, and not all of them of the same.
	mixed bool
	// source says where the answer was read.
	source string
}

func newRound(t *testing.T, on, how string, seed uint64) *round {
	r := &round{t: t, on: on, how: how, rnd: rand.New(rand.NewPCG(seed, 0))}
	r.clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(r.clock.Load()).UTC() }
	var s servicetest.Driver
	var err error
	switch on {
	case "memory":
		s, err = memory.Open(memory.Config{Clock: now})
	case "bolt":
		s, err = bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), Clock: now})
	case "redis":
		s, err = redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Clock: now})
	}
	servicetest.Opened(t, s, err)
	cfg := service.Config{}
	switch how {
	case "store":
		cfg.IndexMemory = -1
	case "small index":
		cfg.IndexMemory = 30_000
	}
	r.Gateway = servicetest.NewGateway(t, s, cfg)
	if r.begin, err = s.Position(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// run writes and asks at the same time.
func (r *round) run() {
	defer r.End()
	r.StartIndex()
	for range 40 {
		r.write(r.rnd)
	}
	if r.how == "index" {
		r.WaitFilled()
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 2 {
		own := rand.New(rand.NewPCG(r.rnd.Uint64(), 0))
		wg.Go(func() {
			for n := 0; ctx.Err() == nil && n < 3000; n++ {
				r.write(own)
			}
		})
	}
	if r.how == "failing index" || r.how == "small index" {
		own := rand.New(rand.NewPCG(r.rnd.Uint64(), 0))
		wg.Go(func() {
			for ctx.Err() == nil {
				switch own.IntN(4) {
				case 0:
					r.EndIndex()
				case 1, 2:
					r.StartIndex()
				default:
					r.LoseIndex()
				}
				r.write(own) // and so let it work for a while
			}
		})
	}
	for range 60 {
		r.ask()
	}
	stop()
	wg.Wait()
	w, err := r.Store.Watch(r.t.Context(), backend.Watch{From: r.begin})
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Close()
	for {
		d, err := w.Next(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if r.events = append(r.events, d.Events...); d.CaughtUp {
			return
		}
	}
}

// write changes a random book, and sometimes moves the clock.
func (r *round) write(rnd *rand.Rand) {
	ctx := context.Background()
	id := servicetest.Book(fmt.Sprint("ns", rnd.IntN(2)), fmt.Sprint("n", rnd.IntN(25)))
	switch rnd.IntN(8) {
	case 0:
		r.clock.Add(int64(1 + rnd.IntN(40)))
	case 1:
		_, err := r.Writer.Delete(access.WithCaller(ctx, access.Caller{}), service.DeleteRequest{Identity: id})
		if code, _ := servicetest.ErrorOf(r.t, err); code != "" && code != "NOT_FOUND" {
			r.t.Errorf("delete: %v", err)
		}
		return
	case 2:
		if _, err := r.Store.Purge(ctx); err != nil {
			r.t.Errorf("purge: %v", err)
		}
	}
	spec := map[string]any{"title": string(rune('a' + rnd.IntN(4))), "shelfRef": fmt.Sprint("s", rnd.IntN(3)), "libraryRef": fmt.Sprint("l", rnd.IntN(2))}
	if rnd.IntN(3) > 0 {
		spec["weight"] = rnd.IntN(5)
	}
	if rnd.IntN(3) > 0 {
		spec["colour"] = []string{"red", "blue"}[rnd.IntN(2)]
	}
	for _, tag := range []string{"x", "y"} {
		if rnd.IntN(2) == 0 {
			tags, _ := spec["tags"].([]string)
			spec["tags"] = append(tags, tag)
		}
	}
	req := service.UpsertRequest{Identity: id, Spec: spec}
	req.Labels = service.Optional[[]service.Label]{Set: true}
	if rnd.IntN(2) == 0 {
		req.Labels.Value = []service.Label{{Key: "tier", Value: []string{"web", "db"}[rnd.IntN(2)]}}
	}
	if req.ExpiresAt.Set = true; rnd.IntN(3) == 0 {
		req.ExpiresAt.Value = time.UnixMilli(r.clock.Load() + int64(rnd.IntN(300)) + 1)
	}
	_, err := r.Writer.Upsert(access.WithCaller(ctx, access.Caller{}), req)
	// What is to expire may have expired on the way.
	if code, _ := servicetest.ErrorOf(r.t, err); code != "" && code != "VALIDATION_FAILED" {
		r.t.Errorf("upsert: %v", err)
	}
}

// ask asks for a count and for pages one after the other.
func (r *round) ask() {
	q := randomQuery(r.rnd)
	zero := 0
	counted := q.request()
	counted.First = &zero
	r.note(question{listQuery: q}, func(ctx context.Context, a *question) error {
		page, err := r.Reader.List(access.WithCaller(ctx, access.Caller{}), counted)
		if err == nil {
			a.count, err = page.TotalCount(ctx)
		}
		return err
	})
	q.size, q.backward = 1+r.rnd.IntN(6), r.rnd.IntN(2) == 0
	for range 4 {
		var page *query.Page
		req := q.request()
		if q.backward {
			req.Last, req.Before = &q.size, q.cursor
		} else {
			req.First, req.After = &q.size, q.cursor
		}
		req.Ahead = true
		ok := r.note(question{listQuery: q}, func(ctx context.Context, a *question) (err error) {
			if page, err = r.Reader.List(access.WithCaller(ctx, access.Caller{}), req); err != nil {
				return err
			}
			for _, e := range page.Edges {
				a.keys = append(a.keys, keyOf(e.Resource.Stored))
			}
			if q.backward {
				a.more, err = page.PageInfo().HasPreviousPage(ctx)
			} else {
				a.more, err = page.PageInfo().HasNextPage(ctx)
			}
			return err
		})
		if !ok || len(page.Edges) == 0 {
			return
		}
		at := 0
		q.cursor = page.PageInfo().StartCursor()
		if !q.backward {
			at, q.cursor = len(page.Edges)-1, page.PageInfo().EndCursor()
		}
		q.behind = volumeOf(r.t, page.Edges[at].Resource.Stored)
	}
}

// note asks and keeps the answer.
func (r *round) note(a question, ask func(context.Context, *question) error) bool {
	ctx, explained := queryplan.WithExplanation(context.Background())
	head := func() uint64 {
		p, err := r.Store.Position(ctx)
		if err != nil {
			r.t.Error(err)
		}
		return p.Shard(0).Seq
	}
	a.from, a.first = r.clock.Load(), head()
	if err := ask(ctx, &a); err != nil {
		// An index that fails again and again may be filled too late on a busy machine.
		if code, _ := servicetest.ErrorOf(r.t, err); code != "UNAVAILABLE" || r.how != "failing index" {
			r.t.Errorf("%s: %v", a.text(), err)
		}
		return false
	}
	a.last, a.to = head(), r.clock.Load()
	reads := explained.Reads()
	a.mixed = r.on == "redis" && (len(reads) == 0 || reads[0].Source != "index")
	a.source = fmt.Sprint(reads)
	r.questions = append(r.questions, a)
	return true
}

func keyOf(r *backend.Resource) string {
	return fmt.Sprintf("%s/%s@%d", r.Namespace, r.Name, r.Revision.Seq)
}

// check compares each answer with the states that the store had meanwhile.
func (r *round) check() {
	if len(r.questions) == 0 {
		r.t.Error("nothing was answered")
	}
	states := map[uint64]map[string]*volume{r.begin.Shard(0).Seq: {}}
	now, last := map[string]*volume{}, r.begin.Shard(0).Seq
	for i := range r.events {
		e := &r.events[i]
		if e.Revision.Seq != last+1 {
			r.t.Fatalf("after %d comes %d", last, e.Revision.Seq)
		}
		last = e.Revision.Seq
		if e.Resource.Kind == "Book" {
			key := e.Resource.Namespace + "/" + e.Resource.Name
			if e.Type == backend.Deleted {
				delete(now, key)
			} else {
				now[key] = volumeOf(r.t, e.Resource)
			}
		}
		states[last] = make(map[string]*volume, len(now))
		for key, v := range now {
			states[last][key] = v
		}
	}
	for i := range r.questions {
		a := &r.questions[i]
		found := false
		var was []string
		left := slices.Clone(a.keys)
		for at := a.first; at <= a.last && !found; at++ {
			for clock := a.from; clock <= a.to && !found; clock++ {
				found = a.fits(states[at], clock)
				if a.mixed {
					all := a.expected(states[at], clock)
					left = slices.DeleteFunc(left, func(key string) bool { return slices.Contains(all, key) })
				}
			}
			was = append(was, strings.Join(a.expected(states[at], a.to), " "))
		}
		if !found && !(a.mixed && len(left) == 0) {
			r.t.Errorf("%s, between %d and %d, clock %d to %d, from %s:\ngot  %v more %v count %d\nwant one of\n%s\nchanges%s", a.text(), a.first, a.last, a.from, a.to, a.source,
				a.keys, a.more, a.count, strings.Join(slices.Compact(was), "\n"), r.changes(a.first, a.last))
			return
		}
	}
}

// changes returns the changes between two sequences, as text.
func (r *round) changes(first, last uint64) (out string) {
	for i := range r.events {
		e := &r.events[i]
		if e.Revision.Seq >= first && e.Revision.Seq <= last {
			out += fmt.Sprintf("\n%d %s %s/%s created %d updated %d expires %d", e.Revision.Seq, e.Type, e.Resource.Namespace, e.Resource.Name,
				e.Resource.CreatedAt.UnixMilli(), e.Resource.UpdatedAt.UnixMilli(), e.Resource.ExpiresAt.UnixMilli())
		}
	}
	return out
}

// expected is all that the query keeps behind its cursor, in order, forward.
func (a *question) expected(state map[string]*volume, clock int64) []string {
	var kept []*volume
	for _, v := range state {
		if (v.expires == 0 || v.expires > clock) && a.matches(v) && a.isBehind(v) {
			kept = append(kept, v)
		}
	}
	slices.SortFunc(kept, a.compare)
	out := make([]string, len(kept))
	for i, v := range kept {
		out[i] = v.key
	}
	return out
}

// fits reports whether the answer is right for a state at an instant.
func (a *question) fits(state map[string]*volume, clock int64) bool {
	all := a.expected(state, clock)
	if a.size == 0 {
		return len(all) == a.count
	}
	page := all
	if len(all) > a.size {
		if page = all[:a.size]; a.backward {
			page = all[len(all)-a.size:]
		}
	}
	return slices.Equal(page, a.keys) && a.more == (len(all) > a.size)
}

// volume is a book as the plain sort sees it.
type volume struct {
	key, ns, name             string
	title, tier               string
	shelf, library            string
	colour                    int
	weight                    *int
	tags                      []string
	created, updated, expires int64
}

func volumeOf(t *testing.T, r *backend.Resource) *volume {
	raw, err := backend.DecodeBody(r.Body)
	var tree struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Title, Colour, ShelfRef, LibraryRef string
			Weight                              *int
			Tags                                []string
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &tree)
	}
	if err != nil {
		t.Errorf("%s: %v", r.Key, err)
	}
	v := &volume{
		key: keyOf(r), ns: r.Namespace, name: r.Name, title: tree.Spec.Title, shelf: tree.Spec.ShelfRef, library: tree.Spec.LibraryRef, weight: tree.Spec.Weight,
		tier: tree.Metadata.Labels["tier"], tags: tree.Spec.Tags, created: r.CreatedAt.UnixNano(), updated: r.UpdatedAt.UnixNano(), colour: 1,
	}
	if tree.Spec.Colour == "red" {
		v.colour = 0
	}
	if !r.ExpiresAt.IsZero() {
		v.expires = r.ExpiresAt.UnixMilli()
	}
	return v
}

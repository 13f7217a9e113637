package change_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// listener builds a state from the events that it is told.
type listener struct {
	t      *testing.T
	known  map[string]backend.Revision
	inSync bool
}

// hear takes an event: nothing is told twice, or before what is older, and nothing is deleted that
// the listener does not have.
func (l *listener) hear(c *change.Change) {
	l.t.Helper()
	if c.Type == change.Reset {
		clear(l.known)
	}
	l.inSync = l.inSync || c.Type == change.InSync
	if c.Stored == nil {
		return
	}
	name, revision := c.Stored.Name, c.Stored.Revision
	was, known := l.known[name]
	switch {
	case c.Type == change.Deleted && !known:
		l.t.Errorf("%s is deleted, and was not told", name)
	case c.Type == change.Deleted:
		delete(l.known, name)
		return
	case known && (revision.Compare(was) < 0 || revision == was && c.Type != change.Snapshot), known && c.Type == change.Added:
		l.t.Errorf("%s %s at %v comes after %v", c.Type, name, revision, was)
	}
	l.known[name] = revision
}

// anyLate is a leader whose state is told to others that come late, now and then.
type anyLate struct{ rnd *rand.Rand }

func (anyLate) Wake() {}

func (l anyLate) Late() bool { return l.rnd.IntN(3) > 0 }

// TestResumePoint_AStreamGoesOnAnywhereWithinTheState leaves a shared stream in the middle of a page, as a
// listener does that is too slow for the others, and goes on alone from there, and leaves that too,
// while resources are written.
func TestResumePoint_AStreamGoesOnAnywhereWithinTheState(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for source, open := range map[string]func(*testing.T) *servicetest.Fixture{"from the store": servicetest.Setup, "from the index": servicetest.SetupIndexed} {
		t.Run(source, func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			f := open(t)
			write := func(rnd *rand.Rand, n int) {
				for range n {
					id := servicetest.Named(fmt.Sprintf("w%03d", rnd.IntN(260)))
					if rnd.IntN(2) == 0 {
						_, _ = f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: id})
					} else if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: id, Spec: map[string]any{"title": fmt.Sprint("t", rnd.IntN(1e6))}}); err != nil {
						t.Error(err)
					}
				}
			}
			write(rnd, 700)
			for round := range rounds {
				l := listener{t: t, known: map[string]backend.Revision{}}
				stream, left := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Snapshot: true}), 0
				for !l.inSync {
					var writer sync.WaitGroup
					own := rand.New(rand.NewPCG(seed, rnd.Uint64()))
					writer.Go(func() { write(own, 20) })
					got, err := stream.Poll(t.Context(), anyLate{rnd})
					if err != nil {
						t.Fatal(err)
					}
					writer.Wait()
					n := len(got.Changes)
					if leave := left < 5 && rnd.IntN(2) == 0; leave {
						n = rnd.IntN(n + 1)
					}
					for i := range got.Changes[:n] {
						l.hear(&got.Changes[i])
					}
					if n == len(got.Changes) && (l.inSync || rnd.IntN(2) == 0) {
						continue
					}
					left++
					write(rnd, rnd.IntN(40))
					stream.Close()
					stream = f.StartChanges(change.Request{Kinds: []string{"Widget"}, Snapshot: true})
					stream.Resume(got.ResumePoint.After(n), nil)
				}
				last := fmt.Sprint("last", round)
				f.CreateWidget(last, `{"title":"A"}`)
				for _, known := l.known[last]; !known; _, known = l.known[last] {
					for _, c := range servicetest.Take(t, stream, 1) {
						l.hear(&c)
					}
				}
				stream.Close()
				page, err := f.Store.Range(t.Context(), backend.Range{Kind: "Widget", Limit: backend.MaxLimit})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Resources {
					if l.known[r.Name] != r.Revision {
						t.Errorf("%s was told at %v and is at %v", r.Name, l.known[r.Name], r.Revision)
					}
					delete(l.known, r.Name)
				}
				if len(l.known) > 0 {
					t.Errorf("%d resources were told and are gone: %v", len(l.known), l.known)
				}
				if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named(last)}); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// deployment is Redis, which can lose its latest writes.
type deployment struct {
	url    string
	shards int
	// cut begins what will be lost, and failOver loses it.
	cut, failOver func()
	rounds        int
}

// detach stops a replica, so that it has nothing of what its primary is told from now on.
func detach(primary, replica *redistest.Server) {
	replica.Stop()
	primary.Do("CLIENT", "KILL", "TYPE", "replica")
}

func restarted(t *testing.T) deployment {
	s := redistest.Start(t)
	return deployment{url: s.URL(), shards: 1, rounds: 2, cut: func() {}, failOver: func() { s.Kill(); s.Restart() }}
}

func promoted(t *testing.T) deployment {
	primary := redistest.Start(t)
	front := redistest.NewProxy(t, primary.Addr)
	var replica *redistest.Server
	return deployment{url: front.URL(), shards: 2, rounds: 3, cut: func() {
		replica = redistest.Start(t, redistest.ReplicaOf(primary.Addr))
		primary.AwaitReplicas(1)
		detach(primary, replica)
	}, failOver: func() {
		primary.Kill()
		replica.Cont()
		replica.Promote()
		front.Redirect(replica.Addr)
		primary = replica
	}}
}

func elected(t *testing.T) deployment {
	g := redistest.Sentinel(t, 1)
	var primary *redistest.Server
	return deployment{url: g.URL(), shards: 1, rounds: 1, cut: func() {
		primary = g.Primary()
		primary.AwaitReplicas(1)
		for _, s := range g.Data {
			if s != primary {
				detach(primary, s)
			}
		}
	}, failOver: func() {
		primary.Kill()
		for _, s := range g.Data {
			if s != primary {
				s.Cont()
			}
		}
		g.AwaitFailover(primary)
	}}
}

func clustered(t *testing.T) deployment {
	n := redistest.Cluster(t)
	const masters = 3
	return deployment{url: n.URL(), shards: 8, rounds: 1, cut: func() {
		n.All[0].AwaitReplicas(1)
		detach(n.All[0], n.All[masters])
	}, failOver: func() {
		n.All[0].Kill()
		n.All[masters].Cont()
		n.AwaitFailover(0, n.All[0])
	}}
}

func TestFill_TheIndexHasWhatRedisHasAfterItLostWrites(t *testing.T) {
	for _, c := range []struct {
		says  string
		start func(*testing.T) deployment
	}{{"restarted without its data", restarted}, {"a replica promoted", promoted}, {"Sentinel", elected}, {"Cluster", clustered}} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("long: make test-all")
			}
			loseOnRedis(t, c.start(t))
		})
	}
}

func loseOnRedis(t *testing.T, d deployment) {
	s, err := redis.Open(t.Context(), redis.Config{URL: d.url, Prefix: redistest.Prefix(), Shards: d.shards})
	f := &fixture{TB: t, store: opened(t, s, err)}
	rnd := rand.New(rand.NewPCG(1, 2))
	written := map[backend.Key]bool{}
	change := func() error {
		k := backend.Key{Kind: "Thing", Namespace: fmt.Sprint("ns", rnd.IntN(20)), Name: fmt.Sprint("n", rnd.IntN(20))}
		written[k] = true
		a := backend.Action{Key: k, Op: backend.OpDelete}
		if rnd.IntN(4) > 0 {
			a.Op, a.Put = backend.OpPut, backend.Put{UID: "u", Body: bodyOf(fmt.Sprint("v", rnd.Int()), colour(fmt.Sprint("c", rnd.IntN(3))))}
		}
		if _, err := f.apply(a); err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		return nil
	}
	some := func(n int) {
		for range n {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
	}
	some(400)
	ids := f.ids.Load()
	f = start(t, f.store, index.Config{Wait: time.Minute})
	f.ids.Store(ids)
	for round := range d.rounds {
		d.cut()
		some(10 + rnd.IntN(50))
		before, was := f.view("Thing")
		d.failOver()
		clear(written)
		for range 5 {
			redistest.Await(t, "a write", change)
		}
		var v index.View
		redistest.Await(t, "the index", func() error {
			var ok bool
			if v, ok, err = f.Await(t.Context(), index.View{}, "Thing"); err == nil && !ok {
				err = errors.New("it is not in memory")
			}
			return err
		})
		if v.Position().Equal(before.Position()) || !lost(was, f.stored("Thing"), written) {
			t.Errorf("round %d: nothing was lost", round)
		}
		k, _ := v.Kind("Thing")
		for _, of := range []string{"", "colour", index.UpdatedIndex, index.NullIndex("colour")} {
			if got, want := slices.Sorted(slices.Values(k.Content(of))), f.content("Thing", of); !slices.Equal(got, want) {
				t.Fatalf("round %d: the tree %q has %d rows, and the store %d\n%s", round, of, len(got), len(want), cmp.Diff(want, got))
			}
		}
	}
}

// lost reports whether a resource is older than it was, or gone, that was not written since.
func lost(was *index.Kind, stored []*backend.Resource, since map[backend.Key]bool) bool {
	older := 0
	was.Scan(index.Run{}, false, func(_ string, e *index.Entry) bool {
		if since[e.Resource.Key] {
			return true
		}
		i := slices.IndexFunc(stored, func(r *backend.Resource) bool { return r.Key == e.Resource.Key })
		if i < 0 || stored[i].Revision.Compare(e.Resource.Revision) < 0 {
			older++
		}
		return true
	})
	return older > 0
}

package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// skews are how far the clocks of nodes are ahead.
type skews struct {
	mu    sync.Mutex
	nodes map[string]time.Duration
}

func (s *skews) set(node string, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = map[string]time.Duration{node: ahead}
}

func (s *skews) of(node string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node]
}

func TestClock_ClusterNodesHaveClocksOfTheirOwn(t *testing.T) {
	parallel(t)
	n := redistest.Cluster(t)
	const shards = 6
	open := func(t *testing.T, s *skews) (*redis.Store, error) {
		st, err := redis.Open(t.Context(), redis.Skewed(redis.Config{URL: n.URL(), Prefix: redistest.Prefix(), Shards: shards}, s.of))
		if err == nil {
			t.Cleanup(func() { _ = st.Close() })
		}
		return st, err
	}
	node := n.All[1].Addr
	at := func(st *redis.Store, shard int, name string) backend.Action {
		return backend.Action{
			Key: backend.Key{Kind: "Net", Namespace: namespaceIn(st, shard), Name: name}, Op: backend.OpPut,
			Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))},
		}
	}
	for _, ahead := range []time.Duration{-1500 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(fmt.Sprint("one that is off by ", ahead), func(t *testing.T) {
			var s skews
			s.set(node, ahead)
			st, err := open(t, &s)
			if err != nil {
				t.Fatal(err)
			}
			if off := time.Until(st.Now()).Abs(); off > time.Second {
				t.Errorf("the store's clock is off by %v: it is not that of most nodes", off)
			}
			for shard := range shards {
				b := batchOf(st, at(st, shard, "in time"))
				b.Deadline = st.Now().Add(time.Second)
				if _, err := st.Apply(t.Context(), b); err != nil {
					t.Errorf("shard %d: a batch in time: %v", shard, err)
				}
				b = batchOf(st, at(st, shard, "late"))
				b.Deadline = st.Now().Add(-250 * time.Millisecond)
				if _, err := st.Apply(t.Context(), b); !errors.Is(err, backend.ErrDeadline) {
					t.Errorf("shard %d: a batch past its deadline: %v", shard, err)
				}
				expiring := at(st, shard, "expiring")
				expiring.Put.ExpiresAt = time.Now().Add(500 * time.Millisecond)
				if _, err := st.Apply(t.Context(), batchOf(st, expiring)); err != nil {
					t.Fatal(err)
				}
				got, err := st.Get(t.Context(), expiring.Key)
				if err != nil {
					t.Fatal(err)
				}
				page, err := st.Range(t.Context(), backend.Range{Kind: "Net", Namespace: expiring.Key.Namespace, Start: backend.OrderTuple(expiring.Key.Namespace, "expiring"), End: backend.OrderTuple(expiring.Key.Namespace, "f"), Limit: 2})
				if err != nil {
					t.Fatal(err)
				}
				_, err = st.Apply(t.Context(), batchOf(st, backend.Action{Key: expiring.Key, If: backend.Condition{Presence: backend.Present}}, at(st, shard, "other")))
				if there := err == nil; there != (got[0] != nil) || there != (len(page.Resources) == 1) {
					t.Errorf("shard %d: of what expires a condition says %v, a get %v, a list %d", shard, err, got[0], len(page.Resources))
				}
			}
		})
	}
	t.Run("one that is too far off is refused by name when the store is opened", func(t *testing.T) {
		for _, ahead := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			var s skews
			s.set(node, ahead)
			_, err := open(t, &s)
			if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "the clock of node "+node+" is 10") {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("one that goes wrong takes no changes until it is right again", func(t *testing.T) {
		var s skews
		st, err := open(t, &s)
		if err != nil {
			t.Fatal(err)
		}
		refused := func() (shards []int) {
			t.Helper()
			if _, err := st.Purge(t.Context()); err != nil && !strings.Contains(err.Error(), "the clock of node") {
				t.Fatal(err)
			}
			for shard := range 6 {
				if _, err := st.Apply(t.Context(), batchOf(st, at(st, shard, "n"))); errors.Is(err, backend.ErrUnavailable) && strings.Contains(err.Error(), node) {
					shards = append(shards, shard)
				} else if err != nil {
					t.Error(err)
				}
			}
			return shards
		}
		s.set(node, -10*time.Second)
		if err := st.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := refused(); len(got) == 0 || len(got) == shards {
			t.Errorf("the changes of shards %v were refused", got)
		}
		if _, err := st.Range(t.Context(), backend.Range{Kind: "Net", Limit: 10}); err != nil {
			t.Errorf("a read: %v", err)
		}
		s.set(node, 0)
		if err := st.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := refused(); len(got) > 0 {
			t.Errorf("the changes of shards %v are still refused", got)
		}
	})
}

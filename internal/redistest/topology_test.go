package redistest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/internal/redistest"
)

func TestSentinelPromotesAReplica(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t, 2)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: g.Name, SentinelAddrs: g.Addrs})
	defer func() { _ = c.Close() }()
	first := g.Primary()
	set(t, first, "k", "v")
	first.AwaitReplicas(2)
	first.Kill()
	second := g.AwaitFailover(first)
	redistest.Await(t, "a write to the new primary", func() error { return c.Set(t.Context(), "k", "w", 0).Err() })
	want(t, get(t, second.Client(), "k"), "w")
	first.Restart()
	redistest.Await(t, "the old primary follows", func() error {
		if v, err := first.Client().Get(t.Context(), "k").Result(); v != "w" {
			return fmt.Errorf("%q, error %v", v, err)
		}
		return nil
	})
}

func TestClusterMovesSlotsAndFailsOver(t *testing.T) {
	t.Parallel()
	n := redistest.Cluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(strings.TrimPrefix(n.URL(), "redis-cluster://"), ","),
		// It learns nothing from a connection that is refused, and asks only once a minute by default.
		ClusterStateReloadInterval: 200 * time.Millisecond,
	})
	defer func() { _ = c.Close() }()
	const keys = 50
	for i := range keys {
		if err := c.Set(t.Context(), fmt.Sprint("{tag}", i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot := n.Slot("{tag}")
	from := n.Owner(slot)
	to := n.All[0]
	if to == from {
		to = n.All[1]
	}
	m := n.Migrate(slot, to)
	if moved := m.Move(keys / 2); moved != keys/2 {
		t.Fatalf("%d keys moved", moved)
	}
	for i := range keys { // half of them by ASK
		want(t, get(t, c, fmt.Sprint("{tag}", i)), "v")
	}
	m.Finish()
	if n.Owner(slot) != to {
		t.Fatalf("slot %d did not move to %s", slot, to.Addr)
	}
	for i := range keys {
		want(t, get(t, c, fmt.Sprint("{tag}", i)), "v")
	}
	n.AwaitWhole()
	to.AwaitReplicas(1)
	to.Kill()
	n.AwaitFailover(slot, to)
	redistest.Await(t, "the promoted replica", func() error { return c.Set(t.Context(), "{tag}0", "w", 0).Err() })
	to.Restart()
	n.AwaitWhole()
	if err := c.Get(t.Context(), "{tag}1").Err(); errors.Is(err, redis.Nil) {
		t.Fatal("a key is lost")
	}
}

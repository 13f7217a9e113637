package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// clusterShards are few: every watcher waits on each with a connection of its own.
const clusterShards = 4

// slotOfLog finds the slot of a shard that the trial's namespaces are in.
func slotOfLog(tr *trial, n *redistest.Nodes) int {
	tr.Helper()
	for _, s := range n.All {
		logs, err := s.Client().Keys(tr.Context(), tr.prefix+"c:*").Result()
		if err != nil {
			tr.Fatal(err)
		}
		for _, log := range logs {
			if s.Client().XLen(tr.Context(), log).Val() > 1 {
				return n.Slot(log)
			}
		}
	}
	tr.Fatal("no log in the cluster")
	return 0
}

func TestFaultClusterMovesSlots(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
		n := redistest.Cluster(t)
		runTrial(t, setup{seed: seed, urls: gateways(n.URL()), shards: clusterShards, watchers: few}, func(tr *trial) {
			slot := slotOfLog(tr, n)
			for i := range 3 { // there and back
				tr.write(60, func() {
					to := n.All[i%2]
					if n.Owner(slot) == to {
						to = n.All[2]
					}
					m := n.Migrate(slot, to)
					for tr.gate.await(20); m.Move(3) > 0; {
					}
					m.Finish()
				})
			}
		})
	})
}

func TestSyncFollowsASlotThatMoved(t *testing.T) {
	t.Parallel()
	n := redistest.Cluster(t)
	cfg := redis.Config{URL: n.URL(), Prefix: redistest.Prefix(), Shards: 1, Durability: redis.DurabilityReplica}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	putOne(t, st, faultKey(0, 0), "1")
	slot := n.Slot(cfg.Prefix + "m:{0}")
	to := n.All[0]
	if n.Owner(slot) == to {
		to = n.All[1]
	}
	n.Migrate(slot, to).Finish()
	if err := st.Sync(t.Context(), "ns0"); err != nil {
		t.Errorf("after its slot moved: %v", err)
	}
}

func TestANodeThatIsGoneForGoodIsNotAskedForLong(t *testing.T) {
	t.Parallel()
	for says, lose := range map[string]func(*redistest.Server){"killed": (*redistest.Server).Kill, "silent": (*redistest.Server).Stop} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			n := redistest.Cluster(t)
			cfg := redis.Config{URL: n.URL(), Prefix: redistest.Prefix(), Shards: 1, Timeout: time.Second}
			st, err := redis.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			k := faultKey(0, 0)
			putOne(t, st, k, "1")
			slot := n.Slot(cfg.Prefix + "m:{0}")
			gone := n.Owner(slot)
			lose(gone)
			n.AwaitFailover(slot, gone)
			redistest.Await(t, "a read from the new master", func() error {
				_, err := st.Get(t.Context(), k)
				return err
			})
			for range 20 { // none of a client's first calls waits for the node that is gone
				fresh, err := redis.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fresh.Get(t.Context(), k); err != nil {
					t.Errorf("a new store: %v", err)
				}
				if err := fresh.Close(); err != nil {
					t.Error(err)
				}
			}
			w, err := st.Watch(t.Context(), backend.Watch{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for d, err := w.Next(t.Context()); !d.CaughtUp; d, err = w.Next(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
			}
			putOne(t, st, k, "2")
			if d, err := w.Next(t.Context()); err != nil || len(d.Events) != 1 {
				t.Errorf("the watcher is told of %d changes, %v", len(d.Events), err)
			}
		})
	}
}

// A connection that takes long to be made is no silent node.
func TestAClusterWhoseNodesAnswerSlowlyIsReached(t *testing.T) {
	t.Parallel()
	n := redistest.Cluster(t)
	// A seventeenth part of it is left when the store is open, since each new connection
	// The first node has a quarter of the limit, and the second connection and the one to
	// the owner take three tenths each: of 6 s nearly one is left, for a busy machine.
	const timeout = 6 * time.Second
	for says, known := range map[string]int{"one address": 1, "several addresses": 3} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			var addrs []string
			for _, s := range n.All[:known] {
				p := redistest.NewProxy(t, s.Addr)
				p.Slow(timeout*3/10, redistest.Command("hello"))
				addrs = append(addrs, p.Addr)
			}
			cfg := redis.Config{URL: "redis-cluster://" + strings.Join(addrs, ","), Prefix: redistest.Prefix(), Shards: 1, Timeout: timeout}
			st, err := redis.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			putOne(t, st, faultKey(0, 0), "1")
		})
	}
}

func TestFaultClusterLosesANode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says       string
		durability redis.Durability
		lossy      bool
	}{
		{"writes on a replica", redis.DurabilityReplica, false},
		{"writes on the master", redis.DurabilityAsync, true},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
				n := redistest.Cluster(t)
				runTrial(t, setup{seed: seed, urls: gateways(n.URL()), shards: clusterShards, watchers: many, durability: c.durability, lossy: c.lossy, expires: true}, func(tr *trial) {
					tr.write(60, func() {
						tr.parkLate()
						slot := slotOfLog(tr, n)
						owner := n.Owner(slot)
						owner.Kill()
						n.AwaitFailover(slot, owner)
						owner.Restart()
						n.AwaitWhole()
					})
				})
			})
		})
	}
}

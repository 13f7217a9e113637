package redis_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// many watchers, at cursors all over the log.
const many = 40

// pair is a primary and its replica, both behind proxies: gateways reach the
// primary at an address that can be moved, and the replica follows over a link
// that can be paused.
type pair struct {
	primary, replica *redistest.Server
	front, link      *redistest.Proxy
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{primary: redistest.Start(t)}
	p.front, p.link = redistest.NewProxy(t, p.primary.Addr), redistest.NewProxy(t, p.primary.Addr)
	p.replica = redistest.Start(t, redistest.ReplicaOf(p.link.Addr))
	p.primary.AwaitReplicas(1) // a replica is in sync up to a second before it is sent what follows
	return p
}

// promote loses the primary and puts the replica in its place.
func (p *pair) promote() {
	p.primary.Kill()
	p.replica.Promote()
	p.front.Redirect(p.replica.Addr)
}

func TestFaultReplicaIsPromotedWithWritesLost(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2, 3}, func(t *testing.T, seed uint64) {
		p := newPair(t)
		tr := runTrial(t, setup{seed: seed, urls: gateways(p.front.URL()), shards: int(seed), watchers: many, lossy: true, expires: true}, func(tr *trial) {
			tr.write(100, func() {
				tr.parkLate()
				p.link.Pause()
				tr.gate.await(20)
				p.promote()
			})
		})
		if n := tr.expiredWatchers(); n == 0 || n == many {
			t.Errorf("%d watchers were told, want those that had seen what was lost", n)
		}
	})
}

func TestFaultReplicaThatAcknowledgedIsPromoted(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
		p := newPair(t)
		next := redistest.Start(t)
		runTrial(t, setup{seed: seed, urls: gateways(p.front.URL()), shards: 1, watchers: many, durability: redis.DurabilityReplica, expires: true}, func(tr *trial) {
			tr.write(60, func() {
				tr.parkLate()
				p.link.Pause()
				tr.gate.await(14)
				p.promote()
				next.Follow(p.replica.Addr)
			})
		})
	})
}

func TestFaultEmptyServerIsPromoted(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
		s, empty := redistest.Start(t), redistest.Start(t)
		front := redistest.NewProxy(t, s.Addr)
		tr := runTrial(t, setup{seed: seed, urls: gateways(front.URL()), shards: 2, watchers: many, lossy: true, expires: true}, func(tr *trial) {
			tr.write(60, func() {
				s.Kill()
				front.Redirect(empty.Addr)
			})
		})
		if n := tr.expiredWatchers(); n != many {
			t.Errorf("%d watchers were told", n)
		}
	})
}

func TestFaultSentinelFailsOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says       string
		durability redis.Durability
		lossy      bool
		stop       bool
	}{
		{"from a dead primary, writes on a replica", redis.DurabilityReplica, false, false},
		{"from a dead primary", redis.DurabilityAsync, true, false},
		{"from a primary that was cut off and comes back", redis.DurabilityAsync, true, true},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
				g := redistest.Sentinel(t, 1)
				runTrial(t, setup{seed: seed, urls: gateways(g.URL()), shards: 1, watchers: many, durability: c.durability, lossy: c.lossy, expires: true}, func(tr *trial) {
					tr.write(60, func() {
						tr.parkLate()
						first := g.Primary()
						if c.stop {
							first.Stop()
						} else {
							first.Kill()
						}
						second := g.AwaitFailover(first)
						if c.stop {
							first.Cont()
						} else {
							first.Restart()
						}
						second.AwaitReplicas(1)
					})
				})
			})
		})
	}
}

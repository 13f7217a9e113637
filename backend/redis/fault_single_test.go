package redis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// few watchers are enough where no history is lost.
const few = 12

// gateways returns the URL for two gateways.
func gateways(url string) []string { return []string{url, url} }

// trialBySeed runs one trial for each seed, beside others.
func trialBySeed(t *testing.T, seeds []uint64, trial func(*testing.T, uint64)) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			parallel(t)
			trial(t, seed)
		})
	}
}

func TestFaultServerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fsync string
		// With everysec the server answers before it has written when the disk is slow.
		lossy bool
	}{{"always", false}, {"everysec", true}} {
		t.Run(c.fsync, func(t *testing.T) {
			t.Parallel()
			trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
				s := redistest.Start(t, redistest.AOF(c.fsync))
				runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: int(seed), watchers: few, lossy: c.lossy, expires: c.lossy}, func(tr *trial) {
					for range 3 {
						tr.write(40, s.Restart)
					}
				})
			})
		})
	}
}

func TestFaultAppendOnlyFileIsCut(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2, 3}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t, redistest.AOF("always"))
		rnd := rand.New(rand.NewPCG(seed, 0))
		runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: 1, watchers: 40, lossy: true, expires: true}, func(tr *trial) {
			tr.parkLate()
			tr.write(40, func() {
				s.Kill()
				s.TruncateAOF(1 + rnd.Int64N(s.AOFSize()/3))
				s.Restart()
			})
		})
	})
}

func TestFaultConnectionsAreKilled(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: 3, watchers: few}, func(tr *trial) {
			for range 8 {
				tr.write(30, func() { s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
			}
		})
	})
}

func TestFaultServerStopsForAWhile(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: 2, watchers: few}, func(tr *trial) {
			tr.write(40, func() {
				s.Stop()
				tr.gate.await(8)
				s.Cont()
			})
		})
	})
}

func TestFaultScriptsAreForgotten(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: 1, watchers: few}, func(tr *trial) {
			for range 8 {
				tr.write(20, func() { s.Do("SCRIPT", "FLUSH") })
			}
		})
	})
}

func TestFaultEverythingIsFlushed(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: int(seed), watchers: few, lossy: true, expires: true}, func(tr *trial) {
			for range 2 {
				tr.write(60, func() { s.Do("FLUSHALL") })
			}
		})
	})
}

func TestFaultLogIsTrimmedBehindOurBack(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		tr := runTrial(t, setup{seed: seed, urls: gateways(s.URL()), shards: 1, watchers: 20, expires: true, unchecked: true}, func(tr *trial) {
			tr.write(40, func() {
				logs, err := s.Client().Keys(tr.Context(), tr.prefix+"c:*").Result()
				if err != nil || len(logs) != 1 {
					tr.Fatalf("logs %q, error %v", logs, err)
				}
				s.Do("XTRIM", logs[0], "MAXLEN", 60)
			})
		})
		if n := tr.expiredWatchers(); n == 0 || n == tr.watchers {
			t.Errorf("%d watchers were told, want those that were behind", n)
		}
	})
}

func TestFaultReplyIsLost(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
		s := redistest.Start(t)
		p := redistest.NewProxy(t, s.Addr)
		const lost = 10
		tr := runTrial(t, setup{seed: seed, urls: gateways(p.URL()), shards: 2, watchers: few}, func(tr *trial) {
			write, batch := redistest.Command("EVALSHA"), redistest.Containing(tr.prefix+"i:")
			for range lost {
				done := p.DropReplies(1, func(args []string) bool { return write(args) && batch(args) })
				tr.write(10, func() { <-done })
			}
		})
		if n := tr.history.counts[unknown]; n < lost {
			t.Errorf("%d outcomes are unknown, %d replies were lost", n, lost)
		}
	})
}

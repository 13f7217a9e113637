package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	logs "go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// The primary is replaced and comes back, without what it had acknowledged last,
// and no gateway looks meanwhile.
func TestHistory_AFailOverAndBackBeginsAnEpochThoughNobodyLooked(t *testing.T) {
	t.Parallel()
	for says, idle := range map[string]bool{"the gateway was down": false, "the gateway kept its connections": true} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			a := redistest.Start(t)
			b := redistest.Start(t, redistest.ReplicaOf(a.Addr))
			st, err := redis.Open(t.Context(), redis.Config{URL: a.URL()})
			if err != nil {
				t.Fatal(err)
			}
			putOne(t, st, faultKey(0, 0), "kept")
			a.AwaitReplicas(1)
			b.Promote()
			lost := putOne(t, st, faultKey(0, 1), "lost")
			cursor, err := st.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !idle {
				_ = st.Close()
			}
			a.Follow(b.Addr)
			a.Promote()
			if !idle {
				if st, err = redis.Open(t.Context(), redis.Config{URL: a.URL()}); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { _ = st.Close() })
			next := putOne(t, st, faultKey(0, 2), "next")
			if next.Revision.Epoch == lost.Revision.Epoch {
				t.Errorf("the change after the lost %s is %s", lost.Revision, next.Revision)
			}
			if w, err := st.Watch(t.Context(), backend.Watch{From: cursor}); !errors.Is(err, backend.ErrPositionExpired) {
				if err == nil {
					w.Close()
				}
				t.Errorf("a cursor of the lost history: error %v", err)
			}
		})
	}
}

// hide makes a server not tell what identifies its history.
func hide(p *redistest.Proxy, ids ...string) {
	for _, id := range ids {
		p.Lie("\r\n"+id+":", "\r\n"+strings.Repeat("x", len(id))+":")
	}
}

func TestHistory_GatewaysAgreeOnTheHistoryOfAServerThatHidesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says string
		// hidden are the ids that each gateway is not told.
		hidden [2][]string
		// most is the number of epochs, besides the first, that it may take to agree.
		most int
	}{
		{"both are told everything", [2][]string{nil, nil}, 0},
		{"neither is told the run id", [2][]string{{"run_id"}, {"run_id"}}, 0},
		{"neither is told the replication id", [2][]string{{"master_replid"}, {"master_replid"}}, 0},
		{"neither is told anything", [2][]string{{"run_id", "master_replid"}, {"run_id", "master_replid"}}, 0},
		{"one is not told the run id", [2][]string{{"run_id"}, nil}, 0},
		{"one is not told anything", [2][]string{{"run_id", "master_replid"}, nil}, 1},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			var stores [2]*redis.Store
			for i := range stores {
				p := redistest.NewProxy(t, s.Addr)
				hide(p, c.hidden[i]...)
				var err error
				if stores[i], err = redis.Open(t.Context(), redis.Config{URL: p.URL()}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = stores[i].Close() })
			}
			for i := range 40 {
				putOne(t, stores[i%2], faultKey(0, i), "1")
			}
			if n := len(strings.Fields(s.Client().HGet(t.Context(), "sluice:m:{0}", "epochs").Val())); n > c.most {
				t.Errorf("%d epochs ended, want at most %d", n, c.most)
			}
		})
	}
}

// Where a server hides what it is, a gateway still knows what it has seen there.
func TestHistory_AHiddenServerThatLostWhatAGatewaySawBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	hide(p.front, "run_id", "master_replid")
	st, err := redis.Open(t.Context(), redis.Config{URL: p.front.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	putOne(t, st, faultKey(0, 0), "kept")
	p.primary.AwaitReplicas(1)
	p.link.Pause()
	seen := map[backend.Revision]bool{}
	for i := range 3 {
		seen[putOne(t, st, faultKey(0, i), "lost").Revision] = true
	}
	p.promote()
	for i := range 3 {
		if r := putOne(t, st, faultKey(0, i), fmt.Sprint(i)).Revision; seen[r] {
			t.Errorf("the revision %s comes again", r)
		}
	}
}

// TestHistory_ThatLacksChanges is told by one line of the log, with what is lost, and counted.
func TestHistory_ThatLacksChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// lose makes the server lose what was written after the first put.
		lose   func(s *redistest.Server)
		logged string
		lost   uint64
	}{
		"emptied":   {func(s *redistest.Server) { s.Do("FLUSHALL") }, "it was emptied, is another one", 0},
		"restarted": {func(s *redistest.Server) { s.Restart() }, "the server has lost changes that this gateway saw", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			core, log := logs.New(zap.ErrorLevel)
			reports := make(chan redis.History, 10)
			st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Logger: zap.New(core), LostHistory: func(h redis.History) { reports <- h }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			first := putOne(t, st, faultKey(0, 0), "1")
			s.Do("SAVE")
			putOne(t, st, faultKey(0, 1), "2")
			putOne(t, st, faultKey(0, 2), "3")
			if _, err := st.Position(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.lose(s)
			next := putOne(t, st, faultKey(0, 3), "4")
			var h redis.History
			select {
			case h = <-reports:
			case <-time.After(time.Minute):
				t.Fatal("nothing is told")
			}
			if h.Before != first.Revision.Epoch || h.Now != next.Revision.Epoch || h.Lost != c.lost {
				t.Errorf("%+v, epochs %d and %d", h, first.Revision.Epoch, next.Revision.Epoch)
			}
			lines := log.All()
			if len(lines) != 1 || !strings.Contains(lines[0].Message, c.logged) || st.LostHistories() != 1 {
				t.Errorf("%d times: %v", st.LostHistories(), lines)
			}
		})
	}
}

// TestHistory_OfAnEmptiedServerIsNewer than the one before, also if both began within one second.
func TestHistory_OfAnEmptiedServerIsNewer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	epoch := putOne(t, st, faultKey(0, 0), "1").Revision.Epoch
	for range 20 {
		s.Do("FLUSHALL")
		now := putOne(t, st, faultKey(0, 0), "1").Revision.Epoch
		if now <= epoch {
			t.Fatalf("epoch %d after %d", now, epoch)
		}
		epoch = now
	}
	if st.LostHistories() != 20 {
		t.Errorf("20 lost histories are counted as %d", st.LostHistories())
	}
}

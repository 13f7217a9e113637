package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestFaultNoAnswerAboutTheHeadsIsOlderThanItsQuestion asks through a network that
// delays, pauses and cuts, with so little time that many answers come after the
// deadline, and with error replies in between.
func TestFaultNoAnswerAboutTheHeadsIsOlderThanItsQuestion(t *testing.T) {
	t.Parallel()
	trialBySeed(t, []uint64{1, 2}, func(t *testing.T, seed uint64) {
		s, rnd := redistest.Start(t), rand.New(rand.NewPCG(seed, 0))
		p, prefix := redistest.NewProxy(t, s.Addr), redistest.Prefix()
		writer := openLate(t, s.URL(), prefix)
		const timeout = 60 * time.Millisecond
		st, err := openPatiently(t.Context(), redis.Config{URL: p.URL(), Prefix: prefix, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		var mu sync.Mutex
		var acknowledged backend.Revision
		answered, failed := 0, 0
		ask := func(ctx context.Context) error {
			mu.Lock()
			before := acknowledged
			mu.Unlock()
			head, err := st.Head(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answered++
				if head.Shard(0).Compare(before) < 0 {
					t.Errorf("the head is %s after a change at %s", head.Shard(0), before)
				}
			} else if failed++; ctx.Err() == nil && !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("a question that may take its time is answered by: %v", err)
			}
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var work sync.WaitGroup
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				res, err := writer.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: writer.Now().Add(time.Minute), Actions: []backend.Action{benchPut(1, int64(i))}})
				switch {
				case err == nil:
					mu.Lock()
					acknowledged = res.Position.Shard(0)
					mu.Unlock()
				case !errors.Is(err, backend.ErrUnavailable):
					t.Error(err)
				}
			}
		})
		for range 8 {
			work.Go(func() {
				for ctx.Err() == nil {
					_ = ask(ctx)
				}
			})
		}
		work.Go(func() {
			for ctx.Err() == nil { // callers that leave in the middle
				short, cancel := context.WithTimeout(ctx, timeout/4)
				_ = ask(short)
				cancel()
			}
		})
		// step waits until n more questions have ended.
		step := func(n int) {
			mu.Lock()
			until := answered + failed + n
			mu.Unlock()
			redistest.Await(t, "questions", func() error {
				mu.Lock()
				defer mu.Unlock()
				if now := answered + failed; now < until {
					return fmt.Errorf("%d of %d have ended", now, until)
				}
				return nil
			})
		}
		for range 40 {
			switch rnd.IntN(5) {
			case 0:
				p.Slow(time.Duration(rnd.IntN(100))*time.Millisecond, redistest.Command("hmget", "time"))
			case 1:
				p.Pause()
				step(rnd.IntN(10))
				p.Resume()
			case 2:
				p.Cut()
			case 3:
				p.DropReplies(1, redistest.Command("hmget"))
			case 4:
				s.Do("ACL", "SETUSER", "default", "-hmget")
				step(rnd.IntN(30))
				s.Do("ACL", "SETUSER", "default", "+hmget")
			}
			step(rnd.IntN(30))
			p.Slow(0, nil)
		}
		stop()
		work.Wait()
		redistest.Await(t, "an answer once the network is well", func() error { return ask(t.Context()) })
		if answered < 100 || failed < 10 {
			t.Errorf("%d questions were answered and %d failed", answered, failed)
		}
	})
}

// A server that a replica has replaced, and whose connections nobody cut, follows that
// replica as fast as it can.
func TestFaultServerThatWasReplacedIsNotAskedAboutTheHeads(t *testing.T) {
	t.Parallel()
	for _, learns := range []bool{false, true} {
		t.Run(fmt.Sprintf("the gateway has met the new primary %v", learns), func(t *testing.T) {
			t.Parallel()
			old, next := redistest.Start(t), redistest.Start(t)
			next.Follow(old.Addr)
			old.AwaitReplicas(1)
			front, link := redistest.NewProxy(t, old.Addr), redistest.NewProxy(t, next.Addr)
			st := openLate(t, front.URL(), "sluice:")
			if _, err := st.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			putOne(t, st, faultKey(0, 0), "kept")
			old.AwaitReplicas(1)
			next.Promote()
			old.Follow(link.Addr)
			front.Lead(next.Addr)
			other := openLate(t, next.URL(), "sluice:")
			epoch := func(s *redistest.Server) string { return s.Client().HGet(t.Context(), "sluice:m:{0}", "epoch").Val() }
			redistest.Await(t, "the new epoch", func() error {
				if was, is := epoch(old), epoch(next); was != is {
					return fmt.Errorf("epochs %s and %s", was, is)
				}
				return nil
			})
			link.Pause()
			after := putOne(t, other, faultKey(0, 1), "new").Revision
			var calls sync.WaitGroup
			for range 16 * map[bool]int{true: 1}[learns] { // more at once than there are connections
				calls.Go(func() { _, _ = st.Get(t.Context(), faultKey(0, 1)) })
			}
			calls.Wait()
			head, err := st.Head(t.Context())
			if err != nil || head.Shard(0).Compare(after) < 0 {
				t.Errorf("the head is %s after a change at %s, error %v", head.Shard(0), after, err)
			}
		})
	}
}

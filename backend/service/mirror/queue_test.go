package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func keys(names ...string) (out []backend.Key) {
	for _, name := range names {
		out = append(out, backend.Key{Kind: "Team", Namespace: "n", Name: name})
	}
	return out
}

func TestQueue_AKeyIsWorkedOnByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add(keys("a", "b", "a")...)
		first := q.take(t.Context(), 10)
		if !slices.Equal(first, keys("a", "b")) {
			t.Fatal(first)
		}
		q.add(keys("a")...) // while it is worked on
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := q.take(short, 10); got != nil {
			t.Fatalf("%v is worked on twice", got)
		}
		q.done(first, undone{})
		if got := q.take(t.Context(), 10); !slices.Equal(got, keys("a")) {
			t.Errorf("%v", got)
		}
	})
}

func TestQueue_WhatFailsComesBackLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add(keys("a")...)
		begin := time.Now()
		for range 14 {
			got := q.take(t.Context(), 1)
			q.done(got, undone{failed: got})
		}
		if took := time.Since(begin); took < 30*time.Second || took > 3*time.Minute {
			t.Errorf("14 failures took %v", took)
		}
		if since, waits := q.oldest(); !waits || !since.Equal(begin) {
			t.Errorf("%v %v", since, waits)
		}
		q.add(keys("a")...) // something has changed: it does not pause
		again := time.Now()
		got := q.take(t.Context(), 1)
		if time.Since(again) > 0 {
			t.Errorf("it came back after %v", time.Since(again))
		}
		q.done(got, undone{})
		if _, waits := q.oldest(); waits {
			t.Error("it is still there")
		}
	})
}

func TestQueue_WhatIsLockedForLongComesBackEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add(keys("a")...)
		begin := time.Now()
		for range 16 {
			got := q.take(t.Context(), 1)
			q.done(got, undone{raced: got})
		}
		if got := q.take(t.Context(), 1); len(got) != 1 {
			t.Fatal(got)
		}
		if took := time.Since(begin); took < 10*time.Second || took > 16*time.Second {
			t.Errorf("16 races took %v", took)
		}
	})
}

func TestQueue_IdleWorkersTakeWhatIsPausedWhileOthersWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan string, 10)
		for range 2 {
			go func() {
				for {
					got := q.take(ctx, 1)
					if len(got) == 0 {
						return
					}
					done <- got[0].Name
					if got[0].Name == "slow" {
						time.Sleep(time.Minute)
					}
					var left undone
					if got[0].Name == "raced" {
						left.raced = got
					}
					q.done(got, left)
				}
			}()
		}
		q.add(keys("raced")...)
		<-done
		q.add(keys("slow")...)
		begin := time.Now()
		for name := ""; name != "raced"; name = <-done {
		}
		if time.Since(begin) > time.Second {
			t.Errorf("after %v", time.Since(begin))
		}
		stop()
		time.Sleep(2 * time.Minute)
	})
}

func TestQueue_WhoAddsWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for n := range maxQueued {
			q.add(keys(fmt.Sprint(n))...)
		}
		var rooms atomic.Int32
		for range 3 {
			go func() {
				q.awaitRoom(t.Context())
				rooms.Add(1)
			}()
		}
		synctest.Wait()
		if rooms.Load() > 0 {
			t.Fatal("there is room in a full queue")
		}
		q.done(q.take(t.Context(), 1), undone{})
		synctest.Wait()
		if n := rooms.Load(); n != 3 {
			t.Errorf("%d of 3 find room", n)
		}
	})
}

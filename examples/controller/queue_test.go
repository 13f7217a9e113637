package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// working runs workers over a queue until the test ends, in a bubble of its own.
func working(t *testing.T, q *queue, workers int, do func(context.Context, key) (time.Duration, error)) context.Context {
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { q.work(ctx, ctx, do) })
	}
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	return ctx
}

func TestAKeyIsWorkedOnByOneWorkerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4)
		var mu sync.Mutex
		running, done := map[key]bool{}, map[key]int{}
		ctx := working(t, q, 4, func(_ context.Context, k key) (time.Duration, error) {
			mu.Lock()
			if running[k] {
				t.Errorf("%s is worked on twice at a time", k)
			}
			running[k] = true
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running[k] = false
			done[k]++
			return 0, nil
		})
		a, b := key{"Network", "", "a"}, key{"Network", "x", "b"}
		q.add(ctx, a)
		q.add(ctx, b)
		time.Sleep(500 * time.Millisecond) // both are worked on
		for range 3 {
			q.add(ctx, a)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if done[a] != 2 || done[b] != 1 {
			t.Errorf("a was worked on %d times, b %d times", done[a], done[b])
		}
		if len(q.keys) != 0 {
			t.Errorf("%d keys are remembered though nothing is to be done", len(q.keys))
		}
	})
}

func TestAKeyThatFailsIsTriedAgainAfterLongerAndLongerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4)
		var tries []time.Time
		ctx := working(t, q, 1, func(context.Context, key) (time.Duration, error) {
			if tries = append(tries, time.Now()); len(tries) < 15 {
				return 0, errors.New("not yet")
			}
			return 0, nil
		})
		q.add(ctx, key{Name: "a"})
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(tries) != 15 {
			t.Fatalf("%d tries", len(tries))
		}
		for i := 1; i < len(tries); i++ {
			longest := min(firstPause<<(i-1), lastPause)
			if pause := tries[i].Sub(tries[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("the pause before try %d is %v, not between %v and %v", i, pause, longest/2, longest)
			}
		}
	})
}

func TestAKeyComesBackWhenItIsToAndAtOnceIfItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4)
		begin := time.Now()
		var seen []time.Duration
		ctx := working(t, q, 1, func(context.Context, key) (time.Duration, error) {
			if seen = append(seen, time.Since(begin)); len(seen) > 2 {
				return 0, nil
			}
			return time.Hour, nil
		})
		q.add(ctx, key{Name: "a"})
		time.Sleep(time.Minute)
		q.add(ctx, key{Name: "a"})
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Minute, time.Hour + time.Minute}
		if len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
			t.Errorf("worked on after %v, want %v", seen, want)
		}
	})
}

func TestWhoAddsToAFullQueueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		ctx, stop := context.WithCancel(t.Context())
		q.add(ctx, key{Name: "a"})
		added := make(chan struct{})
		go func() {
			q.add(ctx, key{Name: "b"})
			close(added)
		}()
		synctest.Wait()
		select {
		case <-added:
			t.Error("a key more than fits was added")
		default:
		}
		stop()
		<-added
	})
}

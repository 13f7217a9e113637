package wait_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/internal/wait"
)

func TestBackoff_PausesAreSpreadUpToABoundThatDoubles(t *testing.T) {
	const clients = 3000
	for attempt, bound := range []time.Duration{100, 200, 400, 500, 500} {
		bound *= time.Millisecond
		windows := make([]int, 10)
		for range clients {
			b := wait.Backoff{Least: 100 * time.Millisecond, Most: 500 * time.Millisecond}
			for range attempt {
				b.Next()
			}
			pause := b.Next()
			if pause < 0 || pause > bound {
				t.Fatalf("pause %d is %v, at most %v is wanted", attempt, pause, bound)
			}
			windows[min(int(10*pause/bound), 9)]++
		}
		for i, n := range windows {
			if n < clients/20 || n > clients/5 {
				t.Errorf("pause %d: %d of %d clients come back in the window %d of 10", attempt, n, clients, i)
			}
		}
	}
}

func TestBackoff_BeginsAgainAfterAReset(t *testing.T) {
	b := wait.Backoff{Least: time.Millisecond, Most: time.Hour, Rand: rand.New(rand.NewPCG(1, 2))}
	for range 40 {
		b.Next()
	}
	if b.First() {
		t.Error("it says that there was no pause")
	}
	b.Reset()
	if pause := b.Next(); pause > time.Millisecond {
		t.Errorf("%v after a reset", pause)
	}
}

func TestBackoff_EndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		b := wait.Backoff{Least: 1000 * time.Hour, Most: 1000 * time.Hour, Rand: rand.New(rand.NewPCG(1, 2))}
		if b.Wait(ctx) || time.Since(begin) != time.Minute {
			t.Errorf("it waited for %v", time.Since(begin))
		}
	})
}

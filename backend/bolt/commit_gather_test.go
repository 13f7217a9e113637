package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/bolt"
)

// slow opens a store whose commits take 5 ms, and counts them.
func slow(t *testing.T) (s *bolt.Store, commits *int) {
	commits = new(int)
	return mustOpen(t, bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db")}.WithCommit(func(commit func() error) error {
		time.Sleep(5 * time.Millisecond) // of the bubble
		*commits++
		return commit()
	})), commits
}

// meanOf returns how long a write takes on average, of writers that each come once, a pause
// after the one before.
func meanOf(t *testing.T, calls int, pause func() time.Duration) time.Duration {
	s, _ := slow(t)
	defer mustClose(t, s)
	var all sync.WaitGroup
	var mu sync.Mutex
	var whole time.Duration
	for i := range calls {
		all.Go(func() {
			began := time.Now()
			mustPut(t, s, fmt.Sprint("n", i))
			mu.Lock()
			defer mu.Unlock()
			whole += time.Since(began)
		})
		time.Sleep(pause()) // of the bubble
	}
	all.Wait()
	return whole / time.Duration(calls)
}

// commitsOf returns how many commits writers share that each write in some rounds, and come
// back after a pause of their own.
func commitsOf(t *testing.T, writers, rounds int, pause func(writer int) time.Duration) int {
	s, commits := slow(t)
	defer mustClose(t, s)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for range rounds {
				mustPut(t, s, fmt.Sprint("n", i))
				time.Sleep(pause(i)) // of the bubble
			}
		})
	}
	all.Wait()
	return *commits
}

func TestCommit_Gather(t *testing.T) {
	const rounds = 100
	for _, test := range []struct {
		says string
		run  func(t *testing.T)
	}{
		{"many writers who come back late share a commit all the same", func(t *testing.T) {
			if n := commitsOf(t, 32, rounds, func(i int) time.Duration { return time.Duration(3000+100*i) * time.Microsecond }); n > rounds*5/4 {
				t.Errorf("%d commits for %d rounds", n, rounds)
			}
		}},
		{"two writers who come back at once share their commits", func(t *testing.T) {
			if n := commitsOf(t, 2, rounds, func(int) time.Duration { return 100 * time.Microsecond }); n > rounds*5/4 {
				t.Errorf("%d commits for %d rounds", n, rounds)
			}
		}},
		{"a writer that is alone does not wait", func(t *testing.T) {
			if mean := meanOf(t, 100, func() time.Duration { return time.Second }); mean != 5*time.Millisecond {
				t.Errorf("a call takes %v", mean)
			}
		}},
		{"writers who come one by one wait little for others", func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			// Half of the calls find a commit under way; each waits 2 ms at most.
			if mean := meanOf(t, 1000, func() time.Duration { return time.Duration(7e6 * rnd.ExpFloat64()) }); mean > 8*time.Millisecond {
				t.Errorf("a call takes %v", mean)
			}
		}},
		{"where there are always other writers, none waits for longer than 8 ms", func(t *testing.T) {
			// Half of a round of 8 ms before the commit, and of the commit, and the commit.
			if mean := meanOf(t, 4000, func() time.Duration { return 200 * time.Microsecond }); mean > 12*time.Millisecond {
				t.Errorf("a call takes %v", mean)
			}
		}},
	} {
		t.Run(test.says, func(t *testing.T) { synctest.Test(t, test.run) })
	}
}

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

func TestGather(t *testing.T) {
	for _, test := range []struct {
		says string
		run  func(t *testing.T)
	}{
		{"writers who come back in a moment share a commit", func(t *testing.T) {
			const writers, rounds = 32, 100
			s, commits := slow(t)
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					for range rounds {
						mustPut(t, s, fmt.Sprint("n", i))
						time.Sleep(time.Duration(50*i) * time.Microsecond)
					}
				})
			}
			all.Wait()
			if *commits > rounds*5/4 {
				t.Errorf("%d commits for %d rounds of %d writers", *commits, rounds, writers)
			}
			mustClose(t, s)
		}},
		{"two writers who come back at once share their commits", func(t *testing.T) {
			const rounds = 100
			s, commits := slow(t)
			var all sync.WaitGroup
			for i := range 2 {
				all.Go(func() {
					for range rounds {
						mustPut(t, s, fmt.Sprint("n", i))
						time.Sleep(100 * time.Microsecond)
					}
				})
			}
			all.Wait()
			if *commits > rounds*5/4 {
				t.Errorf("%d commits for %d rounds of two writers", *commits, rounds)
			}
			mustClose(t, s)
		}},
		{"writers who come one by one do not wait for others", func(t *testing.T) {
			const calls = 1000
			s, _ := slow(t)
			rnd := rand.New(rand.NewPCG(1, 2))
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
				time.Sleep(time.Duration(7e6 * rnd.ExpFloat64()))
			}
			all.Wait()
			// Half of the calls find a commit under way; each waits 2 ms at most.
			if mean := whole / calls; mean > 8*time.Millisecond {
				t.Errorf("a call takes %v", mean)
			}
			mustClose(t, s)
		}},
		{"where there are always other writers, none waits for longer than 8 ms", func(t *testing.T) {
			const calls = 4000
			s, commits := slow(t)
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
				time.Sleep(200 * time.Microsecond)
			}
			all.Wait()
			// Half of a round of 8 ms before the commit, and of the commit, and the commit.
			if mean := whole / calls; mean > 12*time.Millisecond {
				t.Errorf("a call takes %v, in %d commits", mean, *commits)
			}
			mustClose(t, s)
		}},
	} {
		t.Run(test.says, func(t *testing.T) { synctest.Test(t, test.run) })
	}
}

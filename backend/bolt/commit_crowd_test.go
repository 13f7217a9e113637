package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// crowd are writers that come and go while commits are slow, hang or fail.
type crowd struct {
	t     *testing.T
	store *bolt.Store

	mu  sync.Mutex // guards all below
	rnd *rand.Rand
	all []outcome
}

// outcome is what the caller of a batch was told.
type outcome struct {
	id    string
	at    backend.Revision // if err is nil
	err   error
	later backend.Revision // the place of the log that the caller was told after an error, if any
}

// draw is a random number below n.
func (c *crowd) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

// within is a random time up to d. There are few, so that much happens at the same moment.
func (c *crowd) within(d time.Duration) time.Duration {
	const step = 500 * time.Microsecond
	return step * time.Duration(c.draw(int(d/step)+1))
}

// commit is slow, and now and then it hangs, fails, or finds no space.
func (c *crowd) commit(commit func() error) error {
	fate := c.draw(50)
	switch {
	case fate < 2:
		time.Sleep(c.within(time.Second))
	case fate < 30:
		time.Sleep(c.within(10 * time.Millisecond))
	}
	switch fate {
	case 47:
		return &fs.PathError{Op: "write", Err: syscall.ENOSPC}
	case 48:
		return errInjected
	}
	if err := commit(); err != nil || fate != 49 {
		return err
	}
	return errInjected
}

// write applies a batch with one of many kinds of context.
func (c *crowd) write(id string) error {
	ctx, stop := context.Background(), func() {}
	limit := c.within(300 * time.Millisecond)
	kind := c.draw(6)
	switch kind {
	case 0:
		ctx, stop = context.WithTimeout(ctx, limit)
	case 1:
		ctx, stop = context.WithTimeout(ctx, 150*time.Millisecond+limit)
	case 2:
		cancelled, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(limit, cancel).Stop()
		ctx, stop = cancelled, cancel
	}
	defer stop()
	b := batch(c.store, id, id, "1")
	b.Actions[0].If.Presence = backend.Absent
	if c.draw(4) == 0 {
		b.Actions[0].Put.ExpiresAt = c.store.Now().Add(c.within(time.Second) + time.Millisecond)
	}
	began := time.Now()
	res, err := c.store.Apply(ctx, b)
	took := time.Since(began)
	if end, ok := ctx.Deadline(); ok {
		limit = end.Sub(began)
	}
	if kind < 3 && took > limit {
		c.t.Errorf("%s was answered after %v, its context ended after %v", id, took, limit)
	}
	o := outcome{id: id, err: err, at: res.Position.Shard(0)}
	if err != nil {
		if at, err := c.store.Position(context.Background()); err == nil {
			o.later = at.Shard(0)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, o)
	return err
}

// writer comes late, writes a few batches at its own speed, and leaves.
func (c *crowd) writer(name string) {
	time.Sleep(c.within(200 * time.Millisecond))
	speed := []time.Duration{0, time.Millisecond, 20 * time.Millisecond}[c.draw(3)]
	for i := range 1 + c.draw(20) {
		if c.draw(10) == 0 {
			_, _ = c.store.Purge(context.Background())
		}
		err := c.write(fmt.Sprint(name, "-", i))
		if errors.Is(err, backend.ErrUnavailable) {
			time.Sleep(c.within(2 * time.Second))
		}
		time.Sleep(c.within(speed))
	}
}

// check compares the answers that the callers got with the log.
func (c *crowd) check(history []backend.Event) {
	applied := map[string][]backend.Revision{}
	for _, e := range history {
		if e.Type == backend.Added {
			applied[e.RequestID] = append(applied[e.RequestID], e.Revision)
		}
	}
	for _, o := range c.all {
		at := applied[o.id]
		switch {
		case len(at) > 1:
			c.t.Errorf("%s was applied %d times", o.id, len(at))
		case o.err == nil && (len(at) == 0 || at[0] != o.at):
			c.t.Errorf("%s was acknowledged at %s, the log has it at %v", o.id, o.at, at)
		case o.err == nil || len(at) == 0:
		case !errors.Is(o.err, backend.ErrUnknown):
			c.t.Errorf("%s was applied, its caller heard %v", o.id, o.err)
		case o.later != (backend.Revision{}) && o.later.Compare(at[0]) < 0:
			c.t.Errorf("%s was applied at %s, after its caller heard that the log ends at %s", o.id, at[0], o.later)
		}
	}
}

// TestCommit_Crowd lets crowds of all sizes come and go, and closes the store at any moment. No
// call is answered late, lied to or forgotten.
func TestCommit_Crowd(t *testing.T) {
	for seed, size := range []int{1, 2, 2, 3, 10, 24, 25, 40, 130, 300, 1100} {
		if testing.Short() && size > 130 {
			continue
		}
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, %d writers, closed early %v", seed, size, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &crowd{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 0))}
					path, calm := filepath.Join(t.TempDir(), "sluice.db"), true
					c.store = mustOpen(t, bolt.Config{Path: path}.WithCommit(func(commit func() error) error {
						if calm {
							return commit()
						}
						return c.commit(commit)
					}).WithProbe(func(int) error { return nil }))
					begin, err := c.store.Position(t.Context())
					wantErr(t, err, nil)
					calm = false
					var writers sync.WaitGroup
					for i := range size {
						writers.Go(func() { c.writer(fmt.Sprint("w", i)) })
					}
					if closes {
						time.Sleep(c.within(500 * time.Millisecond))
						_ = c.store.Close()
					}
					writers.Wait()
					if !closes {
						time.Sleep(10 * time.Millisecond) // of the bubble: no group waits longer for others
						wantErr(t, c.store.Idle(), nil)
					}
					_ = c.store.Close()
					again := mustOpen(t, bolt.Config{Path: path})
					c.check(replay(t, again, begin))
					if err := again.Check(t.Context()); err != nil {
						t.Error(err)
					}
					mustClose(t, again)
				})
			})
		}
	}
}

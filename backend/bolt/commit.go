package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of the queue and of one transaction.
const (
	queueCalls = 1024
	groupCalls = 128
	groupBytes = 8 << 20
	// formBytes is how much memory for forms is kept from one transaction to the next.
	formBytes = 256 << 10
)

// call is a batch, or a purge, that waits for its commit.
type call struct {
	ctx    context.Context
	batch  backend.Batch // without actions: a purge
	size   int
	done   chan struct{}
	result backend.Result // these are set before done is closed
	purged int
	err    error
}

// ended says whether the call was answered.
func (w *call) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *call) finish(err error) {
	w.err = err
	close(w.done)
}

// submit queues the call and waits for its end. Concurrent calls share a
// transaction, and so a sync of the file: if no goroutine is committing, submit
// starts one, which commits group after group until the queue is empty.
func (c *core) submit(ctx context.Context, w *call) error {
	w.ctx, w.done = ctx, make(chan struct{})
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-c.closing:
			return backend.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-c.slots }()
	c.mu.Lock()
	if c.closed() {
		c.mu.Unlock()
		return backend.ErrClosed
	}
	c.queue = append(c.queue, w)
	if c.awaited > 0 && len(c.queue) >= c.awaited {
		c.awaited = 0
		c.gathered <- struct{}{}
	}
	if !c.committing {
		c.committing = true
		c.running.Add(1)
		go c.commitQueue()
	}
	c.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	if i := slices.Index(c.queue, w); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		c.mu.Unlock()
		return ctx.Err()
	}
	select {
	case <-w.done:
		c.mu.Unlock()
		return w.err
	default:
	}
	c.abandoned = append(slices.DeleteFunc(c.abandoned, (*call).ended), w)
	c.setPlace()
	c.mu.Unlock()
	return fmt.Errorf("%w: %w", backend.ErrUnknown, ctx.Err())
}

// settle waits for the commits of calls whose callers gave up. To learn what
// became of such a call, one asks for the position of the log after the call's
// deadline, and concludes from its absence that it was not applied. But it may
// have been judged in time, and its commit may still hang.
func (c *core) settle(ctx context.Context) error {
	for {
		c.mu.Lock()
		c.abandoned = slices.DeleteFunc(c.abandoned, (*call).ended)
		var wait <-chan struct{}
		if len(c.abandoned) > 0 {
			wait = c.abandoned[0].done
		}
		c.setPlace()
		c.mu.Unlock()
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-c.closing:
			return backend.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commitQueue commits groups until the queue is empty.
func (c *core) commitQueue() {
	defer c.running.Done()
	for {
		group := c.take()
		if group == nil {
			return
		}
		began := time.Now()
		c.commitGroup(group)
		want, limit := min(len(group)+c.behind, groupCalls), min(time.Since(began), maxGather)
		if want >= longGroup {
			limit = min(2*time.Since(began), maxLongGather)
		}
		c.await(want, limit)
	}
}

// maxGather is the longest that a group waits for more calls, and maxLongGather one that
// expects longGroup calls or more: on a busy machine so many writers need longer to come
// back. With 2 ms an update of 64 clients costs a tenth more processor time.
const (
	maxGather     = 2 * time.Millisecond
	maxLongGather = 8 * time.Millisecond
	longGroup     = 24
)

// await waits until want calls are queued, for at most limit. A group costs much and a
// call in it little, so the writers that the last group has woken get the time to queue
// their next calls: as many as were in it and behind it, for as long as it took at most, twice that if they are many.
// A writer that is alone never waits.
//
//	queue   1  |  2 3 4 5 |     5' 2' 3' 4'    want 4+0
//	        commit  commit  await  commit
func (c *core) await(want int, limit time.Duration) {
	if want < 2 {
		return
	}
	c.mu.Lock()
	enough := len(c.queue) >= want
	if !enough {
		c.awaited = want
	}
	c.mu.Unlock()
	if enough {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.gathered:
		return
	case <-timer.C:
	case <-c.closing:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaited == 0 { // the last call came just now
		<-c.gathered
	}
	c.awaited = 0
}

// take removes a group from the queue, nil if it is empty.
func (c *core) take() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := 0, 0
	for n < len(c.queue) && n < groupCalls && (n == 0 || size+c.queue[n].size <= groupBytes) {
		size += c.queue[n].size
		n++
	}
	if n == 0 {
		c.committing = false
		return nil
	}
	group := slices.Clone(c.queue[:n])
	c.queue = slices.Delete(c.queue, 0, n)
	c.behind = len(c.queue)
	return group
}

// commitGroup judges and applies the calls one after the other in one
// transaction, and answers them all when that is on disk.
func (c *core) commitGroup(group []*call) {
	db, err := c.database(context.Background())
	if err != nil {
		finishAll(group, err)
		return
	}
	if err := c.room(); err != nil {
		finishAll(group, err)
		return
	}
	tx, err := db.Begin(true)
	if err != nil {
		finishAll(group, fmt.Errorf("%w: %w", backend.ErrUnavailable, err))
		return
	}
	w, err := newWriter(c, tx, len(group))
	errs := make([]error, len(group))
	for i, call := range group {
		if err != nil {
			break
		}
		errs[i], err = w.run(call)
	}
	if err == nil {
		err = w.finish()
	}
	if err != nil || !w.dirty() {
		// Nothing was written, so the judgements stand, unless the file had an error.
		if e := rollback(tx); err == nil && e != nil {
			err = e
		}
		if err != nil {
			finishAll(group, fmt.Errorf("%w: %w", backend.ErrUnavailable, err))
			return
		}
	} else if err := c.cfg.commit(tx.Commit); err != nil && isNoSpace(err) {
		_ = rollback(tx)
		c.outOfSpace(group, errs, err)
		return
	} else if err != nil {
		c.lose(tx, group, errs, err)
		return
	} else {
		c.publish(w)
	}
	for i, call := range group {
		call.finish(errs[i])
	}
}

func finishAll(group []*call, err error) {
	for _, call := range group {
		call.finish(err)
	}
}

// publish makes committed changes known to the watchers.
func (c *core) publish(w *writer) {
	c.mu.Lock()
	c.state = w.log.State
	c.setPlace()
	c.tail.append(w.events)
	c.behind = len(c.queue)
	c.acknowledged.Store(w.id)
	c.mu.Unlock()
	c.settled.Fire()
	if len(w.events) > 0 {
		c.changed.Fire()
	}
}

// lose answers a group whose commit failed. Its changes may or may not be in the
// file, so the file is reopened, with a new epoch, before anyone is answered. A
// condition may have failed because of changes of the same group, so such a call
// is told that nothing was applied and that it may try again.
func (c *core) lose(tx *bbolt.Tx, group []*call, errs []error, cause error) {
	c.cfg.Logger.Error("a commit failed; the store file is opened again", zap.Error(cause))
	_ = rollback(tx)
	c.mu.Lock()
	opened := c.startOpening(cause)
	c.mu.Unlock()
	<-opened
	for i, call := range group {
		err := fmt.Errorf("%w: %w", backend.ErrUnknown, cause)
		var ce *backend.ConditionError
		switch {
		case errors.As(errs[i], &ce):
			err = fmt.Errorf("%w: %w", backend.ErrUnavailable, cause)
		case errs[i] != nil:
			err = errs[i]
		}
		call.finish(err)
	}
}

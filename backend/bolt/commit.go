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

// This file brings batches from Apply to the disk. Batches that arrive together share one transaction, and so one sync
// of the file:
//
//	callers   submit: admit, enqueue              <-done    (withdraw: unknown, see awaitAbandoned)
//	               \     |     /                      ^
//	                v    v    v                       |
//	queue         [ 1 2 3 | 4 5 ... ]                 |
//	                   |                              |
//	           take    |  a group                     |
//	           beginGroup   file, space, transaction  |  else ErrUnavailable for all
//	           evaluate     conditions and changes    |  a call's own error; nothing changed
//	           commit       pages and sync            |  no space: outOfSpace; else commitFailed
//	           publish      state, tail, watchers     |
//	           answer  -------------------------------+
//	           gather       the callers' next batches, then take again
//
// Everything below the queue is done by one goroutine, commitQueue, which ends when the queue is empty. No call is
// answered, and no reader sees a change (core.view), before the change is on disk.
//
// If the file has an error before the commit, the transaction is rolled back, so nothing has changed. If the commit
// fails because there is no space, nothing has changed either. If it fails for another reason, it is not known what is
// on disk: commitFailed reopens the file with a new epoch, and the callers get ErrUnknown.

// Limits of the queue and of a transaction.
const (
	queueCalls = 1024
	groupCalls = 128
	groupBytes = 8 << 20
	// formBytes is how much memory for encoded resources is kept for the next transaction.
	formBytes = 256 << 10
)

// call is a batch, or a purge, that waits to be committed.
type call struct {
	cancelled <-chan struct{} // closed when the caller waits no longer
	batch     backend.Batch   // without actions: a purge
	size      int
	queued    time.Time
	done      chan struct{}
	times     *callTimes // nil unless the request is traced
	// The fields below are final when done is closed.
	result backend.Result
	purged int
	err    error
}

// ended reports whether the call was answered.
func (w *call) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// errCancelled is the error of a call whose caller has given up before it was committed.
var errCancelled = errors.New("the caller waits no longer")

// answer returns the error for the caller of a call that has ended. ctx is the context of the caller.
func (w *call) answer(ctx context.Context) error {
	if errors.Is(w.err, errCancelled) {
		return ctx.Err()
	}
	return w.err
}

func (w *call) finish(err error) {
	w.err = err
	close(w.done)
}

// submit puts the call into the queue and waits for its answer.
func (c *core) submit(ctx context.Context, w *call) error {
	w.queued = time.Now()
	w.cancelled, w.done = ctx.Done(), make(chan struct{})
	w.times = timesOf(ctx)
	if err := c.admit(ctx); err != nil {
		return err
	}
	defer func() { <-c.slots }()
	if err := c.enqueue(w); err != nil {
		return err
	}
	select {
	case <-w.done:
		w.times.record(ctx)
		return w.answer(ctx)
	case <-ctx.Done():
		return c.withdraw(ctx, w)
	}
}

// admit waits for a slot in the queue.
func (c *core) admit(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-c.closing:
		return backend.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enqueue puts the call into the queue. If no goroutine is committing, it starts one.
func (c *core) enqueue(w *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return backend.ErrClosed
	}
	c.queue = append(c.queue, w)
	if c.awaited > 0 && len(c.queue) >= c.awaited {
		c.awaited = 0
		c.gathered <- struct{}{}
	}
	if !c.committing {
		c.committing = true
		c.running.Go(c.commitQueue)
	}
	return nil
}

// withdraw removes the call from the queue. If the call is already being committed, its outcome is unknown.
func (c *core) withdraw(ctx context.Context, w *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, w); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		return ctx.Err()
	}
	if w.ended() {
		return w.answer(ctx)
	}
	c.abandoned = append(slices.DeleteFunc(c.abandoned, (*call).ended), w)
	c.setHead()
	return fmt.Errorf("%w: %w", backend.ErrUnknown, ctx.Err())
}

// awaitAbandoned waits until the calls whose callers have given up are committed. Such a caller finds out what became
// of its batch from the log: after the deadline of the batch, it asks for the position and reads the log up to there.
// If the batch is not in it, the batch was not applied. Therefore no position may be returned while a call that was
// accepted before its deadline is still being committed.
func (c *core) awaitAbandoned(ctx context.Context) error {
	for {
		c.mu.Lock()
		c.abandoned = slices.DeleteFunc(c.abandoned, (*call).ended)
		var wait <-chan struct{}
		if len(c.abandoned) > 0 {
			wait = c.abandoned[0].done
		}
		c.setHead()
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
	for {
		group := c.take()
		if group == nil {
			return
		}
		began := time.Now()
		batches := c.observeWaits(group, began)
		c.commitGroup(group)
		took := time.Since(began)
		if batches > 0 {
			c.cfg.Observe.Size.Observe(float64(batches))
			c.cfg.Observe.Duration.Observe(took.Seconds())
		}
		c.gather(gatherTarget(len(group)+c.behind, took))
	}
}

// observeWaits observes how long the batches of a group have waited, and returns their number.
func (c *core) observeWaits(group []*call, began time.Time) (batches int) {
	for _, call := range group {
		if len(call.batch.Actions) == 0 { // a purge
			continue
		}
		batches++
		c.cfg.Observe.Wait.Observe(began.Sub(call.queued).Seconds())
	}
	return batches
}

// maxGather is how long a group waits for more calls. maxLongGather applies if longGroup calls or more are expected: on
// a busy machine so many writers need longer until they send their next calls. With 2 ms, an update by 64 clients would
// take a tenth more processor time.
const (
	maxGather     = 2 * time.Millisecond
	maxLongGather = 8 * time.Millisecond
	longGroup     = 24
)

// gatherTarget returns how many calls the next group waits for, and for how long. calls is the number of calls in the
// last group and queued behind it, and took is how long the last group took. The next group waits for as many calls, at
// most as long as the last group took, or twice as long if there are many calls. Constants limit all these values.
func gatherTarget(calls int, took time.Duration) (want int, limit time.Duration) {
	want, limit = min(calls, groupCalls), min(took, maxGather)
	if want >= longGroup {
		limit = min(2*took, maxLongGather)
	}
	return want, limit
}

// gather waits until want calls are queued, but at most limit. A commit is expensive, and another call in it is cheap.
// So writers that the last group has answered get time to queue their next calls. A single writer never waits.
//
//	commit A           B, C, D and E queue meanwhile: they are behind
//	gather             want 1+4: waits for the next call of A
//	commit A B C D E   nobody queues meanwhile
//	gather             want 5+0: waits for all five
func (c *core) gather(want int, limit time.Duration) {
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
	if c.awaited == 0 { // enqueue has just sent to gathered
		<-c.gathered
	}
	c.awaited = 0
}

// take removes the calls of the next group from the queue; nil if there are none.
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

// commitGroup commits a group in one transaction and answers its calls.
func (c *core) commitGroup(group []*call) {
	times := traceGroup(group)
	tx, err := c.beginGroup()
	if err != nil {
		finishAll(group, err)
		return
	}
	var w *writer
	err = guarded(func() (err error) {
		w, err = c.evaluate(tx, group)
		return err
	})
	if errors.Is(err, backend.ErrDamaged) {
		_ = guarded(func() error { return rollback(tx) })
		c.stopWriting(err)
		finishAll(group, err)
		return
	}
	if err != nil || !w.changed {
		// Nothing was written. The calls keep their results, unless the file has an error.
		if err = errors.Join(err, rollback(tx)); err != nil {
			finishAll(group, fmt.Errorf("%w: %w", backend.ErrUnavailable, err))
			return
		}
		answer(group)
		return
	}
	err = guarded(func() error { return c.cfg.commit(times.timed(tx.Commit)) })
	switch {
	case errors.Is(err, backend.ErrDamaged):
		c.stopWriting(err)
		refuse(group, fmt.Errorf("%w: %w", backend.ErrUnknown, err), err)
	case err == nil:
		c.publish(w)
		stats := tx.Stats()
		c.cfg.Observe.Sync.Observe(stats.GetWriteTime().Seconds())
		answer(group)
	case isNoSpace(err):
		_ = rollback(tx)
		c.outOfSpace(group, err)
	default:
		_ = rollback(tx)
		c.commitFailed(group, err)
	}
}

// beginGroup begins a transaction. It returns an error if the file is not open or the disk is full.
func (c *core) beginGroup() (*bbolt.Tx, error) {
	db, err := c.database(context.Background())
	if err != nil {
		return nil, err
	}
	if err := c.writable(); err != nil {
		return nil, err
	}
	if err := c.checkSpace(); err != nil {
		return nil, err
	}
	tx, err := db.Begin(true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	return tx, nil
}

// evaluate checks the conditions of the calls, one after the other, and makes their changes in the transaction. Errors
// of single calls are stored in them; the error that is returned is an error of the file.
func (c *core) evaluate(tx *bbolt.Tx, group []*call) (*writer, error) {
	w, err := newWriter(c, tx, len(group))
	if err != nil {
		return nil, err
	}
	for _, call := range group {
		call.err = w.run(call)
	}
	return w, w.finish()
}

// answer wakes the callers of a group.
func answer(group []*call) {
	for _, call := range group {
		close(call.done)
	}
}

func finishAll(group []*call, err error) {
	for _, call := range group {
		call.finish(err)
	}
}

// refuse sets the errors of a group that was not committed, and answers its calls. A call that would have succeeded
// gets the error uncommitted. A call whose condition was not met gets the error undecided, because another change in
// the same group may have been the reason. Other errors are kept.
func refuse(group []*call, uncommitted, undecided error) {
	for _, call := range group {
		var ce *backend.ConditionError
		if call.err == nil {
			call.err = uncommitted
		} else if errors.As(call.err, &ce) {
			call.err = undecided
		}
	}
	answer(group)
}

// publish makes the changes of a committed group visible to watchers.
func (c *core) publish(w *writer) {
	c.mu.Lock()
	c.state = w.log.State
	c.setHead()
	c.tail.append(w.events)
	c.behind = len(c.queue)
	c.acknowledged.Store(w.id)
	c.mu.Unlock()
	c.progress.Fire()
	if len(w.events) > 0 {
		c.changed.Fire()
	}
}

// commitFailed answers a group whose commit has failed. Its changes may or may not be in the file, so the file is
// reopened with a new epoch before any call is answered.
func (c *core) commitFailed(group []*call, cause error) {
	c.cfg.Logger.Error("a commit failed; the store file is opened again", zap.Error(cause))
	c.mu.Lock()
	opened := c.startOpening(cause)
	c.mu.Unlock()
	<-opened
	refuse(group, fmt.Errorf("%w: %w", backend.ErrUnknown, cause), fmt.Errorf("%w: %w", backend.ErrUnavailable, cause))
}

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

// A batch on its way from Apply to the disk. Batches that arrive together share one
// transaction, and so one sync of the file:
//
//	callers   submit: admit, enqueue              <-done    (withdraw: unknown, see awaitAbandoned)
//	               \     |     /                      ^
//	                v    v    v                       |
//	queue         [ 1 2 3 | 4 5 ... ]                 |
//	                   |                              |
//	           take    |  a group                     |
//	           beginGroup   file, space, transaction  |  else ErrUnavailable for all
//	           judge        conditions and changes    |  a call's own error; nothing changed
//	           commit       pages and sync            |  no space: outOfSpace; else commitFailed
//	           publish      state, tail, watchers     |
//	           answer  -------------------------------+
//	           gather       the callers' next batches, then take again
//
// One goroutine, commitQueue, does all below the queue. It ends when the queue is empty.
// Nobody is answered, and no reader sees a change (core.view), before the change is on disk.
// If the file has an error before commit, the transaction is rolled back: nothing has changed.
// If commit fails for want of space, nothing has changed either. If it fails otherwise, nobody
// knows what is on disk: commitFailed opens the file again, in a new epoch, and the callers get
// ErrUnknown.

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
	cancelled <-chan struct{} // closed when the caller waits no longer
	batch     backend.Batch   // without actions: a purge
	size      int
	queued    time.Time
	done      chan struct{}
	times     *callTimes // nil unless the request is traced
	// These are final when done is closed.
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

// errCancelled is the error of a call whose caller gave up before it was committed.
var errCancelled = errors.New("the caller waits no longer")

// answer returns the error of an ended call for its caller, whose context is ctx.
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

// submit queues the call and waits for its answer.
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

// enqueue queues the call. If no goroutine is committing, it starts one.
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

// withdraw takes the call out of the queue. If it is being committed, its outcome is unknown.
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

// awaitAbandoned waits for the commits of calls whose callers gave up. Such a caller learns the
// outcome by asking for the position after the call's deadline and reading the log up to there: a
// batch that is absent was not applied. So no position may be returned while a call that was
// evaluated before its deadline is still being committed.
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

// observeWaits measures how long the batches of a group have waited, and returns how many there are.
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

// maxGather is the longest that a group waits for more calls. maxLongGather is the longest if
// longGroup calls or more are expected: on a busy machine so many writers need longer to come
// back. With 2 ms an update of 64 clients costs a tenth more processor time.
const (
	maxGather     = 2 * time.Millisecond
	maxLongGather = 8 * time.Millisecond
	longGroup     = 24
)

// gatherTarget returns how many calls the next group waits for, and how long at most: as many as
// were in the last group and behind it, and no longer than that took, or twice as long for many.
func gatherTarget(calls int, took time.Duration) (want int, limit time.Duration) {
	want, limit = min(calls, groupCalls), min(took, maxGather)
	if want >= longGroup {
		limit = min(2*took, maxLongGather)
	}
	return want, limit
}

// gather waits until want calls are queued, for at most limit. A group costs much and a call in it
// little, so the writers that the last group has answered get the time to queue their next calls. A
// writer that is alone never waits.
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

// commitGroup takes a group through one transaction and answers its callers.
func (c *core) commitGroup(group []*call) {
	times := traceGroup(group)
	tx, err := c.beginGroup()
	if err != nil {
		finishAll(group, err)
		return
	}
	var w *writer
	err = guarded(func() (err error) {
		w, err = c.judge(tx, group)
		return err
	})
	if errors.Is(err, backend.ErrDamaged) {
		_ = guarded(func() error { return rollback(tx) })
		c.stopWriting(err)
		finishAll(group, err)
		return
	}
	if err != nil || !w.changed {
		// Nothing was written, so the calls keep their results, unless the file had an
		// error.
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

// beginGroup begins a transaction, unless the file is not open or the disk is full.
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

// judge judges the calls one after the other and makes their changes in the transaction.
// Each call keeps its own error; the one returned is the file's.
func (c *core) judge(tx *bbolt.Tx, group []*call) (*writer, error) {
	w, err := newWriter(c, tx, len(group))
	if err != nil {
		return nil, err
	}
	for _, call := range group {
		call.err = w.run(call)
	}
	return w, w.finish()
}

// answer wakes the callers: each has its result or its own error.
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

// refuse answers the calls of a group that was not committed. Calls that would have succeeded get
// uncommitted. Calls whose condition failed get unjudged, because a change of the same group may
// have been the reason. Other errors are kept.
func refuse(group []*call, uncommitted, unjudged error) {
	for _, call := range group {
		var ce *backend.ConditionError
		if call.err == nil {
			call.err = uncommitted
		} else if errors.As(call.err, &ce) {
			call.err = unjudged
		}
	}
	answer(group)
}

// publish makes committed changes known to the watchers.
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

// commitFailed answers a group whose commit failed. Its changes may or may not be in the
// file, so the file is reopened, with a new epoch, before anyone is answered.
func (c *core) commitFailed(group []*call, cause error) {
	c.cfg.Logger.Error("a commit failed; the store file is opened again", zap.Error(cause))
	c.mu.Lock()
	opened := c.startOpening(cause)
	c.mu.Unlock()
	<-opened
	refuse(group, fmt.Errorf("%w: %w", backend.ErrUnknown, cause), fmt.Errorf("%w: %w", backend.ErrUnavailable, cause))
}

package redis

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of the queue of one server.
const (
	// maxSenders is the maximum number of pipelines that are sent at the same time.
	maxSenders = 2
	// secondSender is the number of waiting calls from which on a second sender is used. Calls
	// that are sent together cost the server less.
	secondSender = 16
	// pipelineCalls and pipelineBytes bound a pipeline, because the server executes it
	// without serving others in between. A single call may be larger.
	pipelineCalls = 32
	pipelineBytes = 512 << 10
	// waitingCalls is how many calls may be in run, waiting or sent. Others wait for a slot.
	waitingCalls = 1024
)

// writeQueue holds the calls that wait to be sent to one server, and sends those that come together as a
// pipeline: in one write, in their order, each answered by itself. A caller that gives up
// before its call was sent takes it back; the others notice nothing.
//
// A sender is a goroutine that sends one pipeline after the other. It counts as a call in progress of the
// session, which is closed when it has ended:
//
//	           a call              16 calls wait
//	no sender ------> one sender ----------------> two senders
//	    ^                 |  ^                          |
//	    +-----------------+  +--------------------------+
//	     no call waits        fewer than 16 calls wait when one of them comes back
//
//	sender:  yield -> take -> send -> yield -> ...
//	                            |
//	                            scriptRuns   calls that can share a script
//	                            sendRuns     one pipeline; scripts that the server does not know again
type writeQueue struct {
	session *session
	on      *goredis.Client
	slots   chan struct{} // has a value for each call in run

	mu      sync.Mutex    // guards all below
	queue   []*scriptCall // not sent yet
	senders int
}

// scriptCall is one batch: the keys and arguments with which the script apply runs it alone.
type scriptCall struct {
	keys []string
	args []any
	size int
	// queued is when the call came.
	queued time.Time
	done   chan struct{}
	// times is nil unless the request is traced.
	times *callTimes
	reply []any // these are set before done is closed
	err   error
}

// finish answers the call.
func (c *scriptCall) finish(reply []any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// writeQueue returns the queue of a server.
func (s *session) writeQueue(on *goredis.Client) *writeQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writeQueues[on]
	if w == nil {
		w = &writeQueue{session: s, on: on, slots: make(chan struct{}, waitingCalls)}
		s.writeQueues[on] = w
	}
	return w
}

// run sends a batch and returns its reply. If the error is a refusal, the batch was not sent; after another
// error it may have been applied. The caller has acquired the session.
func (w *writeQueue) run(ctx context.Context, c *scriptCall) ([]any, error) {
	c.queued = time.Now()
	c.done = make(chan struct{})
	c.times = timesOf(ctx)
	if err := w.admit(ctx); err != nil {
		return nil, &refusal{err: err}
	}
	defer func() { <-w.slots }()
	w.mu.Lock()
	w.queue = append(w.queue, c)
	if w.senders == 0 || w.senders < maxSenders && len(w.queue) >= secondSender {
		w.senders++
		w.session.inflight.Add(1)
		go w.sendAll()
	}
	w.mu.Unlock()
	select {
	case <-c.done:
		c.times.record(ctx)
		return c.reply, c.err
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.queue, c)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	w.mu.Unlock()
	if i >= 0 {
		return nil, &refusal{err: ctx.Err()}
	}
	select { // it was sent, and may be answered by now
	case <-c.done:
		return c.reply, c.err
	default:
		return nil, ctx.Err()
	}
}

// admit takes a slot for a call.
func (w *writeQueue) admit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendAll is a sender: it sends pipeline after pipeline until take finds no calls for it.
func (w *writeQueue) sendAll() {
	defer w.session.inflight.Done()
	for last := 0; ; {
		w.yield(last)
		calls := w.take()
		if calls == nil {
			return
		}
		began := time.Now()
		observe := &w.session.core.cfg.Observe
		for _, c := range calls {
			observe.Wait.Observe(began.Sub(c.queued).Seconds())
		}
		w.send(calls)
		last = len(calls)
		observe.Size.Observe(float64(last))
		observe.Duration.Observe(time.Since(began).Seconds())
	}
}

// yield lets the callers that the last pipeline has answered queue their next calls. It yields the
// processor as long as calls come, and waits for no timer.
func (w *writeQueue) yield(last int) {
	for grown, seen := last > 1, 0; grown; {
		runtime.Gosched()
		w.mu.Lock()
		n := len(w.queue)
		w.mu.Unlock()
		grown, seen = n > seen && n < pipelineCalls, n
	}
}

// take removes the calls of a pipeline from the queue. If there are none, or so few that the other sender
// takes them, it returns nil and the sender ends.
func (w *writeQueue) take() []*scriptCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	if w.senders > 1 && len(w.queue) < secondSender {
		w.senders--
		return nil
	}
	for n < len(w.queue) && n < pipelineCalls && (n == 0 || size+w.queue[n].size <= pipelineBytes) {
		size += w.queue[n].size
		n++
	}
	if n == 0 {
		w.senders--
		return nil
	}
	calls := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	return calls
}

// send sends a pipeline and answers its calls.
func (w *writeQueue) send(calls []*scriptCall) {
	ctx, cancel := context.WithTimeout(context.Background(), w.session.core.cfg.Timeout)
	defer cancel()
	noteSent(calls)
	for all := scriptRuns(calls); len(all) > 0; {
		all = w.sendRuns(ctx, all)
	}
}

// sendRuns sends runs as one pipeline and answers their calls. It returns the runs that the server has not executed
// because it does not know the script; they are sent again with its source. With DurabilityReplica the pipeline ends
// with WAIT, which is about everything before it on the connection.
func (w *writeQueue) sendRuns(ctx context.Context, runs []*scriptRun) (again []*scriptRun) {
	core := w.session.core
	pipe, script := w.on.Pipeline(), core.scripts.apply
	cmds := make([]*goredis.Cmd, len(runs))
	for i, e := range runs {
		if e.source {
			cmds[i] = pipe.Eval(ctx, script.source, e.keys, e.args...)
		} else {
			cmds[i] = pipe.EvalSha(ctx, script.sha, e.keys, e.args...)
		}
	}
	var replicas *goredis.Cmd
	if core.cfg.Durability == DurabilityReplica {
		replicas = core.waitForReplica(ctx, pipe)
	}
	_, broken := pipe.Exec(ctx)
	noteReplied(runs)
	var unconfirmed error
	if replicas != nil {
		if n, err := replicas.Int64(); err != nil || n < 1 {
			unconfirmed = fmt.Errorf("no replica confirms the batch: %w", backend.ErrUnknown)
		}
	}
	for i, e := range runs {
		// If the connection breaks, the client library notes that as the error of
		// those calls, too, that were answered before.
		if reply, _ := cmds[i].Val().([]any); len(reply) > 0 {
			e.answer(reply, unconfirmed)
			continue
		}
		_, err := cmds[i].Slice()
		if err == nil {
			err = broken
		}
		if goredis.HasErrorPrefix(err, "NOSCRIPT") && !e.source {
			e.source = true
			again = append(again, e)
			continue
		}
		for _, c := range e.calls {
			c.finish(nil, err)
		}
	}
	return again
}

// scriptRun is one execution of the script in a pipeline: for one call, or for several of one action each that
// have the shard, the epoch and the clock in common.
type scriptRun struct {
	// source sends the source of the script, since the server does not know it.
	source bool
	keys   []string
	args   []any
	calls  []*scriptCall
}

// scriptRuns returns the runs that execute calls. What the script reads before the first batch costs as
// much as a put, so batches of one action that come together share a run.
func scriptRuns(calls []*scriptCall) []*scriptRun {
	// common identifies the calls that can share a run: by the meta of their shard, the epoch and the clock.
	type common struct{ meta, epoch, clock any }
	var out []*scriptRun
	groups := map[common]*scriptRun{}
	for _, c := range calls {
		of := common{c.keys[0], c.args[0], c.args[2]}
		e := groups[of]
		if len(c.keys) > shardKeys+1 || e == nil {
			// Clipped, so that appending to them does not write into the call's own arrays.
			e = &scriptRun{keys: slices.Clip(c.keys), args: slices.Clip(c.args), calls: []*scriptCall{c}}
			out = append(out, e)
			if len(c.keys) == shardKeys+1 {
				groups[of] = e
			}
			continue
		}
		e.keys = append(e.keys, c.keys[shardKeys:]...)
		e.args = append(e.args, c.args[commonArguments:]...)
		e.calls = append(e.calls, c)
	}
	return out
}

// answer gives each call its reply; if there is one reply to all of them, it gives them that. unconfirmed is
// the error of calls that made changes, nil if a replica has them or none has to.
func (r *scriptRun) answer(reply []any, unconfirmed error) {
	for i, c := range r.calls {
		own, ok := reply[min(i, len(reply)-1)].([]any)
		if !ok || len(reply) != len(r.calls) {
			own = reply
		}
		if text(own, 0) == "ok" {
			c.finish(own, unconfirmed)
		} else {
			c.finish(own, nil)
		}
	}
}

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

// Limits of the queue for a server.
const (
	// maxSenders is the maximum number of pipelines in progress.
	maxSenders = 2
	// secondSender is the number of waiting calls from which a second sender is used. Calls that are sent together are
	// cheaper for the server.
	secondSender = 16
	// pipelineCalls and pipelineBytes limit a pipeline, since the server serves nobody else while it executes one. A
	// single call may be larger.
	pipelineCalls = 32
	pipelineBytes = 512 << 10
	// waitingCalls is the maximum number of calls that are admitted at a time. Further calls wait for a slot.
	waitingCalls = 1024
)

// writeQueue is the queue of calls to be sent to one server. Calls that wait at the same time are sent as a pipeline:
// in one write, in their order, each with a separate answer. A caller that gives up before its call was sent removes
// the call, without effect on others.
//
// A sender is a goroutine that sends one pipeline after the other. It counts as a call of the session, so that the
// session is not closed before the sender has ended:
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
//	                            sendRuns     one pipeline; then again what needs the source of the script
type writeQueue struct {
	session *session
	on      *goredis.Client
	slots   chan struct{} // has a value for each admitted call

	mu      sync.Mutex    // guards all below
	queue   []*scriptCall // not sent yet
	senders int
}

// scriptCall is a call of the script apply with one batch.
type scriptCall struct {
	keys []string
	args []any
	size int
	// queued is when the call was put into the queue.
	queued time.Time
	done   chan struct{}
	// times is nil unless the request is traced.
	times *callTimes
	reply []any // these are set before done is closed
	err   error
}

func (c *scriptCall) finish(reply []any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// writeQueue returns the queue of a server. The first call for the server makes the queue.
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

// run sends a batch and returns the reply. If the error is a refusal, the batch was not sent; after another error it
// may have been applied. The caller must have acquired the session.
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

// admit waits for a slot for a call.
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

// sendAll is the goroutine of a sender: it sends pipelines until take returns no calls.
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

// yield lets callers whose calls were just answered queue their next calls. It yields the processor as long as the
// queue grows. It does not wait for a timer.
func (w *writeQueue) yield(last int) {
	for grown, seen := last > 1, 0; grown; {
		runtime.Gosched()
		w.mu.Lock()
		n := len(w.queue)
		w.mu.Unlock()
		grown, seen = n > seen && n < pipelineCalls, n
	}
}

// take removes the calls of the next pipeline from the queue. It returns nil, so that the sender ends, if there are no
// calls, or so few that the other sender can send them.
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

// sendRuns sends runs of the script as one pipeline, and answers their calls. It returns the runs that the server has
// not executed because it does not know the script; they must be sent again with the source. With DurabilityReplica the
// pipeline ends with WAIT, which concerns everything before it on the connection.
func (w *writeQueue) sendRuns(ctx context.Context, runs []*scriptRun) (retry []*scriptRun) {
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
		// If the connection breaks, the client library sets an error even for calls that were answered before.
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
			retry = append(retry, e)
			continue
		}
		for _, c := range e.calls {
			c.finish(nil, err)
		}
	}
	return retry
}

// scriptRun is a run of the script in a pipeline: with one batch, or with several that have one action each and the
// same shard, epoch and clock.
type scriptRun struct {
	// source reports whether to send the source of the script, because the server does not know it.
	source bool
	keys   []string
	args   []any
	calls  []*scriptCall
}

// scriptRuns returns the runs for some calls. What the script reads before its first batch takes as long as a put.
// Therefore batches with a single action share a run.
func scriptRuns(calls []*scriptCall) []*scriptRun {
	// common is what the calls in a run have in common: the meta of the shard, the epoch and the clock.
	type common struct{ meta, epoch, clock any }
	var out []*scriptRun
	groups := map[common]*scriptRun{}
	for _, c := range calls {
		of := common{c.keys[0], c.args[0], c.args[2]}
		e := groups[of]
		if len(c.keys) > shardKeys+1 || e == nil {
			// The slices are clipped so that appending does not write into the arrays of the call.
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

// answer passes the reply to each call. If there is one reply for all calls, each gets that. unconfirmed is the error
// for calls that have made changes; nil if a replica has confirmed them or none must.
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

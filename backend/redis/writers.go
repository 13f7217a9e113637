package redis

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of the writers of one server.
const (
	// maxFlights are how many pipelines are on their way at once, and crowd how many
	// calls wait when there is more than one: calls that travel together cost the
	// server less.
	maxFlights = 2
	crowd      = 16
	// flightCalls and flightBytes bound a pipeline, because the server executes it
	// without serving others in between. A single call may be larger.
	flightCalls = 32
	flightBytes = 512 << 10
	// waitingCalls are how many may wait to be sent.
	waitingCalls = 1024
)

// writers send the scripts of callers that come together to one server as a pipeline:
// in one write, in their order, each answered by itself. A caller that gives up
// before its script was sent takes it back; the others notice nothing.
type writers struct {
	session *session
	on      *goredis.Client
	slots   chan struct{} // has a value for each call that waits

	mu      sync.Mutex // guards all below
	queue   []*scriptCall
	flights int
}

// scriptCall is a batch on its way, with the keys and arguments of the script apply.
type scriptCall struct {
	keys  []string
	args  []any
	size  int
	done  chan struct{}
	reply []any // these are set before done is closed
	err   error
}

func (c *scriptCall) finish(reply []any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// writers returns the writers of a server.
func (s *session) writers(on *goredis.Client) *writers {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writing[on]
	if w == nil {
		w = &writers{session: s, on: on, slots: make(chan struct{}, waitingCalls)}
		s.writing[on] = w
	}
	return w
}

// run sends a batch. If the error is a refusal, the call was not sent. The caller
// holds the session.
func (w *writers) run(ctx context.Context, c *scriptCall) ([]any, error) {
	c.done = make(chan struct{})
	if err := w.admit(ctx); err != nil {
		return nil, &refusal{err: err}
	}
	defer func() { <-w.slots }()
	w.mu.Lock()
	w.queue = append(w.queue, c)
	if w.flights == 0 || w.flights < maxFlights && len(w.queue) >= crowd {
		w.flights++
		w.session.inflight.Add(1)
		go w.fly()
	}
	w.mu.Unlock()
	select {
	case <-c.done:
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
	select {
	case <-c.done:
		return c.reply, c.err
	default:
		return nil, ctx.Err()
	}
}

// admit takes a slot for a call.
func (w *writers) admit(ctx context.Context) error {
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

// fly sends pipeline after pipeline until no call waits.
func (w *writers) fly() {
	defer w.session.inflight.Done()
	for last := 0; ; {
		w.gather(last)
		calls := w.take()
		if calls == nil {
			return
		}
		w.send(calls)
		last = len(calls)
	}
}

// gather lets the callers that the last pipeline has answered queue their next calls.
// It only yields; it waits for no timer.
func (w *writers) gather(last int) {
	for grown, seen := last > 1, 0; grown; {
		runtime.Gosched()
		w.mu.Lock()
		n := len(w.queue)
		w.mu.Unlock()
		grown, seen = n > seen && n < flightCalls, n
	}
}

// take removes the calls of a pipeline from the queue. If there are none, or few and
// another flight comes back for them, the flight has ended.
func (w *writers) take() []*scriptCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	if w.flights > 1 && len(w.queue) < crowd {
		w.flights--
		return nil
	}
	for n < len(w.queue) && n < flightCalls && (n == 0 || size+w.queue[n].size <= flightBytes) {
		size += w.queue[n].size
		n++
	}
	if n == 0 {
		w.flights--
		return nil
	}
	calls := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	return calls
}

// send sends a pipeline and answers its calls.
func (w *writers) send(calls []*scriptCall) {
	ctx, cancel := context.WithTimeout(context.Background(), w.session.core.cfg.Timeout)
	defer cancel()
	for all := scriptRuns(calls); len(all) > 0; {
		all = w.exchange(ctx, all)
	}
}

// exchange sends runs and answers their calls. It returns the runs that the server has not executed because
// it does not know the script. With DurabilityReplica the pipeline ends with WAIT, which is about everything
// before it on the connection.
func (w *writers) exchange(ctx context.Context, runs []*scriptRun) (again []*scriptRun) {
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

// scriptRun is one script of a pipeline: for one call, or for several that have the shard,
// the epoch and the clock in common.
type scriptRun struct {
	// source reports that the server does not know the script.
	source bool
	keys   []string
	args   []any
	calls  []*scriptCall
}

// scriptRuns returns the scripts that execute calls. What the script has to find out
// once costs as much as a put, so batches of one action that come together share it.
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

// answer gives each call its reply, or all of them the only one. unconfirmed is the error
// of calls that made changes.
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

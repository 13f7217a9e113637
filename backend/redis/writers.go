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
	// maxFlights are how many pipelines are on their way at once: while the server
	// works on one, the next is gathered.
	maxFlights = 2
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

// scriptCall is a call of a script.
type scriptCall struct {
	script script
	keys   []string
	args   []any
	size   int
	done   chan struct{}
	reply  []any // these are set before done is closed
	err    error
}

func (c *scriptCall) finish(reply []any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// writers are those of a server.
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

// run calls a script. If the error is a refusal, the call was not sent. The caller
// holds the session.
func (w *writers) run(ctx context.Context, c *scriptCall) ([]any, error) {
	c.done = make(chan struct{})
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, &refusal{err: ctx.Err()}
	}
	defer func() { <-w.slots }()
	w.mu.Lock()
	w.queue = append(w.queue, c)
	if w.flights < maxFlights {
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

// take removes the calls of a pipeline from the queue. If there are none, the flight
// has ended.
func (w *writers) take() []*scriptCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
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

// send sends a pipeline and answers its calls. A server that does not know a script
// has executed nothing of its call, which is sent again with the source.
func (w *writers) send(calls []*scriptCall) {
	ctx, cancel := context.WithTimeout(context.Background(), w.session.core.cfg.Timeout)
	defer cancel()
	unknown := w.exchange(ctx, calls, func(p goredis.Pipeliner, c *scriptCall) *goredis.Cmd {
		return p.EvalSha(ctx, c.script.sha, c.keys, c.args...)
	})
	unknown = w.exchange(ctx, unknown, func(p goredis.Pipeliner, c *scriptCall) *goredis.Cmd {
		return p.Eval(ctx, c.script.source, c.keys, c.args...)
	})
	for _, c := range unknown {
		c.finish(nil, fmt.Errorf("the server does not keep scripts: %w", backend.ErrUnavailable))
	}
}

// exchange sends calls, answers them, and returns those whose script is not known.
func (w *writers) exchange(ctx context.Context, calls []*scriptCall, queue func(goredis.Pipeliner, *scriptCall) *goredis.Cmd) (unknown []*scriptCall) {
	if len(calls) == 0 {
		return nil
	}
	pipe := w.on.Pipeline()
	cmds := make([]*goredis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = queue(pipe, c)
	}
	_, broken := pipe.Exec(ctx)
	for i, c := range calls {
		// If the connection breaks, the client library notes that as the error of
		// those calls, too, that were answered before.
		if reply, _ := cmds[i].Val().([]any); len(reply) > 0 {
			c.finish(reply, nil)
			continue
		}
		_, err := cmds[i].Slice()
		if err == nil {
			err = broken
		}
		if goredis.HasErrorPrefix(err, "NOSCRIPT") {
			unknown = append(unknown, c)
			continue
		}
		c.finish(nil, err)
	}
	return unknown
}

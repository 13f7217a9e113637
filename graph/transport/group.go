package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/stream"
)

// group is one execution for equal subscriptions. While it reads the state, the follower
// that is ahead makes it go on, and each of them goes at its own pace; from then on
// changes do. No goroutine of it runs while there is none.
type group struct {
	of   *groups
	sub  stream.Subscription // leads
	room *budget.Room        // for what waits for followers

	// Of whoever makes the next step: see pull and work.
	ctx    context.Context
	next   graphql.ResponseHandler
	state  stream.State
	memory *budget.Share

	cancel context.CancelFunc
	// working says whether work runs, and whether it has to look again.
	working atomic.Int32

	mu        sync.Mutex // guards all below, and what its followers say of themselves
	key       groupKey
	followers []*follower
	behind    int     // followers that are not parked
	tail      *shared // the last event, or what stands for it
	// head is before the first event as long as others may join there; late that somebody
	// has since the leader asked.
	head *shared
	late bool
	// live says that the state, if any, was told.
	live bool
	// ended says that no event follows, and err why; now that those which wait are not told.
	ended, now bool
	err        error
	place      any           // the [stream.Step.Place] of the last step
	claimed    int64         // of room
	pulling    chan struct{} // closed when the step that a follower makes is done; nil if none does
	timer      *time.Timer
}

// newGroup begins an execution in the place of that of a stream.
func newGroup(of *groups, key groupKey, s *Stream, first stream.Subscription) *group {
	g := &group{of: of, key: key, room: s.executor.memory.Events(), memory: s.executor.memory.BeginEvents(), tail: &shared{}}
	if key.at == stream.AtRest {
		g.live = true
	} else {
		g.head = g.tail
	}
	g.state.Lead = stream.Lead{First: first, Notify: g.wake, Late: g.isLate}
	common := budget.SharedFrom(s.ctx)
	common.Memory = g.memory
	ctx, cancel := context.WithCancel(stream.With(budget.WithShared(context.WithoutCancel(s.ctx), common), &g.state))
	g.cancel = cancel
	g.next, g.ctx = s.executor.exec.DispatchOperation(ctx, s.op)
	g.sub, _ = g.state.Met()
	return g
}

// step makes the leader go on. It returns what was answered, nil if nothing was. An
// answer with errors is none for all: errors have the id of a request, and what is too
// much for one may be within the allowance of another. Each gives it by itself.
func (g *group) step() (*shared, stream.Step) {
	g.memory.Reset()
	defer func() {
		if g.ctx.Err() != nil {
			g.memory.Close() // no other step follows
		}
	}()
	g.state.Take(stream.Step{})
	res := g.next(g.ctx)
	step := g.state.Step()
	if step.Event == nil {
		return nil, step
	}
	e := &shared{cursor: g.state.Pop(), number: step.Number, mark: step.Mark, place: step.Place}
	if res == nil || res.Data == nil || len(res.Errors) > 0 {
		e.event = step.Event
	} else {
		e.payload = encode(res)
	}
	return e, step
}

// wake makes the leader look for what has happened.
func (g *group) wake() {
	for {
		switch {
		case g.working.CompareAndSwap(idle, busy):
			go g.work()
			return
		case g.working.CompareAndSwap(busy, again), g.working.Load() == again:
			return
		}
	}
}

const (
	idle = iota
	busy
	again
)

func (g *group) work() {
	for {
		g.drain()
		if g.working.CompareAndSwap(busy, idle) {
			return
		}
		g.working.Store(busy)
	}
}

// Events that come together are told together, but none is kept for longer than this.
const (
	maxTogether     = 64
	maxTogetherTime = time.Millisecond
)

// errPanic is the end of a group whose execution has panicked where nothing else ends it.
var errPanic = errors.New("panic in a shared execution")

// drain tells everything that has happened.
func (g *group) drain() {
	defer func() {
		if recover() != nil {
			g.end(errPanic)
		}
	}()
	g.mu.Lock()
	live := g.live
	g.mu.Unlock()
	if !live {
		return // a follower makes the steps
	}
	var together []*shared
	var since time.Time
	for g.ctx.Err() == nil {
		e, step := g.step()
		if e != nil {
			if together = append(together, e); len(together) == 1 {
				since = time.Now()
			}
			if step.More && len(together) < maxTogether && time.Since(since) < maxTogetherTime {
				continue
			}
		}
		g.tell(together)
		together = nil
		switch {
		case e != nil:
			continue
		case step.Err != nil:
			g.end(step.Err)
		case g.ctx.Err() == nil:
			g.rest(step.Wait)
		}
		return
	}
}

// rest is after everything was told.
func (g *group) rest(wait time.Duration) {
	g.mu.Lock()
	switch {
	case g.ended || len(g.followers) == 0:
	case g.timer == nil:
		g.timer = time.AfterFunc(wait, g.wake)
	default:
		g.timer.Reset(wait)
	}
	g.mu.Unlock()
	g.of.unite(g)
}

// pull makes a group that reads the state go on, for a follower that was told everything.
func (g *group) pull(ctx context.Context) {
	g.mu.Lock()
	if g.live || g.ended {
		g.mu.Unlock()
		return
	}
	if done := g.pulling; done != nil {
		g.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return
	}
	done := make(chan struct{})
	g.pulling = done
	g.mu.Unlock()
	defer func() {
		if recover() != nil {
			g.end(errPanic)
		}
		g.mu.Lock()
		g.pulling = nil
		g.mu.Unlock()
		close(done)
	}()
	var together []*shared
	e, step := g.step()
	for bytes := 0; e != nil; e, step = g.step() {
		bytes += len(e.payload)
		if together = append(together, e); !step.More || len(together) == maxTogether || bytes > maxBatch {
			break
		}
	}
	g.mu.Lock()
	g.place = step.Place
	g.mu.Unlock()
	g.tell(together)
	switch {
	case step.Err != nil:
		g.end(step.Err)
	case step.Live:
		g.mu.Lock()
		g.live, g.head = true, nil
		g.mu.Unlock()
		g.wake()
	case e == nil && g.ctx.Err() == nil:
		g.end(errPanic) // a state that is not told has a next event
	}
}

// isLate is [stream.Lead]'s.
func (g *group) isLate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	late := g.late
	if g.late = false; !late {
		g.head = nil
	}
	return late
}

// end is the end of the group: each follower goes on by itself.
func (g *group) end(err error) {
	g.mu.Lock()
	if !g.ended {
		g.ended, g.err, g.now, g.head = true, err, g.sub.Ended(), nil
		for _, m := range g.followers {
			m.goOn(g.tail)
		}
	}
	g.mu.Unlock()
	g.close()
}

// close ends the execution: it has no followers, or no more events for them.
func (g *group) close() {
	g.of.remove(g)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop()
}

// stop ends the execution. The caller holds the group's lock.
func (g *group) stop() {
	g.ended = true
	g.cancel()
	g.memory.Close()
	if g.timer != nil {
		g.timer.Stop()
	}
}

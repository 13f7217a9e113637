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

// Bounds of what waits for those of a group that are behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
)

// shared is an event of a group. The events of a group are a list: a follower that is
// behind holds the one that it has taken last, and so those after it.
type shared struct {
	payload []byte
	cursor  string
	// event is what each answers by itself, because the answer was not one for all; nil if
	// it was.
	event any
	// number and mark are those of [stream.Step], place is where in the state it was read.
	number uint64
	mark   bool
	place  any

	// The group's lock guards the rest.
	next  *shared
	count int64 // of the events up to this one
	bytes int64 // of these
	// sent is the event as server-sent events have it.
	sent atomic.Pointer[frame]
}

// known says whether a follower that has told so many events has told this one.
func (e *shared) known(seen uint64) bool {
	return e.number < seen || e.number == seen && seen > 0 && !e.mark
}

// group is one execution for equal subscriptions. While it reads the state, the follower
// that is ahead makes it go on, and each of them goes at its own pace; from then on
// changes do. No goroutine of it runs while there is none.
type group struct {
	of   *groups
	sub  stream.Subscription // leads
	part *budget.Part        // of the memory, for what waits for followers

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
	claimed    int64         // of part
	pulling    chan struct{} // closed when the step that a follower makes is done; nil if none does
	timer      *time.Timer
}

// newGroup begins an execution in the place of that of a stream.
func newGroup(of *groups, key groupKey, s *Stream, first stream.Subscription) *group {
	g := &group{of: of, key: key, part: s.executor.memory.events(), memory: s.executor.memory.stream(), tail: &shared{}}
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

// tell adds events to the list, and gives them to followers that wait for them. It waits
// for nobody.
func (g *group) tell(events []*shared) {
	if len(events) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.sub.Ended() && g.live {
		return
	}
	before := g.tail
	for _, e := range events {
		e.count, e.bytes = g.tail.count+1, g.tail.bytes+int64(len(e.payload)+sizeofShared)
		g.tail.next, g.tail = e, e
	}
	if g.head != nil && g.tail.bytes-g.head.bytes > maxBehindBytes {
		g.head = nil
	}
	for i := 0; i < len(g.followers); i++ {
		if m := g.followers[i]; m.parked {
			m.give(before, events)
		}
	}
	g.bound()
}

// sizeofShared is roughly what an event takes beside its payload.
const sizeofShared = 200

// bound cuts off who is too far behind, and claims memory for what waits.
func (g *group) bound() {
	most := int64(0)
	for _, m := range g.followers {
		if m.parked || m.at == nil {
			continue
		}
		count, bytes := g.tail.count-m.at.count, g.tail.bytes-m.at.bytes
		if count > 1 && (bytes > maxBehindBytes || g.live && count > maxBehind) {
			m.cut()
			continue
		}
		most = max(most, bytes)
	}
	if !g.claim(most) {
		for _, m := range g.followers {
			if !m.parked && m.at != nil && g.tail.bytes-m.at.bytes > freeQueue {
				m.cut()
			}
		}
		g.claim(0)
	}
	if g.behind == 0 && g.head == nil { // nobody needs what was told
		g.tail = &shared{count: g.tail.count, bytes: g.tail.bytes, cursor: g.tail.cursor}
	}
}

// claim sets what the group takes of the memory of all queues.
func (g *group) claim(bytes int64) bool {
	more := max(bytes-freeQueue, 0) - g.claimed
	if more > 0 && !g.part.Take(more) {
		return false
	}
	if more < 0 {
		g.part.Give(-more)
	}
	g.claimed += more
	return true
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

package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// group is a shared execution of equal subscriptions. It has no goroutine while there are no
// changes.
type group struct {
	of   *Groups
	room *budget.Room

	// The fields below are used only by the goroutine that runs the current step; see readState and work.
	leader Execution
	ctx    context.Context // of the leader
	memory *budget.Share
	polled change.Polled // by the last poll, without the changes that were taken
	// executed is the number of changes of the last poll that were executed, whether or not they are published.
	executed int
	taken    *change.Change // by the last step; nil if it has found none
	err      error          // of the last step

	cancel context.CancelFunc
	turn   chan struct{} // has one element while a follower makes the steps of the snapshot
	wakes  atomic.Int64  // calls of Wake that work has not seen; work runs while there are any

	mu        sync.Mutex // guards all below, and fields of its followers
	key       groupKey
	followers []*Subscription
	behind    int    // followers that are not parked
	tail      *event // the last event, or an empty one in its place
	// head is an empty event before the first event of the snapshot, from which subscriptions can join; nil if they
	// cannot.
	head *event
	late bool // a subscription has joined since the last call of Late
	live bool // else it is reading
	// ended reports that there will be no more events, and cause is the reason. discards reports that followers that
	// are behind must not take the remaining events.
	ended, discards bool
	cause           error
	// resumePoint is the point in the snapshot at which the last page began. resumePublished is how many changes of
	// that page are published. A follower with all events goes on alone after them.
	resumePoint     *change.ResumePoint
	resumePublished int
	claimed         int64       // of room
	timer           *time.Timer // wakes the group for the next step if nothing happens
}

var _ change.Leader = (*group)(nil)

// newGroup begins a group. Its leader takes over the stream of its first follower, s. It returns nil if the leader
// cannot begin. The caller holds the lock of x.
func (x *Groups) newGroup(key groupKey, s *Subscription) *group {
	g := &group{
		of:     x,
		key:    key,
		room:   x.cfg.Memory.Events(),
		memory: x.cfg.Memory.BeginEvents(),
		tail:   &event{},
		turn:   make(chan struct{}, 1),
	}
	g.mu.Lock() // nobody makes a step before it has a leader
	defer g.mu.Unlock()
	g.live = key.at == change.AtRest
	if !g.live {
		g.head = g.tail
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	g.cancel = cancel
	g.ctx = withMemory(ctx, g.memory)
	g.leader = x.cfg.Lead(g.ctx, s.loop.execution)
	if g.leader == nil {
		g.stop()
		return nil
	}
	s.loop.follow(g.leader)
	context.AfterFunc(g.leader.Waiting(), g.Wake)
	g.add(s, g.tail)
	return g
}

// more reports whether changes of the last poll were not executed yet.
func (g *group) more() bool { return len(g.polled.Changes) > 0 }

// step makes the leader execute the next change, and returns the event; nil if there is no change. An answer with
// errors is not shared: errors have the id of a request, and the budget may suffice for only some subscriptions. Each
// follower then executes the change itself.
func (g *group) step() *event {
	g.memory.Reset()
	defer func() {
		if g.ctx.Err() != nil {
			g.memory.Close() // no other step follows
		}
	}()
	g.taken = nil
	g.err = nil
	res := g.of.cfg.Responder.Respond(g.ctx, func(ctx context.Context) *graphql.Response {
		g.take(budget.With(g.leader.Waiting(), budget.From(ctx)))
		if g.taken == nil {
			return nil
		}
		res, _ := g.leader.Answer(ctx, g.taken) // each follower gets the error when it executes the change itself
		return res
	})
	if g.taken == nil {
		return nil
	}
	e := &event{
		cursor:      g.taken.Cursor,
		number:      g.taken.Number,
		mark:        g.taken.Stored == nil,
		resumePoint: g.polled.ResumePoint,
		published:   g.executed,
	}
	g.executed++
	if res == nil || res.Data == nil || len(res.Errors) > 0 {
		own := *g.taken
		e.change = &own
	} else {
		e.payload = Encode(res)
	}
	return e
}

// take polls for the next change, without waiting.
func (g *group) take(ctx context.Context) {
	if !g.more() && !g.replaced() {
		g.polled, g.err = g.leader.Changes().Poll(ctx, g)
		g.executed = 0
	}
	g.checkRights()
	switch {
	case g.replaced():
		g.err = errReplaced
	case g.err == nil && g.more():
		g.taken = &g.polled.Changes[0]
		g.polled.Changes = g.polled.Changes[1:]
	}
}

// replaced reports whether the catalogue of the group was replaced.
func (g *group) replaced() bool { return g.leader.Waiting().Err() != nil }

// The maximum number, size and duration of changes that are executed and published together.
const (
	maxTogether      = 64
	maxTogetherBytes = 64 << 10
	maxTogetherTime  = time.Millisecond
)

// steps makes the leader execute as many changes as may be published together, and returns the events.
func (g *group) steps() (events []*event) {
	var first time.Time
	for bytes := 0; ; {
		e := g.step()
		if e == nil {
			return events
		}
		if len(events) == 0 {
			first = time.Now()
		}
		events, bytes = append(events, e), bytes+len(e.payload)
		if !g.more() || len(events) == maxTogether || bytes > maxTogetherBytes || time.Since(first) > maxTogetherTime {
			return events
		}
	}
}

// Wake implements [change.Leader]. It starts work in another goroutine, unless it is running.
func (g *group) Wake() {
	if g.wakes.Add(1) == 1 {
		go g.work()
	}
}

// work publishes changes, and does so again if Wake was called meanwhile.
func (g *group) work() {
	for {
		seen := g.wakes.Load()
		g.publishChanges()
		if g.wakes.CompareAndSwap(seen, 0) {
			return
		}
	}
}

// errBroken ends a group whose execution has panicked. It also ends a group that returns neither events nor an error
// during the snapshot.
var errBroken = errors.New("a shared execution has failed")

// recoverPanic is deferred. It ends the group if its execution panics.
func (g *group) recoverPanic() {
	if v := recover(); v != nil {
		_ = g.of.cfg.Recover(g.ctx, v) // it logs the panic; each follower gets its own execution's error
		g.end(errBroken)
	}
}

// publishChanges is the step of a live group. It executes and publishes all available changes.
func (g *group) publishChanges() {
	defer g.recoverPanic()
	g.mu.Lock()
	live := g.live
	g.mu.Unlock()
	if !live {
		return // a follower makes the steps
	}
	for g.ctx.Err() == nil {
		events := g.steps()
		g.publish(events)
		switch {
		case len(events) > 0:
			continue
		case g.err != nil:
			g.end(g.err)
		case g.ctx.Err() == nil:
			g.rest(g.polled.Wait)
		}
		return
	}
}

// rest sets the timer for the next step, after all changes were published. If there is another live group of equal
// subscriptions, it moves the followers there.
func (g *group) rest(wait time.Duration) {
	g.mu.Lock()
	switch {
	case g.ended || len(g.followers) == 0:
	case g.timer == nil:
		g.timer = time.AfterFunc(wait, g.Wake)
	default:
		g.timer.Reset(wait)
	}
	g.mu.Unlock()
	g.of.unite(g)
}

// readState is the step of a group that is reading. It executes and publishes the next part of the snapshot, in the
// goroutine of a follower that has taken all events. Other followers in need of that part wait.
func (g *group) readState(s *Subscription) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-s.ctx.Done():
		return
	}
	defer g.recoverPanic()
	g.mu.Lock()
	done := g.live || g.ended || s.at == nil || s.at.next != nil
	g.mu.Unlock()
	if done {
		return
	}
	events := g.steps()
	g.mu.Lock()
	g.resumePoint, g.resumePublished = g.polled.ResumePoint, g.executed
	g.mu.Unlock()
	g.publish(events)
	switch {
	case g.err != nil:
		g.end(g.err)
	case len(events) == 0:
		if g.ctx.Err() == nil {
			g.end(errBroken) // until the snapshot is sent, there is a next event
		}
	case !g.more() && !g.leader.Changes().SendsState():
		g.mu.Lock()
		g.live, g.head = true, nil
		g.mu.Unlock()
		g.Wake()
	}
}

// Late implements [change.Leader]. If no subscription has joined since the last call, it closes the group to others and
// returns false.
func (g *group) Late() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	late := g.late
	g.late = false
	if !late {
		g.head = nil
	}
	return late
}

// end ends the group because of an error, so that each follower goes on alone. After that, it closes the group. The
// same happens when the last follower leaves: close makes sure that no subscription can join, and calls stop, which
// ends the execution and frees its memory.
func (g *group) end(err error) {
	g.mu.Lock()
	if !g.ended {
		g.ended = true
		g.cause = err
		g.discards = g.replaced()
		for _, s := range g.followers {
			s.unpark(g.tail)
		}
	}
	g.mu.Unlock()
	g.close()
}

// close closes the group: see end.
func (g *group) close() {
	g.of.mu.Lock()
	g.of.remove(g)
	g.of.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop()
}

// stop ends the execution: see end. The caller holds the group's lock.
func (g *group) stop() {
	g.ended, g.head = true, nil
	g.enforceLimits() // frees the memory of events that nobody waits for
	g.cancel()
	g.memory.Close()
	if g.timer != nil {
		g.timer.Stop()
	}
}

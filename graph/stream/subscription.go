package stream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/internal/span"
)

// Wire writes messages to the client of a subscription. Transports implement it.
type Wire interface {
	// Frame returns the message with an event. It must not wait.
	Frame(payload []byte, cursor string) Frame
	// End sends the end of the subscription. If errs is empty, the subscription is complete.
	End(ctx context.Context, errs gqlerror.List)
	// Close is called last.
	Close()
}

// Subscription is the subscription of a client. For its states see the package comment.
type Subscription struct {
	groups    *Groups
	queue     *Queue
	wire      Wire
	operation *graphql.OperationContext
	cancel    context.CancelFunc
	group     atomic.Pointer[group] // nil while it is alone; changes under the locks of both groups

	// The fields below are set only by the goroutine that runs the subscription. The group reads two of them: ctx, and
	// loop for its execution.
	ctx    context.Context
	after  string        // the cursor from which the transport resumes
	events Events        // nil before it has begun
	loop   *Loop         // events, if it is a Loop and can therefore join a group; else nil
	memory *budget.Share // of the event that it executes by itself

	// The fields below are guarded by the lock of the group, if there is one.
	cursor string // of the last event that was taken
	slot   int    // in group.followers, -1 when it has left
	parked bool
	// leavesForRights reports that the subscription is leaving its group because its rights have changed.
	leavesForRights bool
	at              *event              // taken last; nil if it is parked or was cut off
	seen            uint64              // events of the group up to this number were sent before it joined
	resumePoint     *change.ResumePoint // where in the snapshot it goes on after it was cut off; nil after the snapshot
}

// Subscribe returns a subscription that puts its events into q. If after is not empty, the subscription resumes from
// that cursor instead of the one in the document. It begins with Run, and ends when ctx ends or Stop is called.
func (x *Groups) Subscribe(
	ctx context.Context, op *graphql.OperationContext, after string, q *Queue, w Wire,
) *Subscription {
	s := &Subscription{groups: x, queue: q, wire: w, operation: op, after: after}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Stop ends the subscription. It may be called at any time, and more than once.
func (s *Subscription) Stop() {
	s.cancel()
	if g := s.lock(); g != nil {
		if s.slot >= 0 {
			s.unpark(g.tail)
		}
		g.mu.Unlock()
	}
}

// Run sends events until the subscription ends or is parked. A parked subscription that must run again does so in
// another goroutine.
func (s *Subscription) Run() {
	parked := false
	defer func() {
		if v := recover(); v != nil {
			s.wire.End(s.ctx, s.groups.cfg.Recover(s.ctx, v))
		}
		if !parked {
			s.leave()
			s.cancel()
			s.memory.Close()
			s.wire.Close()
		}
	}()
	if s.events == nil && !s.begin() {
		return
	}
	parked = s.send()
}

// begin begins the execution. If that is not possible, it sends the errors to the client and returns false.
func (s *Subscription) begin() bool {
	s.memory = s.groups.cfg.Memory.BeginEvents()
	s.ctx = withMemory(graphql.WithOperationContext(s.ctx, s.operation), s.memory)
	events, errs := s.groups.cfg.Begin(s.ctx, s.after)
	if events == nil || len(errs) > 0 {
		s.wire.End(s.ctx, errs)
		return false
	}
	s.ctx = span.Detach(s.ctx)
	s.events = events
	s.loop, _ = events.(*Loop)
	s.pauses(true)
	return true
}

// pauses sets whether the loop pauses where the subscription may join a group.
func (s *Subscription) pauses(pauses bool) {
	if s.loop != nil {
		s.loop.pauses = pauses
	}
}

// send puts one event after another into the queue. It reports whether the subscription was parked.
func (s *Subscription) send() (parked bool) {
	for {
		sent := s.cursor
		payload, what := s.next()
		switch what {
		case isParked:
			return true
		case isOver:
			return false
		}
		f := s.wire.Frame(payload, s.cursor)
		f.Event = true
		switch err := s.queue.Put(s.ctx, nil, f); {
		case errors.Is(err, errMemory):
			errs := s.groups.cfg.Refuse(s.ctx)
			if sent != "" { // a client that resumes there gets the event again
				errs[0].Extensions["cursor"] = sent
			}
			s.wire.End(s.ctx, errs)
			return false
		case err != nil:
			return false
		}
	}
}

// progress is the result of a step of a subscription.
type progress int

const (
	hasEvent progress = iota
	isParked
	isOver
	hasMoved // to another state
)

// next returns the next event: from the subscription's own execution if it is alone, otherwise from its group.
func (s *Subscription) next() ([]byte, progress) {
	for {
		s.memory.Reset() // the event before is queued
		state := s.alone
		if s.group.Load() != nil {
			state = s.behind
		}
		if payload, what := state(); what != hasMoved {
			return payload, what
		}
	}
}

// alone executes the next event, unless the subscription joins a group.
func (s *Subscription) alone() ([]byte, progress) {
	a := s.respond(s.events.Next)
	if at := s.pausedAt(); at != change.Busy {
		if s.groups.join(s, at) {
			return nil, hasMoved
		}
		s.pauses(false) // until the next event
		a = s.respond(s.events.Next)
		s.pauses(true)
	}
	if a.Response != nil {
		s.cursor = a.Cursor
	}
	return s.answered(a)
}

// pausedAt returns the point at which the loop has paused, and resets it, because the subscription moves on.
func (s *Subscription) pausedAt() change.JoinPoint {
	if s.loop == nil {
		return change.Busy
	}
	at := s.loop.pausedAt
	s.loop.pausedAt = change.Busy
	return at
}

// behind returns the next event of the group.
func (s *Subscription) behind() ([]byte, progress) {
	e, what := s.follow()
	switch {
	case what != hasEvent:
		return nil, what
	case e.change == nil:
		return e.payload, hasEvent
	}
	return s.answered(s.respond(func(ctx context.Context) Answer { return s.loop.answerShared(ctx, e.change) }))
}

// respond calls next with the budget of an answer.
func (s *Subscription) respond(next func(context.Context) Answer) (a Answer) {
	a.Response = s.groups.cfg.Responder.Respond(s.ctx, func(ctx context.Context) *graphql.Response {
		a = next(ctx)
		return a.Response
	})
	return a
}

// answered returns the event for an answer that the subscription has executed itself. If there is no response, the
// subscription ends.
func (s *Subscription) answered(a Answer) ([]byte, progress) {
	if a.Response == nil {
		s.wire.End(s.ctx, a.Errors)
		return nil, isOver
	}
	return Encode(a.Response), hasEvent
}

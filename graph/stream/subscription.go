package stream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Wire writes to the client of one subscription; a transport implements it.
type Wire interface {
	// Frame returns the message of an event. It does not wait.
	Frame(payload []byte, cursor string) Frame
	// End tells the client that the subscription has ended: it is complete if there are no errors.
	End(ctx context.Context, errs gqlerror.List)
	// Close is called last.
	Close()
}

// Subscription is a subscription of a client. The package comment describes its states.
type Subscription struct {
	groups    *Groups
	queue     *Queue
	wire      Wire
	operation *graphql.OperationContext
	cancel    context.CancelFunc
	group     atomic.Pointer[group] // nil while it is alone; changes under the locks of both groups

	// Set only by the goroutine that runs it. Its group reads ctx and execution.
	ctx       context.Context
	handler   graphql.ResponseHandler
	state     State
	memory    *budget.Share // of the event that it executes by itself
	execution Execution     // nil before it joins a group for the first time

	// The group's lock guards the rest, if there is one.
	cursor string // of the last event that was taken
	slot   int    // in group.followers, -1 when it has left
	parked bool
	// leavesForRights means that it goes on alone because its rights have changed.
	leavesForRights bool
	at              *event              // taken last; nil if it is parked or was cut off
	seen            uint64              // events of the group up to this number were sent before it joined
	resumePoint     *change.ResumePoint // where in the state it goes on after it was cut off; nil after the state
}

// Subscribe returns a subscription whose events wait in q. It begins at the cursor after, if that is not
// empty, and runs until ctx ends or Stop is called.
func (x *Groups) Subscribe(
	ctx context.Context, op *graphql.OperationContext, after string, q *Queue, w Wire,
) *Subscription {
	s := &Subscription{groups: x, queue: q, wire: w, operation: op, state: State{After: after, shares: true}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Stop ends the subscription. It may be called again, and before and while it runs.
func (s *Subscription) Stop() {
	s.cancel()
	if g := s.lock(); g != nil {
		if s.slot >= 0 {
			s.unpark(g.tail)
		}
		g.mu.Unlock()
	}
}

// Run sends the events of the subscription until it ends or is parked. A parked subscription
// runs in another goroutine later.
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
	if s.handler == nil {
		s.memory = s.groups.cfg.Memory.BeginEvents()
		s.handler, s.ctx = s.groups.begin(s.ctx, s.operation, &s.state, s.memory)
	}
	parked = s.send()
}

// send queues event after event.
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

// next returns the next event, in the state in which the subscription is then.
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
	res := s.handler(s.ctx)
	if res == nil && s.state.shareable != nil {
		s.execution, s.state.shareable = s.state.shareable, nil
		if s.groups.join(s, s.state.at) {
			return nil, hasMoved
		}
		s.state.shares = false // until the next event
		res = s.handler(s.ctx)
		s.state.shares = true
	}
	return s.answered(res)
}

// behind takes the next event of the group.
func (s *Subscription) behind() ([]byte, progress) {
	e, what := s.follow()
	switch {
	case what != hasEvent:
		return nil, what
	case e.change == nil:
		return e.payload, hasEvent
	}
	s.state.event = e.change
	return s.answered(s.handler(s.ctx))
}

// answered returns the event of a response that the subscription executed by itself; nil is the end.
func (s *Subscription) answered(res *graphql.Response) ([]byte, progress) {
	switch {
	case res == nil:
		s.wire.End(s.ctx, s.state.Errors())
		return nil, isOver
	case res.Data == nil: // it did not begin
		s.wire.End(s.ctx, res.Errors)
		return nil, isOver
	}
	cursor := s.state.Pop()
	if s.group.Load() == nil { // else it has the cursor of the group's event
		s.cursor = cursor
	}
	return Encode(res), hasEvent
}

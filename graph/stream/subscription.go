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

// Wire is how a transport writes to the client of one subscription.
type Wire interface {
	// Frame is the message with an event. It does not wait.
	Frame(payload []byte, cursor string) Frame
	// End tells the client that the subscription has ended: it is complete if there are no errors.
	End(ctx context.Context, errs gqlerror.List)
	// Close is called last.
	Close()
}

// Subscription is one of a client. See the package for its states.
type Subscription struct {
	groups    *Groups
	queue     *Queue
	wire      Wire
	operation *graphql.OperationContext
	cancel    context.CancelFunc
	group     atomic.Pointer[group] // nil while it is alone; changes under the locks of both groups

	// Of the goroutine that runs it.
	ctx       context.Context
	handler   graphql.ResponseHandler
	state     State
	memory    *budget.Share // what its own event holds until the next
	execution Execution     // nil if it shares none

	// The group's lock guards the rest, if there is one.
	cursor string // of the last event that was taken
	slot   int    // in group.followers, -1 when it has left
	parked bool
	at     *event        // taken last; nil of one that is parked or was cut off
	seen   uint64        // of the group's events, those that it has told before it joined
	place  *change.Place // where in the state one that was cut off goes on
}

// Subscribe makes a subscription from the cursor after, if that is not empty, whose events wait
// in a queue. It runs until ctx ends or Stop is called.
func (x *Groups) Subscribe(ctx context.Context, op *graphql.OperationContext, after string, q *Queue, w Wire) *Subscription {
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

// Run sends the events of the subscription until it ends or is parked, which ends in another
// goroutine.
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

// progress is what became of a subscription that was to take its next event.
type progress int

const (
	hasEvent progress = iota
	isParked
	isOver
	isAlone
)

// next takes the next event.
func (s *Subscription) next() (payload []byte, what progress) {
	s.memory.Reset() // the event before waits no longer
	for s.group.Load() != nil {
		e, what := s.follow()
		switch {
		case what == isAlone:
		case what != hasEvent:
			return nil, what
		case e.change == nil:
			return e.payload, hasEvent
		default:
			s.state.event = e.change
			return s.answered(s.handler(s.ctx))
		}
	}
	res := s.handler(s.ctx)
	for res == nil && s.state.leaves != nil {
		s.execution, s.state.leaves = s.state.leaves, nil
		if s.groups.join(s, s.state.at) {
			return s.next()
		}
		s.state.shares = false // until the next event
		res = s.handler(s.ctx)
		s.state.shares = true
	}
	return s.answered(res)
}

// answered is the event of an answer of its own. There is none at the end.
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

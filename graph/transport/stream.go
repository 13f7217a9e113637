package transport

import (
	"context"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/stream"
)

// Event is one result of a subscription.
type Event struct {
	// Payload is the result as JSON. It is never changed: the same bytes go to many clients.
	Payload []byte
	// Cursor is where a client that has seen the event resumes; empty if nowhere.
	Cursor string
}

// Progress is what became of a call of [Stream.Next].
type Progress int

// What becomes of it.
const (
	// Told: there is an event.
	Told Progress = iota
	// Rests: the goroutine that asks is not needed until the listener is told to resume.
	Rests
	// Over: the stream has ended; Errors says why.
	Over
)

// listener is whoever hears a stream that shares its execution with others.
type listener interface {
	// deliver takes events in their order, as many as there is room for. It does not wait,
	// and uses nothing of the stream.
	deliver(events []*shared) int
	// resume begins a goroutine that asks [Stream.Next] again. It is called when that has
	// said Rests.
	resume()
}

// Stream is a running subscription. One goroutine at a time may call Next.
//
// Equal subscriptions share one execution: each begins by itself, and joins it when it
// has told everything that there was, or before it reads the state. Nothing above knows
// more of a result than its bytes.
type Stream struct {
	executor *Executor
	op       *graphql.OperationContext
	ctx      context.Context
	next     graphql.ResponseHandler
	state    stream.State
	errors   gqlerror.List
	// memory is what an event holds until it is sent.
	memory *budget.Share
	// listener hears what is shared; nil shares nothing.
	listener listener
	// cursor of the last event that it told by itself.
	cursor string
	// follows is the stream in a group; nil while it goes on by itself.
	follows atomic.Pointer[follower]
}

// Stream begins a subscription, from the cursor after if it is not empty. It runs until
// ctx ends: the caller cancels that, and closes the stream. A nil listener shares no execution, and its Next never rests.
func (o *Operation) Stream(ctx context.Context, after string, l listener) *Stream {
	s := &Stream{executor: o.executor, op: o.context, memory: o.executor.memory.BeginEvents(), listener: l}
	s.state.After = after
	s.state.Share(l != nil)
	shared := budget.SharedFrom(ctx)
	shared.Memory = s.memory
	s.next, s.ctx = o.executor.exec.DispatchOperation(stream.With(budget.WithShared(ctx, shared), &s.state), o.context)
	return s
}

// Next waits for the next event, or rests.
func (s *Stream) Next() (Event, Progress) {
	s.memory.Reset() // the event before waits no longer
	for m := s.follows.Load(); m != nil; m = s.follows.Load() {
		e, what, back := m.next(s.ctx)
		switch what {
		case isTold:
			if e.event == nil {
				return Event{Payload: e.payload, Cursor: e.cursor}, Told
			}
			// It is answered for each by itself: see [group.step].
			m.sub.(stream.Answerer).Answer(e.event)
			return s.told(s.next(s.ctx))
		case isParked:
			return Event{}, Rests
		case isGone:
			return Event{}, Over
		case isBack:
			m.sub.Resume(back)
			s.follows.Store(nil)
		}
	}
	res := s.next(s.ctx)
	for res == nil {
		sub, at := s.state.Met()
		if sub == nil {
			break
		}
		if m := s.executor.groups.join(s, sub, at); m != nil {
			s.follows.Store(m)
			return s.Next()
		}
		s.state.Share(false) // until the next event
		res = s.next(s.ctx)
		s.state.Share(true)
	}
	return s.told(res)
}

// told is the event of an answer, nil at the end.
func (s *Stream) told(res *graphql.Response) (Event, Progress) {
	switch {
	case res == nil:
		s.errors = s.state.Errors()
		return Event{}, Over
	case res.Data == nil:
		s.errors = res.Errors // it did not begin
		return Event{}, Over
	}
	s.cursor = s.state.Pop()
	return Event{Payload: encode(res), Cursor: s.cursor}, Told
}

// Errors are why the stream ended early; none after it was completed or closed.
func (s *Stream) Errors() gqlerror.List { return s.errors }

// Refuse ends the stream because an event cannot wait to be sent. Who resumes at the
// cursor gets it again.
func (s *Stream) Refuse(before string) {
	s.errors = s.executor.Present(s.ctx, gqlerror.List{overBudget(s.executor.memory)})
	if before != "" {
		s.errors[0].Extensions["cursor"] = before
	}
}

// Wake makes a stream that rests go on, so that it sees that its context has ended.
func (s *Stream) Wake() {
	if m := s.follows.Load(); m != nil {
		m.wake()
	}
}

// Close gives up what the stream holds. Next is not called any more.
func (s *Stream) Close() {
	if m := s.follows.Load(); m != nil {
		m.leave()
	}
	s.memory.Close()
}

package stream

import (
	"context"
	"errors"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/change"
)

// Key is the same for subscriptions that are told the same.
type Key [32]byte

// Execution is a running subscription to changes, as its executor shows it: it can leave what
// comes next to an equal one and follow that.
type Execution interface {
	Key() Key
	Changes() *change.Stream
	// Follow gives up the memory that is needed only to execute.
	Follow(leader Execution)
	// Resume makes it execute again after a cursor. replaced says that the leader's catalogue was.
	Resume(cursor string, replaced bool)
	// Ended reports whether nothing may be told any more but the end.
	Ended() bool
}

// State is what a subscription and its executor tell each other beside the answers: where to
// resume, the cursor of each event, and why it ended. The zero value is ready.
type State struct {
	// After is the cursor from which the transport asks to resume, like the
	// Last-Event-ID of server-sent events. It wins over the document's argument.
	After string

	// Of the goroutine that asks for answers.
	shares bool      // it may share an execution
	leaves Execution // can share one now
	at     change.Moment
	event  *change.Change // is answered next
	group  *group         // for which it executes; nil for none

	mu      sync.Mutex
	cursors []string // of events that were not taken yet
	errors  gqlerror.List
}

type stateKey struct{}

// With returns a context that carries the state.
func With(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, stateKey{}, s)
}

// From returns the state of the subscription, or one that nobody reads.
func From(ctx context.Context) *State {
	if s, ok := ctx.Value(stateKey{}).(*State); ok {
		return s
	}
	return new(State)
}

// Resume returns the cursor to resume from: the transport's, else the document's.
func (s *State) Resume(after *string) *string {
	if s.After == "" {
		return after
	}
	return &s.After
}

// Push notes the cursor of the next event. Events and cursors come in the same
// order; the resolver calls it before it hands the event on. An event without a
// place has "".
func (s *State) Push(cursor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursors = append(s.cursors, cursor)
}

// Pop takes the cursor of the event that was answered.
func (s *State) Pop() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cursors) == 0 {
		return ""
	}
	first := s.cursors[0]
	s.cursors = append(s.cursors[:0], s.cursors[1:]...)
	return first
}

// End says why the stream ends before it is complete, in the words that the
// client reads. The resolver calls it before it closes its channel.
func (s *State) End(errs ...*gqlerror.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, errs...)
}

// Errors are why the stream ended; none if it is complete.
func (s *State) Errors() gqlerror.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors
}

// Leaves reports whether the execution need not go on by itself now: its subscription joins a
// group. There is no answer then.
func (s *State) Leaves(e Execution) bool {
	if !s.shares {
		return false
	}
	s.at = e.Changes().Moment()
	if s.at == change.Busy {
		return false
	}
	s.leaves = e
	return true
}

// Event is one that the execution answers next although it has not taken it; nil for none.
func (s *State) Event() (c *change.Change) {
	c, s.event = s.event, nil
	return c
}

// First is the execution in whose place another one begins for a group; nil for none.
func (s *State) First() Execution {
	if s.group == nil {
		return nil
	}
	return s.group.first
}

// Lead notes the execution of a group, of which nothing may be told after ctx ends.
func (s *State) Lead(ctx context.Context, e Execution) {
	s.group.leader = e
	context.AfterFunc(ctx, s.group.Wake)
}

// errReplaced ends a group whose catalogue is not served any more.
var errReplaced = errors.New("the catalogue was replaced")

// Take returns the next change for the execution of a group, nil if there is none now.
func (s *State) Take(ctx context.Context) *change.Change {
	g := s.group
	if !g.more() && !g.leader.Ended() {
		g.polled, g.err = g.leader.Changes().Poll(ctx, g)
	}
	switch {
	case g.leader.Ended():
		g.err = errReplaced
	case g.err == nil && g.more():
		g.taken, g.polled.Changes = &g.polled.Changes[0], g.polled.Changes[1:]
		s.Push(g.taken.Cursor)
		return g.taken
	}
	return nil
}

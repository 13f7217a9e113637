package stream

import (
	"context"
	"errors"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/change"
)

// ShareKey is equal for subscriptions that get equal events.
type ShareKey [32]byte

// Execution is a running subscription to changes. It can stop executing and follow an equal one.
type Execution interface {
	Key() ShareKey
	Changes() *change.Stream
	// Follow frees the memory that only executing needs.
	Follow(leader Execution)
	// Resume makes it execute again from a cursor on. replaced reports that the leader's catalogue
	// was replaced.
	Resume(cursor string, replaced bool)
	// Ended reports whether only its end may still be sent.
	Ended() bool
}

// State passes facts between a subscription and its executor beside the answers: where to
// resume, the cursor of each event, and why it ended. The zero value is ready.
type State struct {
	// After is the cursor from which the transport resumes, like the Last-Event-ID of
	// server-sent events. It takes precedence over the argument in the document.
	After string

	// Used only by the goroutine that asks for answers.
	shares    bool             // the subscription may share an execution
	shareable Execution        // its execution, which has stopped to be shared; nil if it has not
	at        change.JoinPoint // at which shareable has stopped
	event     *change.Change   // the next one to answer
	group     *group           // of whose leader this is the state; nil for the state of a subscription

	mu      sync.Mutex // guards all below
	cursors []string   // of answered events whose cursors were not taken yet
	errors  gqlerror.List
}

type stateKey struct{}

// With returns a context that carries the state.
func With(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, stateKey{}, s)
}

// From returns the state of the subscription, or an unused one.
func From(ctx context.Context) *State {
	if s, ok := ctx.Value(stateKey{}).(*State); ok {
		return s
	}
	return new(State)
}

// Resume returns the cursor to resume from: After, or else the argument of the document.
func (s *State) Resume(after *string) *string {
	if s.After == "" {
		return after
	}
	return &s.After
}

// Push notes the cursor of the next event, "" for none. The resolver calls it before it returns
// the event.
func (s *State) Push(cursor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursors = append(s.cursors, cursor)
}

// Pop removes and returns the cursor of the event that was answered.
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

// End notes the errors with which the stream ends before it is complete, as the client reads them.
func (s *State) End(errs ...*gqlerror.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, errs...)
}

// Errors returns the errors with which the stream ended, none if it is complete.
func (s *State) Errors() gqlerror.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors
}

// CanShare reports whether the execution is at a moment at which its subscription can join a group. Then it
// stops, without another answer.
func (s *State) CanShare(e Execution) bool {
	if !s.shares {
		return false
	}
	s.at = e.Changes().JoinPoint()
	if s.at == change.Busy {
		return false
	}
	s.shareable = e
	return true
}

// Event returns a change that the execution answers next although it did not take it; nil for none.
func (s *State) Event() (c *change.Change) {
	c, s.event = s.event, nil
	return c
}

// First returns the execution that the leader of a group replaces; nil for none.
func (s *State) First() Execution {
	if s.group == nil {
		return nil
	}
	return s.group.first
}

// Lead makes e the execution of the group, which ends when ctx does.
func (s *State) Lead(ctx context.Context, e Execution) {
	s.group.leader = e
	context.AfterFunc(ctx, s.group.Wake)
}

// errReplaced ends a group whose catalogue is no longer served.
var errReplaced = errors.New("the catalogue was replaced")

// Take returns the next change for the execution of a group, nil if there is none now.
func (s *State) Take(ctx context.Context) *change.Change {
	g := s.group
	if !g.more() && !g.leader.Ended() {
		g.polled, g.err = g.leader.Changes().Poll(ctx, g)
		g.published = 0
	}
	g.checkRights()
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

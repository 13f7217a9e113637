// Package stream holds what the transport and the executor of one subscription
// tell each other beside the events: where to resume, the cursor of each event,
// and why the stream ended.
package stream

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// State of one subscription. The zero value is ready; all methods may be called
// on nil, where they do nothing.
type State struct {
	// After is the cursor from which the transport asks to resume, like the
	// Last-Event-ID of server-sent events. It wins over the document's argument.
	After string
	// Lead is set for an execution that others share.
	Lead Lead

	// Of the goroutine that asks for answers.
	shares bool
	met    Subscription
	at     Moment
	step   Step

	mu      sync.Mutex
	cursors []string // of events that the transport has not taken
	errors  gqlerror.List
}

type stateKey struct{}

// With returns a context that carries the state.
func With(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, stateKey{}, s)
}

// From returns the state of the subscription, nil where there is none.
func From(ctx context.Context) *State {
	s, _ := ctx.Value(stateKey{}).(*State)
	return s
}

// Resume returns the cursor to resume from: the transport's, else that of the document.
func (s *State) Resume(after *string) *string {
	if s == nil || s.After == "" {
		return after
	}
	return &s.After
}

// Push notes the cursor of the next event. Events and cursors come in the same
// order; the resolver calls it before it hands the event on. An event without a
// place has "".
func (s *State) Push(cursor string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursors = append(s.cursors, cursor)
}

// Pop takes the cursor of the event that was answered.
func (s *State) Pop() string {
	if s == nil {
		return ""
	}
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
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, errs...)
}

// Errors are why the stream ended; none if it is complete.
func (s *State) Errors() gqlerror.List {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors
}

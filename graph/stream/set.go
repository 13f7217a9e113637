package stream

import "sync"

// Set is a set of subscriptions that can be ended together, for example all subscriptions to one catalogue. All methods
// are safe for concurrent use.
type Set struct {
	mu    sync.Mutex // guards all below
	ended bool
	open  map[*member]struct{}
}

// member is a subscription, or an execution that several subscriptions share.
type member struct {
	end    func()
	shared bool
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{open: map[*member]struct{}{}} }

// Join adds a subscription. end is called by End, or by Join if the set has already ended. The caller must call leave
// when the subscription ends by itself; more calls have no effect. shared marks a shared execution, which Len does not
// count.
func (s *Set) Join(end func(), shared bool) (leave func()) {
	m := &member{end, shared}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.open[m] = struct{}{}
	}
	s.mu.Unlock()
	if ended {
		end()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, m)
	}
}

// End ends all subscriptions, including those that join later.
func (s *Set) End() {
	s.mu.Lock()
	open := s.open
	s.ended, s.open = true, nil
	s.mu.Unlock()
	for m := range open {
		m.end()
	}
}

// Len returns the number of subscriptions in the set.
func (s *Set) Len() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.open {
		if !m.shared {
			n++
		}
	}
	return n
}

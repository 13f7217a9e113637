package stream

import "sync"

// Set is subscriptions that end together, as all of one catalogue do. All methods
// are safe for concurrent use, and may be called on nil, which never ends.
type Set struct {
	mu    sync.Mutex // guards all below
	ended bool
	open  map[*member]struct{}
}

// member is a subscription of a set, or an execution that several of them share.
type member struct {
	end    func()
	shared bool
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{open: map[*member]struct{}{}} }

// Join calls end once the set ends, at once if it has ended. The subscription leaves
// when it ends by itself; leaving again does nothing. An execution that others share is not counted.
func (s *Set) Join(end func(), shared bool) (leave func()) {
	if s == nil {
		return func() {}
	}
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

// End ends all subscriptions, and those that join later.
func (s *Set) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	open := s.open
	s.ended, s.open = true, nil
	s.mu.Unlock()
	for m := range open {
		m.end()
	}
}

// Len is how many subscriptions have joined and neither left nor been ended.
func (s *Set) Len() (n int) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.open {
		if !m.shared {
			n++
		}
	}
	return n
}

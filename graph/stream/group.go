package stream

import "sync"

// Group is streams that end together, like those of one catalogue. All methods
// are safe for concurrent use, and may be called on nil, which never ends.
type Group struct {
	mu    sync.Mutex
	ended bool
	open  map[*member]struct{}
}

// member is one stream of a group.
type member struct{ end func() }

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{open: map[*member]struct{}{}} }

// Join calls end once the group ends, at once if it has ended. The stream leaves
// when it ends by itself; leaving again does nothing.
func (g *Group) Join(end func()) (leave func()) {
	if g == nil {
		return func() {}
	}
	m := &member{end: end}
	g.mu.Lock()
	ended := g.ended
	if !ended {
		g.open[m] = struct{}{}
	}
	g.mu.Unlock()
	if ended {
		end()
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, m)
	}
}

// End ends all streams, and those that join later.
func (g *Group) End() {
	if g == nil {
		return
	}
	g.mu.Lock()
	open := g.open
	g.ended, g.open = true, nil
	g.mu.Unlock()
	for m := range open {
		m.end()
	}
}

// Len is how many streams have joined and neither left nor been ended.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

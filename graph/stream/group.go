package stream

import "sync"

// Group is streams that end together, like those of one catalogue. All methods
// are safe for concurrent use, and may be called on nil, which never ends.
type Group struct {
	mu    sync.Mutex
	ended bool
	open  map[*member]struct{}
	// shared counts those of open that are no streams of their own.
	shared int
}

// member is one stream of a group, or what several of them share.
type member struct {
	end    func()
	shared bool
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{open: map[*member]struct{}{}} }

// Join calls end once the group ends, at once if it has ended. The stream leaves
// when it ends by itself; leaving again does nothing.
func (g *Group) Join(end func()) (leave func()) { return g.join(&member{end: end}) }

// JoinShared is Join of what several streams of the group share, which is none itself.
func (g *Group) JoinShared(end func()) (leave func()) {
	return g.join(&member{end: end, shared: true})
}

func (g *Group) join(m *member) (leave func()) {
	if g == nil {
		return func() {}
	}
	end := m.end
	g.mu.Lock()
	ended := g.ended
	if !ended {
		g.open[m] = struct{}{}
		g.count(m, 1)
	}
	g.mu.Unlock()
	if ended {
		end()
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if _, ok := g.open[m]; ok {
			delete(g.open, m)
			g.count(m, -1)
		}
	}
}

// count notes that a member came or left. The caller holds mu.
func (g *Group) count(m *member, n int) {
	if m.shared {
		g.shared += n
	}
}

// End ends all streams, and those that join later.
func (g *Group) End() {
	if g == nil {
		return
	}
	g.mu.Lock()
	open := g.open
	g.ended, g.open, g.shared = true, nil, 0
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
	return len(g.open) - g.shared
}

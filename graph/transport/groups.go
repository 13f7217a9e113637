package transport

import (
	"sync"

	"github.com/sluicegw/sluice/graph/stream"
)

// groupKey tells groups apart: what is told, and from which moment on.
type groupKey struct {
	stream.Key
	at stream.Moment
}

// groups are the executions that others can join. There may be more: those that read the
// state and that nobody can join any more, until their followers are told all of it and
// join the one that is live.
type groups struct {
	mu   sync.Mutex // taken before that of a group
	open map[groupKey]*group
}

// join makes a stream that is at some moment a follower of the group that goes on from
// there, and begins one if there is none. It returns nil if there is a gap between them.
func (x *groups) join(s *Stream, sub stream.Subscription, at stream.Moment) *follower {
	key := groupKey{sub.Key(), at}
	m := &follower{sub: sub, listener: s.listener, cursor: s.cursor}
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.open[key]; g != nil {
		if joined, open := g.join(m, at); open {
			if !joined {
				return nil
			}
			return m
		}
	}
	g := newGroup(x, key, s, sub)
	m.at = g.tail
	g.add(m)
	x.open[key] = g
	if g.live {
		g.wake() // it has to be notified from now on
	}
	return m
}

// join adds a follower. open is false if nobody can join the group any more.
func (g *group) join(m *follower, at stream.Moment) (joined, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.at = g.tail
	if at != stream.AtRest {
		m.at = g.head
	}
	if g.ended || m.at == nil {
		return false, false
	}
	if m.seen, joined = m.sub.Join(g.sub, at); joined {
		g.late = at != stream.AtRest
		g.add(m)
	}
	return joined, true
}

// remove forgets a group that ends.
func (x *groups) remove(g *group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open[g.key] == g {
		delete(x.open, g.key)
	}
}

// unite gives the followers of a group that has told the state to the one that is live, if
// there is one and no gap between them; else this one is it. Followers that are behind follow
// later.
func (x *groups) unite(g *group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := groupKey{g.key.Key, stream.AtRest}
	main := x.open[key]
	if main == g {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	if main == nil {
		if x.open[g.key] == g {
			delete(x.open, g.key)
		}
		g.key, x.open[key] = key, g
		return
	}
	main.mu.Lock()
	defer main.mu.Unlock()
	if main.ended || g.behind == len(g.followers) {
		return
	}
	seen, ok := g.sub.Level(main.sub)
	if !ok {
		return
	}
	for i := len(g.followers) - 1; i >= 0; i-- {
		if m := g.followers[i]; m.parked {
			g.take(m)
			m.seen = seen
			main.add(m)
		}
	}
	if len(g.followers) == 0 {
		if x.open[g.key] == g {
			delete(x.open, g.key)
		}
		g.stop()
	}
}

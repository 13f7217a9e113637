package transport

import (
	"context"
	"sync/atomic"

	"github.com/sluicegw/sluice/graph/stream"
)

// follower is a stream in a group. It is parked while it was told everything: then the
// group gives events to its listener. Else the listener's goroutine takes them.
type follower struct {
	in       atomic.Pointer[group] // changes under the locks of both groups
	sub      stream.Subscription
	listener listener

	// The group's lock guards the rest.
	slot   int // in group.followers, -1 when it has left
	parked bool
	at     *shared // taken last; nil of one that is parked or was cut off
	seen   uint64  // of the group's events, those that it has told before it joined
	cursor string  // of the last event that was taken
	// lost is why it was cut off.
	lost *stream.Return
}

// What becomes of a call of next.
type whatNext int

const (
	isTold whatNext = iota
	isParked
	isGone // its context has ended
	isBack // it goes on by itself
)

// lock locks the group that the follower is in.
func (m *follower) lock() *group {
	for {
		g := m.in.Load()
		g.mu.Lock()
		if m.in.Load() == g {
			return g
		}
		g.mu.Unlock()
	}
}

// next takes the next event. Where there is none, it parks the follower.
func (m *follower) next(ctx context.Context) (e *shared, what whatNext, back stream.Return) {
	for {
		g := m.lock()
		switch {
		case ctx.Err() != nil:
			g.mu.Unlock()
			return nil, isGone, back
		case m.lost != nil:
			back = *m.lost
			g.mu.Unlock()
			m.leave()
			return nil, isBack, back
		case m.sub.Ended(): // it says so by itself
			back = m.back(nil)
			g.mu.Unlock()
			m.leave()
			return nil, isBack, back
		case m.at.next != nil && !g.now:
			e = m.at.next
			m.at = e
			if known := e.known(m.seen); known {
				g.mu.Unlock()
				continue
			}
			m.cursor = e.cursor
			g.mu.Unlock()
			return e, isTold, back
		case g.ended:
			back = m.back(g.err)
			g.mu.Unlock()
			m.leave()
			return nil, isBack, back
		case g.live:
			m.parked, m.at = true, nil
			g.behind--
			g.bound()
			if g.key.at != stream.AtRest {
				g.wake() // it may unite with another
			}
			g.mu.Unlock()
			return nil, isParked, back
		}
		g.mu.Unlock()
		stop := context.AfterFunc(ctx, m.leave) // which ends the step if nobody else waits for it
		g.pull(ctx)
		stop()
	}
}

// back is where the follower goes on by itself. The caller holds the group's lock.
func (m *follower) back(err error) stream.Return {
	out := stream.Return{Cursor: m.cursor, Err: err}
	if m.at != nil && m.at.next != nil {
		out.Place = m.at.next.place
	} else if g := m.in.Load(); !g.live {
		out.Place = g.place
	}
	return out
}

// cut cuts off a follower that is too far behind. The caller holds the group's lock.
func (m *follower) cut() {
	back := m.back(nil)
	back.Lagged = true
	m.lost, m.at = &back, nil
}

// give gives new events to a follower that is parked, and wakes it if it does not take all.
// The caller holds the group's lock.
func (m *follower) give(before *shared, events []*shared) {
	for len(events) > 0 && events[0].known(m.seen) {
		before, events = events[0], events[1:]
	}
	n := 0
	for n < len(events) && events[n].event == nil {
		n++
	}
	if n > 0 {
		n = m.listener.deliver(events[:n])
	}
	if n > 0 {
		before = events[n-1]
		m.cursor = before.cursor
	}
	if n < len(events) {
		m.goOn(before)
	}
}

// goOn makes a follower that is parked take what comes after an event. The caller holds the
// group's lock.
func (m *follower) goOn(at *shared) {
	if m.parked {
		m.parked, m.at = false, at
		m.in.Load().behind++
		m.listener.resume()
	}
}

// wake makes the goroutine of a follower look whether its context has ended.
func (m *follower) wake() {
	g := m.lock()
	defer g.mu.Unlock()
	if m.slot >= 0 {
		m.goOn(g.tail)
	}
}

// leave takes the follower out of its group, and ends one without followers.
func (m *follower) leave() {
	g := m.lock()
	if m.slot >= 0 {
		g.take(m)
		g.bound()
	}
	empty := len(g.followers) == 0
	g.ended = g.ended || empty
	g.mu.Unlock()
	if empty {
		g.close()
	}
}

// add adds a follower. The caller holds the group's lock.
func (g *group) add(m *follower) {
	m.in.Store(g)
	m.slot = len(g.followers)
	g.followers = append(g.followers, m)
	if !m.parked {
		g.behind++
	}
}

// take takes a follower out. The caller holds the group's lock.
func (g *group) take(m *follower) {
	last := len(g.followers) - 1
	g.followers[m.slot] = g.followers[last]
	g.followers[m.slot].slot = m.slot
	g.followers[last] = nil
	g.followers, m.slot = g.followers[:last], -1
	if !m.parked {
		g.behind--
	}
	m.at = nil
}

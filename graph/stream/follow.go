package stream

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend/service/change"
)

// lock locks the group of the subscription and returns it; nil if the subscription has no group.
func (s *Subscription) lock() *group {
	for {
		g := s.group.Load()
		if g == nil {
			return nil
		}
		g.mu.Lock()
		if s.group.Load() == g {
			return g
		}
		g.mu.Unlock()
	}
}

// follow returns the next event of the group. If there is none, it parks the subscription, or makes the group read the
// next part of the snapshot.
func (s *Subscription) follow() (*event, progress) {
	for {
		g := s.lock()
		switch {
		case s.ctx.Err() != nil:
			g.mu.Unlock()
			return nil, isOver
		case s.at == nil, s.loop.ended(), g.ended && (g.discards || s.at.next == nil):
			s.goAlone(g)
			return nil, hasMoved
		case s.at.next != nil:
			e := s.at.next
			s.at = e
			sent := e.sentBefore(s.seen)
			if !sent {
				s.cursor = e.cursor
			}
			g.mu.Unlock()
			if !sent {
				return e, hasEvent
			}
		case g.live:
			s.parked, s.at = true, nil
			g.behind--
			g.enforceLimits()
			if g.key.at != change.AtRest {
				g.Wake() // it may unite with another
			}
			g.mu.Unlock()
			return nil, isParked
		default:
			g.mu.Unlock()
			stop := context.AfterFunc(s.ctx, s.leave) // ends the step if no other follower waits for it
			g.readState(s)
			stop()
		}
	}
}

// goAlone makes the subscription continue by itself from its present position. The caller holds the group's lock;
// goAlone releases it.
func (s *Subscription) goAlone(g *group) {
	if s.leavesForRights {
		s.leavesForRights = false
		g.mu.Unlock()
		s.leave()
		s.group.Store(nil)
		s.loop.execution.Changes().LeaveGroup(s.cursor)
		s.loop.resume(s.cursor, false)
		return
	}
	changes, err := s.loop.execution.Changes(), g.cause
	switch {
	case s.at != nil:
		s.resumePoint = s.nextResumePoint(g)
	case s.resumePoint == nil: // it was cut off
		err = changes.Lagged(s.cursor)
	default:
		err = nil
	}
	g.mu.Unlock()
	s.leave()
	s.group.Store(nil)
	replaced := errors.Is(err, errReplaced)
	if !replaced {
		changes.Resume(s.resumePoint, err)
	}
	s.loop.resume(s.cursor, replaced)
}

// nextResumePoint returns the point in the snapshot of the event that the subscription takes next; nil after the
// snapshot. The caller holds the group's lock.
func (s *Subscription) nextResumePoint(g *group) *change.ResumePoint {
	place, published := g.resumePoint, g.resumePublished
	switch {
	case s.at.next != nil:
		place, published = s.at.next.resumePoint, s.at.next.published
	case g.live:
		return nil
	}
	if place == nil {
		return nil
	}
	return place.After(published)
}

// cutOff marks a follower that is too far behind: it takes no more events. The caller holds the group's lock.
func (s *Subscription) cutOff() {
	s.resumePoint, s.at = s.nextResumePoint(s.group.Load()), nil
}

// checkRights makes followers whose rights have changed leave the group. It is called before a change is published. The
// rights of the group do not change.
func (g *group) checkRights() {
	leader := g.leader.Changes()
	if !leader.Stale() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	keeps := leader.RefreshRights()
	for _, s := range g.followers {
		if !keeps(s.loop.execution.Changes()) {
			s.leaveForRights(g)
		}
	}
}

// leaveForRights makes a follower continue by itself. A parked follower continues after all published events. Another
// one continues after the last event that it has taken; published events after that are not taken. The caller holds the
// group's lock.
func (s *Subscription) leaveForRights(g *group) {
	s.leavesForRights = true
	switch {
	case s.parked:
		if !g.more() {
			s.cursor = g.leader.Changes().Position()
		}
		s.unpark(nil)
	default:
		s.at, s.resumePoint = nil, nil
		if !g.live {
			s.cursor = ""
		}
	}
}

// deliver puts new events into the queue of a parked follower. If there is no room for an event, the follower is behind
// from that event on. before is the event before the new ones. The caller holds the group's lock.
func (s *Subscription) deliver(before *event, events []*event) {
	for len(events) > 0 && events[0].sentBefore(s.seen) {
		before, events = events[0], events[1:]
	}
	n := s.queue.deliver(s.ctx, events, s.wire)
	if n > 0 {
		before = events[n-1]
		s.cursor = before.cursor
	}
	if n < len(events) {
		s.unpark(before)
	}
}

// unpark starts a goroutine for a parked follower, which takes the events after at. The caller holds the group's lock.
func (s *Subscription) unpark(at *event) {
	if s.parked {
		s.parked, s.at = false, at
		s.group.Load().behind++
		go s.Run()
	}
}

// leave removes the subscription from its group. If it was the last follower, the group ends.
func (s *Subscription) leave() {
	g := s.lock()
	if g == nil {
		return
	}
	if s.slot >= 0 {
		g.remove(s)
		g.enforceLimits()
	}
	empty := len(g.followers) == 0
	g.ended = g.ended || empty
	g.mu.Unlock()
	if empty {
		g.close()
	}
}

// add adds a follower. at is the last event that it has taken; nil if it is parked. The caller holds the group's lock.
func (g *group) add(s *Subscription, at *event) {
	s.group.Store(g)
	s.at, s.slot = at, len(g.followers)
	g.followers = append(g.followers, s)
	if !s.parked {
		g.behind++
	}
}

// remove removes a follower. The caller holds the group's lock.
func (g *group) remove(s *Subscription) {
	last := len(g.followers) - 1
	g.followers[s.slot] = g.followers[last]
	g.followers[s.slot].slot = s.slot
	g.followers[last] = nil
	g.followers, s.slot = g.followers[:last], -1
	if !s.parked {
		g.behind--
	}
	s.at = nil
}

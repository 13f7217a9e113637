package stream

import "github.com/sluicegw/sluice/backend/service/change"

// Bounds of the events that wait for one follower that is behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
	// maxJoinBytes is up to how much of the state others may join.
	maxJoinBytes = 1 << 20
)

// sizeofEvent is roughly the bytes of an event besides its payload.
const sizeofEvent = 320

// event is an event of a group. The events of a group are a linked list: a follower that is behind
// points to the one it took last, and so keeps those after it.
type event struct {
	payload []byte
	cursor  string
	// change is for each follower to execute by itself, because the answer cannot be shared;
	// nil if it can.
	change *change.Change
	// number counts the events; a mark, like IN_SYNC, has the number of the event before it.
	number uint64
	mark   bool
	// resumePoint is the place in the state of the page that it belongs to; nil after the state. published is the
	// number of changes of that page before it.
	resumePoint *change.ResumePoint
	published   int

	// The group's lock guards the rest.
	next  *event
	count int64 // of events up to this one
	bytes int64 // of events up to this one
}

// sentBefore reports whether a subscription that has sent the events up to number seen has sent this one.
func (e *event) sentBefore(seen uint64) bool {
	return e.number < seen || e.number == seen && seen > 0 && !e.mark
}

// publish adds events to the list and puts them into the queues of parked followers, without
// waiting.
func (g *group) publish(events []*event) {
	if len(events) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.replaced() && g.live {
		return
	}
	before := g.tail
	for _, e := range events {
		e.count, e.bytes = g.tail.count+1, g.tail.bytes+int64(len(e.payload)+sizeofEvent)
		g.tail.next, g.tail = e, e
	}
	if g.head != nil && g.tail.bytes-g.head.bytes > maxJoinBytes {
		g.head = nil
	}
	for _, s := range g.followers {
		if s.parked {
			s.deliver(before, events)
		}
	}
	g.enforceLimits()
}

// enforceLimits cuts off followers that are too far behind, and claims memory for the events that wait for the
// one that is farthest behind, or for subscriptions that may still join. If there is no memory, nobody joins
// any more; if there is still none, all that are behind are cut off. The caller holds the group's lock.
func (g *group) enforceLimits() {
	most := int64(0)
	for _, s := range g.followers {
		if s.parked || s.at == nil {
			continue
		}
		count, bytes := g.tail.count-s.at.count, g.tail.bytes-s.at.bytes
		if count > 1 && (bytes > maxBehindBytes || g.live && count > maxBehind) {
			s.cutOff()
			continue
		}
		most = max(most, bytes)
	}
	held := most
	if g.head != nil {
		held = max(held, g.tail.bytes-g.head.bytes)
	}
	if !g.claim(held) {
		g.head = nil // no other subscription joins
	}
	if g.head == nil && !g.claim(most) {
		for _, s := range g.followers {
			if !s.parked && s.at != nil && g.tail.bytes-s.at.bytes > freeQueue {
				s.cutOff()
			}
		}
		g.claim(0)
	}
	if g.behind == 0 && g.head == nil { // the list is not needed
		g.tail = &event{count: g.tail.count, bytes: g.tail.bytes, cursor: g.tail.cursor}
	}
}

// claim sets how much of the memory of all queues the group takes, beyond its free part. It reports false, and
// takes no more, if there is not enough.
func (g *group) claim(bytes int64) bool {
	more := max(bytes-freeQueue, 0) - g.claimed
	if more > 0 && !g.room.Take(more) {
		return false
	}
	if more < 0 {
		g.room.Give(-more)
	}
	g.claimed += more
	return true
}

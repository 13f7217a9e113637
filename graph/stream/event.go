package stream

import "github.com/sluicegw/sluice/backend/service/change"

// Bounds of the events that wait for one follower that is behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
	// maxJoinBytes is the number of published bytes of the snapshot after which no
	// follower may join any more.
	maxJoinBytes = 1 << 20
)

// sizeofEvent is the approximate size of an event without its payload, in bytes.
const sizeofEvent = 320

// event is an event of a group. The events form a linked list. A follower that is behind points to
// the event that it took last, and thereby keeps the later ones in memory.
type event struct {
	payload []byte
	cursor  string
	// change is set if the answer cannot be shared: each follower executes it by itself.
	change *change.Change
	// number counts the events. A mark, such as IN_SYNC, has the number of the event before
	// it.
	number uint64
	mark   bool
	// resumePoint is the place in the snapshot of the event's page; nil after the snapshot. published is
	// the number of changes of that page before the event.
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

// publish adds events to the list and to the queues of parked followers. It does not wait.
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

// enforceLimits cuts off followers that are too far behind. It claims memory for the events that
// the slowest follower has not taken yet, or that subscriptions may still join at. If there is not
// enough, it first closes the group for new followers, and then cuts off all followers that are
// behind. The caller holds the group's lock.
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

// claim sets the amount of memory that the group takes of the memory of all queues, beyond its free
// part. If there is not enough, it changes nothing and returns false.
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

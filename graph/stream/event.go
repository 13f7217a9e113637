package stream

import "github.com/sluicegw/sluice/backend/service/change"

// The maximum number and size of the events that wait for a follower that is behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
	// maxJoinBytes is the number of bytes of the snapshot after which subscriptions can no longer join.
	maxJoinBytes = 1 << 20
)

// sizeofEvent is the approximate size of an event without its payload, in bytes.
const sizeofEvent = 320

// event is an event of a group. The events are a linked list. A follower that is behind points to the last event that
// it has taken, and so keeps the later events in memory.
type event struct {
	payload []byte
	cursor  string
	// change is set if the answer cannot be shared. Each follower then executes the change itself.
	change *change.Change
	// number counts the changes. A mark, such as IN_SYNC, has the number of the change before it.
	number uint64
	mark   bool
	// resumePoint is the point in the snapshot at which the event's page begins; nil after the snapshot. published is
	// the number of changes of that page before this event.
	resumePoint *change.ResumePoint
	published   int

	// The fields below are guarded by the lock of the group.
	next  *event
	count int64 // of events up to this one
	bytes int64 // of events up to this one
}

// sentBefore reports whether a subscription has already sent the event. seen is the number of the last change that it
// had sent before it joined.
func (e *event) sentBefore(seen uint64) bool {
	return e.number < seen || e.number == seen && seen > 0 && !e.mark
}

// publish appends events to the list, and puts them into the queues of parked followers. It does not wait.
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

// enforceLimits cuts off followers that are too far behind. It claims memory for the events that the slowest follower
// has not taken yet, or from which subscriptions can still join. If there is not enough memory, it first closes the
// group to new followers, and then cuts off all followers that are behind. The caller holds the group's lock.
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

// claim sets how many bytes the group takes of the memory that all queues share; the first freeQueue bytes are free. If
// there is not enough memory, it changes nothing and returns false.
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

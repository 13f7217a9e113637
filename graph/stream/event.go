package stream

import "github.com/sluicegw/sluice/backend/service/change"

// Bounds of what waits for the followers of a group that are behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
	// maxJoinBytes is how much of the state others may join behind.
	maxJoinBytes = 1 << 20
)

// sizeofEvent is roughly what an event takes beside its payload.
const sizeofEvent = 200

// event is one of a group. The events of a group are a list: a follower that is
// behind holds the one that it has taken last, and so those after it.
type event struct {
	payload []byte
	cursor  string
	// change is what each follower executes by itself, because the answer was not one for all;
	// nil if it was.
	change *change.Change
	// number counts the events; a mark has that of the event before it.
	number uint64
	mark   bool
	place  *change.Place // where in the state it was read; nil behind the state

	// The group's lock guards the rest.
	next  *event
	count int64 // of the events up to this one
	bytes int64 // of these
}

// known reports whether a subscription that has sent the events up to a number has sent this one.
func (e *event) known(seen uint64) bool {
	return e.number < seen || e.number == seen && seen > 0 && !e.mark
}

// tell adds events to the list and puts them into the queues of parked followers. It waits
// for nobody.
func (g *group) tell(events []*event) {
	if len(events) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.leader.Ended() && g.live {
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
	g.bound()
}

// bound cuts off followers that are too far behind, and claims memory for what waits. The
// caller holds the group's lock.
func (g *group) bound() {
	most := int64(0)
	for _, s := range g.followers {
		if s.parked || s.at == nil {
			continue
		}
		count, bytes := g.tail.count-s.at.count, g.tail.bytes-s.at.bytes
		if count > 1 && (bytes > maxBehindBytes || g.live && count > maxBehind) {
			s.cut()
			continue
		}
		most = max(most, bytes)
	}
	held := most
	if g.head != nil {
		held = max(held, g.tail.bytes-g.head.bytes)
	}
	if !g.claim(held) {
		g.head = nil // nobody joins
	}
	if g.head == nil && !g.claim(most) {
		for _, s := range g.followers {
			if !s.parked && s.at != nil && g.tail.bytes-s.at.bytes > freeQueue {
				s.cut()
			}
		}
		g.claim(0)
	}
	if g.behind == 0 && g.head == nil { // nobody needs what was told
		g.tail = &event{count: g.tail.count, bytes: g.tail.bytes, cursor: g.tail.cursor}
	}
}

// claim sets what the group takes of the memory of all queues.
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

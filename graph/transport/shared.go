package transport

import "sync/atomic"

// Bounds of what waits for those of a group that are behind.
const (
	maxBehind      = 1024
	maxBehindBytes = 4 << 20
	// maxJoinBytes is how much of the state others may join behind.
	maxJoinBytes = 1 << 20
)

// shared is an event of a group. The events of a group are a list: a follower that is
// behind holds the one that it has taken last, and so those after it.
type shared struct {
	payload []byte
	cursor  string
	// event is what each answers by itself, because the answer was not one for all; nil if
	// it was.
	event any
	// number and mark are those of [stream.Step], place is where in the state it was read.
	number uint64
	mark   bool
	place  any

	// The group's lock guards the rest.
	next  *shared
	count int64 // of the events up to this one
	bytes int64 // of these
	// sent is the event as server-sent events have it.
	sent atomic.Pointer[frame]
}

// known says whether a follower that has told so many events has told this one.
func (e *shared) known(seen uint64) bool {
	return e.number < seen || e.number == seen && seen > 0 && !e.mark
}

// tell adds events to the list, and gives them to followers that wait for them. It waits
// for nobody.
func (g *group) tell(events []*shared) {
	if len(events) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.sub.Ended() && g.live {
		return
	}
	before := g.tail
	for _, e := range events {
		e.count, e.bytes = g.tail.count+1, g.tail.bytes+int64(len(e.payload)+sizeofShared)
		g.tail.next, g.tail = e, e
	}
	if g.head != nil && g.tail.bytes-g.head.bytes > maxJoinBytes {
		g.head = nil
	}
	for i := 0; i < len(g.followers); i++ {
		if m := g.followers[i]; m.parked {
			m.give(before, events)
		}
	}
	g.bound()
}

// sizeofShared is roughly what an event takes beside its payload.
const sizeofShared = 200

// bound cuts off who is too far behind, and claims memory for what waits.
func (g *group) bound() {
	most := int64(0)
	for _, m := range g.followers {
		if m.parked || m.at == nil {
			continue
		}
		count, bytes := g.tail.count-m.at.count, g.tail.bytes-m.at.bytes
		if count > 1 && (bytes > maxBehindBytes || g.live && count > maxBehind) {
			m.cut()
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
		for _, m := range g.followers {
			if !m.parked && m.at != nil && g.tail.bytes-m.at.bytes > freeQueue {
				m.cut()
			}
		}
		g.claim(0)
	}
	if g.behind == 0 && g.head == nil { // nobody needs what was told
		g.tail = &shared{count: g.tail.count, bytes: g.tail.bytes, cursor: g.tail.cursor}
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

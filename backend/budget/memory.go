package budget

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Memory bounds the bytes that all that is in flight holds: requests, what operations
// have read, their answers, events. Each kind has a room of its own, so that one does
// not take that of another. A nil Memory bounds nothing.
//
// An operation begins with [BeginBytes]. One that needs more climbs to a level that has
// room for it, where it waits if others are there, and leaves the one before. On the last
// level there is one at a time, and it has what its own limits allow: so nobody waits for
// somebody who waits for them, and there is always one that ends.
type Memory struct {
	most          int64
	used, waiting atomic.Int64
	// Of sixteen parts requests have six, operations to begin with four, events two,
	// subscriptions one, and each level below the last one.
	requests, operations, subscriptions, events *Room
	levels                                      []level
}

// level has room for operations that hold up to so many bytes each.
type level struct {
	bytes int64
	room  *Room
}

const (
	// BeginBytes is what an operation has without asking.
	BeginBytes = 64 << 10
	// EventBytes is what an event of a subscription has without asking, uncounted.
	EventBytes = 16 << 10
	// firstLevel is what an operation has on the first level; on each after it levelTimes as
	// much, but for the last.
	firstLevel, levelTimes = 4 * BeginBytes, 4
)

// NewMemory returns a memory of so many bytes, for operations whose limits allow each of
// them so many. That of the last level is beyond the others.
func NewMemory(most, operation int64) *Memory {
	m, part := &Memory{most: most}, max(most/16, 1)
	m.requests, m.operations, m.events, m.subscriptions = m.room(6*part), m.room(4*part), m.room(2*part), m.room(part)
	for bytes := int64(firstLevel); len(m.levels) < 3; bytes *= levelTimes {
		m.levels = append(m.levels, level{bytes, m.room(max(part, bytes))})
	}
	m.levels = append(m.levels, level{math.MaxInt64, m.room(operation)})
	return m
}

// Most is how many bytes the memory has, but for the last level.
func (m *Memory) Most() int64 { return m.most }

// Used is how many bytes are taken.
func (m *Memory) Used() int64 { return m.used.Load() }

// Waiting is how many operations and events wait for memory.
func (m *Memory) Waiting() int { return int(m.waiting.Load()) }

// Requests is the room of bodies and messages that are being read or executed, and of
// answers that are being sent.
func (m *Memory) Requests() *Room {
	if m == nil {
		return nil
	}
	return m.requests
}

// Subscriptions is the room of what subscriptions keep of their requests.
func (m *Memory) Subscriptions() *Room {
	if m == nil {
		return nil
	}
	return m.subscriptions
}

// Events is the room of events and messages that wait for their clients.
func (m *Memory) Events() *Room {
	if m == nil {
		return nil
	}
	return m.events
}

// Share is what one operation holds of a memory. A nil Share holds nothing. It is safe
// for concurrent use, as the operation may read from two places at once.
type Share struct {
	memory *Memory
	// begin is what it has without asking: of the operations, but for events.
	begin int64
	event bool

	mu   sync.Mutex // guards what follows
	held int64
	// level is that on which the operation is, and from 1 on; 0 below all.
	level   int
	sent    int64 // is taken of the requests for the answer
	refused bool
}

// Begin is the beginning of an operation. It waits for no longer than [Patience].
func (m *Memory) Begin(ctx context.Context) (*Share, error) {
	if m == nil {
		return nil, nil
	}
	if err := m.operations.AwaitPatiently(ctx, BeginBytes); err != nil {
		return nil, err
	}
	return &Share{memory: m, begin: BeginBytes}, nil
}

// BeginEvents is the beginning of a subscription. Its share is for one event after the
// other: [Share.Reset] is the end of each.
func (m *Memory) BeginEvents() *Share {
	if m == nil {
		return nil
	}
	return &Share{memory: m, begin: EventBytes, event: true}
}

// Hold notes that the operation holds n bytes more. It waits while there is no room for
// that, and calls pause before. It fails with [ErrBusy], from then on always, if it waits
// in vain: for [Patience] if it has no more than it began with, else, and for events,
// until ctx ends. If ctx is cancelled it fails with its error.
func (s *Share) Hold(ctx context.Context, n int64, pause func()) error {
	if s == nil {
		return nil
	}
	if !s.mu.TryLock() { // another goroutine of the operation may wait for memory
		pause()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.held+n > s.most() {
		if err := s.climb(ctx, s.held+n, pause); err != nil {
			return err
		}
	}
	s.held += n
	return nil
}

// most is what the operation may hold where it is.
func (s *Share) most() int64 {
	if s.level == 0 {
		return s.begin
	}
	return s.memory.levels[s.level-1].bytes
}

// climb takes the operation to the level on which it may hold so many bytes.
func (s *Share) climb(ctx context.Context, bytes int64, pause func()) error {
	if s.refused {
		return ErrBusy
	}
	next := 1 + slices.IndexFunc(s.memory.levels, func(l level) bool { return bytes <= l.bytes })
	room, size := s.memory.at(next)
	if !room.Take(size) {
		pause()
		await := room.Await
		if s.level == 0 && !s.event {
			await = room.AwaitPatiently
		}
		if err := await(ctx, size); err != nil {
			s.refused = errors.Is(err, ErrBusy)
			return err
		}
	}
	s.leave()
	s.level = next
	return nil
}

// at is the room of a level, and what an operation takes of it.
func (m *Memory) at(n int) (*Room, int64) {
	l := m.levels[n-1]
	return l.room, l.bytes
}

// leave gives back what the operation has on its level.
func (s *Share) leave() {
	if s.level > 0 {
		room, size := s.memory.at(s.level)
		room.Give(size)
		s.level = 0
	}
}

// Release notes that the operation holds n bytes less. What it has taken stays with it.
func (s *Share) Release(n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
}

// Keep gives back all but n bytes: the operation has ended, and its answer is sent. An
// answer that is there is always sent: if there is no room for it among those that are, it
// stays where it is.
func (s *Share) Keep(n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.memory.requests.Take(n) {
		return
	}
	s.sent = n
	s.leave()
	s.memory.operations.Give(s.begin)
	s.begin = 0
}

// Refused says whether the operation was told [ErrBusy].
func (s *Share) Refused() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Reset gives everything back but what the share began with.
func (s *Share) Reset() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.refused = 0, false
	s.leave()
}

// Close gives everything back.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.requests.Give(s.sent)
	if !s.event {
		s.memory.operations.Give(s.begin)
	}
	s.sent, s.begin = 0, 0
}

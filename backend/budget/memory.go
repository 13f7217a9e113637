package budget

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Memory bounds the bytes that all that is in flight holds: requests, what operations
// have read, their answers, events. Each kind has a room of its own, so that one does
// not take that of another. A nil Memory bounds nothing.
//
// An operation begins with [BeginBytes]. One that needs more climbs to a level that has
// room for it, and leaves what it had; where others are there it waits, so that nobody who
// begins waits for those. On the last level there is one at a time, and it has what its own
// limits allow: so nobody waits for somebody who waits for them, and there is always one
// that ends. An answer that is sent has left its level. Where there is no room for another
// one, who has read theirs for longest is cut off.
type Memory struct {
	most          int64
	used, waiting atomic.Int64
	// Of sixteen parts requests have four, answers that are sent and operations to begin
	// with three each, and operations that wait for a level, events, subscriptions, and each
	// level below the last one.
	requests, answers, operations, waiters, subscriptions, events *Room
	levels                                                        []level

	mu   sync.Mutex // guards sent
	sent []*Share   // of those whose answers are sent, the first one first
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
	m.requests, m.answers, m.operations = m.room(4*part), m.room(3*part), m.room(3*part)
	m.waiters, m.events, m.subscriptions = m.room(part), m.room(part), m.room(part)
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

// Requests is the room of bodies and messages that are being read or executed.
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
	event  bool

	mu sync.Mutex // guards what follows
	// begin is what it has without asking: of the operations, but for events.
	begin int64
	held  int64
	// level is that on which the operation is, and from 1 on; 0 below all.
	level   int
	refused bool
	// sent is what is taken of the room of answers, since and abort who is cut off how.
	sent  int64
	since time.Time
	abort func()
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
		if err := s.await(ctx, room, size); err != nil {
			s.refused = errors.Is(err, ErrBusy)
			return err
		}
	}
	s.leave()
	s.level = next
	return nil
}

// await waits for room on a level. One that has only begun waits among few others, and
// lets those begin who need no more.
func (s *Share) await(ctx context.Context, room *Room, size int64) error {
	if s.level > 0 || s.event {
		return room.Await(ctx, size)
	}
	if !s.memory.waiters.Take(BeginBytes) {
		return ErrBusy
	}
	defer s.memory.waiters.Give(BeginBytes)
	s.memory.operations.Give(s.begin)
	s.begin = 0
	return room.AwaitPatiently(ctx, size)
}

// at is the room of a level, and what an operation takes of it.
func (m *Memory) at(n int) (*Room, int64) {
	l := m.levels[n-1]
	return l.room, l.bytes
}

// leave gives back what the operation has on its level, or has begun with.
func (s *Share) leave() {
	switch {
	case s.level > 0:
		room, size := s.memory.at(s.level)
		room.Give(size)
		s.level = 0
	case !s.event:
		s.memory.operations.Give(s.begin)
		s.begin = 0
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

// SlowAfter is how long a client may read an answer before others may have it cut off.
const SlowAfter = 5 * time.Second

// Keep gives back all but n bytes: the operation has ended, and its answer is sent. If there
// is no room for it, the client that has read its answer for longest is cut off, if it
// has for [SlowAfter]; abort cuts off this one. An answer that is there is always sent: if
// there is still no room after [Patience], it stays where it is, as a small one does.
func (s *Share) Keep(n int64, abort func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= s.begin && s.level == 0 {
		return
	}
	m := s.memory
	if !m.answers.Take(n) {
		m.cutSlowest()
		if m.answers.AwaitPatiently(context.Background(), n) != nil {
			return
		}
	}
	s.leave()
	s.sent, s.since, s.abort = n, time.Now(), abort
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, s)
}

// cutSlowest cuts off the client that has read its answer for longest.
func (m *Memory) cutSlowest() {
	abort := func() {}
	m.mu.Lock()
	if len(m.sent) > 0 && time.Since(m.sent[0].since) >= SlowAfter {
		abort = m.sent[0].abort
		m.sent = m.sent[1:]
	}
	m.mu.Unlock()
	abort() // which may close that share
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
	if s.level > 0 {
		s.leave()
	}
}

// Close gives everything back.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	m := s.memory
	m.answers.Give(s.sent)
	if s.sent > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = slices.DeleteFunc(m.sent, func(o *Share) bool { return o == s })
	}
	s.sent = 0
}

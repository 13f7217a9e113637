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

// Memory bounds the bytes of everything in flight: requests, data that operations have read, answers, and events. Each
// of these takes its bytes from a separate [Room], which is a part of the memory. So none of them can use up the memory
// of the others. A nil Memory is unlimited.
//
// An operation begins with [BeginBytes]. If it needs more, it moves up to the first level that is large enough. There
// it waits for room, and then gives back what it had before:
//
//	begin 64 KiB --> 256 KiB --> 1 MiB --> 4 MiB --> last: one operation, as much as its own limits allow
//
// Operations that begin do not wait for operations on the levels. The operation on the last level waits for no other
// operation. So there is always one that can end, and no deadlock. When an answer is sent, its operation has left its
// level. If there is no room for an answer, the client that has been reading another answer for longest is
// disconnected.
type Memory struct {
	most          int64
	used, waiting atomic.Int64
	// The rooms are multiples of a sixteenth of the memory. Requests have four sixteenths; answers and beginning
	// operations have three each. Operations that wait for a level, events, subscriptions, and each level except the
	// last have one each.
	requests, answers, operations, waiters, subscriptions, events *Room
	levels                                                        []level

	mu   sync.Mutex // guards sent
	sent []*Share   // whose answers are being sent, the oldest first
}

// level is a level of operations. bytes is the maximum number of bytes of one operation on the level, and room is the
// memory of all of them.
type level struct {
	bytes int64
	room  *Room
}

const (
	// BeginBytes is the memory that an operation gets when it begins.
	BeginBytes = 64 << 10
	// EventBytes is the memory that an event of a subscription has without taking it from a room.
	EventBytes = 16 << 10
	// firstLevel is the memory of an operation on the first level. Each further level except the last has levelTimes as
	// much.
	firstLevel, levelTimes = 4 * BeginBytes, 4
)

// NewMemory returns a memory. most is its size in bytes, without the last level. operation is the limit of one
// operation in bytes, which is the size of the last level.
func NewMemory(most, operation int64) *Memory {
	m, part := &Memory{most: most}, max(most/16, 1)
	m.requests = m.room(4 * part)
	m.answers = m.room(3 * part)
	m.operations = m.room(3 * part)
	m.waiters = m.room(part)
	m.events = m.room(part)
	m.subscriptions = m.room(part)
	for bytes := int64(firstLevel); len(m.levels) < 3; bytes *= levelTimes {
		m.levels = append(m.levels, level{bytes, m.room(max(part, bytes))})
	}
	m.levels = append(m.levels, level{math.MaxInt64, m.room(operation)})
	return m
}

// Most returns the size of the memory in bytes, without the last level.
func (m *Memory) Most() int64 { return m.most }

// Used returns the number of bytes that are in use.
func (m *Memory) Used() int64 { return m.used.Load() }

// Waiting returns the number of operations and events that wait for memory.
func (m *Memory) Waiting() int { return int(m.waiting.Load()) }

// Requests returns the room for bodies and messages that are being read or executed.
func (m *Memory) Requests() *Room {
	if m == nil {
		return nil
	}
	return m.requests
}

// Subscriptions returns the room for the requests that subscriptions keep.
func (m *Memory) Subscriptions() *Room {
	if m == nil {
		return nil
	}
	return m.subscriptions
}

// Events returns the room for events and messages that wait until their clients read them.
func (m *Memory) Events() *Room {
	if m == nil {
		return nil
	}
	return m.events
}

// Share is one operation's share of a memory. A nil Share is unlimited. It is safe for concurrent use, because an
// operation may read from several places at the same time.
type Share struct {
	memory *Memory
	event  bool

	mu      sync.Mutex // guards the rest
	begin   int64      // the initial grant that it still has
	held    int64
	level   int  // index in memory.levels plus 1; 0 before the first climb
	refused bool // it has got ErrBusy
	// sent is the number of bytes of the answer in the room of answers. since is when they were added. abort
	// disconnects the client.
	sent  int64
	since time.Time
	abort func()
	// sending is the number of bytes that it has from the room of events.
	sending int64
}

// Begin returns the share of a new operation. It waits for at most [Patience] and then fails with [ErrBusy].
func (m *Memory) Begin(ctx context.Context) (*Share, error) {
	if m == nil {
		return nil, nil
	}
	if err := m.operations.AwaitPatiently(ctx, BeginBytes); err != nil {
		return nil, err
	}
	return &Share{memory: m, begin: BeginBytes}, nil
}

// BeginEvents returns the share of a subscription. It is used for one event after another: [Share.Reset] must be called
// after each.
func (m *Memory) BeginEvents() *Share {
	if m == nil {
		return nil
	}
	return &Share{memory: m, begin: EventBytes, event: true}
}

// Hold records that the operation holds n more bytes. If there is no room, it calls pause and waits. An operation with
// only its initial memory waits for at most [Patience]; other operations and events wait until the deadline of ctx. If
// there is still no room, Hold fails with [ErrBusy], as does every later call that needs more memory. If ctx is
// cancelled, it returns [context.Canceled].
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

// most returns the number of bytes that the operation may hold on its level.
func (s *Share) most() int64 {
	if s.level == 0 {
		return s.begin
	}
	return s.memory.levels[s.level-1].bytes
}

// climb moves the operation up to the first level on which it may hold the given number of bytes.
func (s *Share) climb(ctx context.Context, bytes int64, pause func()) error {
	if s.refused {
		return ErrBusy
	}
	next := 1 + slices.IndexFunc(s.memory.levels, func(l level) bool { return bytes <= l.bytes })
	to := s.memory.levels[next-1]
	if !to.room.Take(to.bytes) {
		pause()
		if err := s.await(ctx, to); err != nil {
			s.refused = errors.Is(err, ErrBusy)
			return err
		}
	}
	s.leave()
	s.level = next
	return nil
}

// await waits for room on a level. An operation with only its initial memory gives that back while it waits, so that
// others can begin. The room of waiters limits how many operations do so at a time.
func (s *Share) await(ctx context.Context, to level) error {
	if s.level > 0 || s.event {
		return to.room.Await(ctx, to.bytes)
	}
	if !s.memory.waiters.Take(BeginBytes) {
		return ErrBusy
	}
	defer s.memory.waiters.Give(BeginBytes)
	s.memory.operations.Give(s.begin)
	s.begin = 0
	return to.room.AwaitPatiently(ctx, to.bytes)
}

// leave gives back the memory of the operation's level, or its initial memory.
func (s *Share) leave() {
	switch {
	case s.level > 0:
		from := s.memory.levels[s.level-1]
		from.room.Give(from.bytes)
		s.level = 0
	case !s.event:
		s.memory.operations.Give(s.begin)
		s.begin = 0
	}
}

// Release records that the operation holds n bytes fewer. The operation stays on its level.
func (s *Share) Release(n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
}

// SlowAfter is how long a client may take to read an answer before it may be disconnected to make room.
const SlowAfter = 5 * time.Second

// Keep is called when the operation has ended and its answer of n bytes is sent. It gives back the rest of the memory.
// If the room of answers is full, Keep disconnects the client that has been reading its answer for longest, if it has
// been reading for at least [SlowAfter]. Later, abort may be called to disconnect the client of this operation for the
// same reason. The answer is sent in any case: if there is still no room after [Patience], the operation keeps the
// memory of its level.
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
	s.sent = n
	s.since = time.Now()
	s.abort = abort
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, s)
}

// KeepEvent is called before an event of n bytes is encoded, and again when its size is known. It gives back the memory
// of the event's level, and sets the number of bytes that the event has from the room of events until [Share.Reset] is
// called. So clients that are slow to read events keep no operation from the levels. An event of at most [EventBytes]
// takes nothing. If there is no room, KeepEvent calls pause, waits for at most [Patience] and then fails with
// [ErrBusy].
func (s *Share) KeepEvent(ctx context.Context, n int64, pause func()) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level > 0 {
		s.leave()
	}
	room := s.memory.events
	n = min(n, room.most)
	more := n - s.sending
	if n <= EventBytes || more <= 0 {
		return nil
	}
	if !room.Take(more) {
		pause()
		if err := room.AwaitPatiently(ctx, more); err != nil {
			return err
		}
	}
	s.sending = n
	return nil
}

// cutSlowest disconnects the client that has been reading its answer for longest, if it has been reading for at least
// [SlowAfter].
func (m *Memory) cutSlowest() {
	abort := func() {}
	m.mu.Lock()
	if len(m.sent) > 0 && time.Since(m.sent[0].since) >= SlowAfter {
		abort = m.sent[0].abort
		m.sent = m.sent[1:]
	}
	m.mu.Unlock()
	abort() // it may close that share
}

// Refused reports whether [Share.Hold] has failed with [ErrBusy].
func (s *Share) Refused() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Reset gives back everything but the initial memory, so that the share can be used for the next event.
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
	s.memory.events.Give(s.sending)
	s.sending = 0
}

// Close gives back everything. It must be called when the operation has ended and its answer was sent.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	m := s.memory
	m.events.Give(s.sending)
	s.sending = 0
	m.answers.Give(s.sent)
	if s.sent > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = slices.DeleteFunc(m.sent, func(o *Share) bool { return o == s })
	}
	s.sent = 0
}

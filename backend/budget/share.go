package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Share is what one operation holds of a pool. A nil Share holds nothing. It is safe
// for concurrent use, as the operation may read from two places at once.
type Share struct {
	pool  *Pool
	began uint64 // smaller is earlier
	// base is what it may hold without asking: taken of the pool, but for events.
	base  int64
	event bool

	mu sync.Mutex // guards what follows; it is taken before that of the pool
	// asked says that the pool was asked for more.
	asked bool
	// held is what the operation holds, granted what it may hold without asking.
	held, granted int64

	// The rest is guarded by the pool.
	wants   int64
	answer  chan struct{}
	refused bool
}

// Begin is the beginning of an operation, or [ErrBusy].
func (p *Pool) Begin() (*Share, error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.take(BeginBytes) {
		return nil, ErrBusy
	}
	p.begun++
	return &Share{pool: p, began: p.begun, base: BeginBytes, granted: BeginBytes}, nil
}

// BeginEvents is the beginning of a subscription. Its share is for one event after
// the other: [Share.Reset] is the end of each. Events of up to [EventBytes] are not
// counted, and others wait as long as it takes: an event that waits holds next to
// nothing.
func (p *Pool) BeginEvents() *Share {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun++
	return &Share{pool: p, began: p.begun, base: EventBytes, event: true, granted: EventBytes}
}

const (
	// largeStep is from how many bytes on a step is large.
	largeStep = 512 << 10
	// largeEach is from how many bytes on a resource is large: a step that reads such
	// ones is, however many they are.
	largeEach = 32 << 10
)

// Need is what an operation wants to hold.
type Need struct {
	Bytes int64
	// Large says that many more will follow: then the operation gets a sixteenth of the
	// pool, so that few such run at once, and waits for [Patience] to begin. Others wait
	// for [LongPatience].
	Large bool
	// Pause is called before a wait, if it is not nil.
	Pause func()
}

// Hold notes that the operation holds more. It waits while the pool is in use. It
// fails with [ErrBusy] if it waits in vain: as long as a [Need] says, or as long as ctx
// lasts if the operation has more than it began with. If ctx is cancelled it fails with
// its error.
func (s *Share) Hold(ctx context.Context, need Need) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := need.Bytes
	if s.held+n <= s.granted {
		s.held += n
		return nil
	}
	s.asked = true
	more := max(s.held+n, 2*s.granted) - s.granted
	if need.Large {
		more = max(more, s.pool.most/16)
	}
	need.Bytes = more
	if err := s.pool.grow(ctx, s, need); err != nil {
		return err
	}
	s.granted += more
	s.held += n
	return nil
}

// Release notes that the operation holds n bytes less. They stay granted to it.
func (s *Share) Release(n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
}

// Keep gives back all but n bytes: the operation has ended, and its answer is sent.
// An answer that is there is always sent, also if it is larger than what is granted.
func (s *Share) Keep(n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(n, s.base)
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.held = n
	s.grant(n)
}

// grant sets what is granted. The caller holds both locks.
func (s *Share) grant(n int64) {
	p, more := s.pool, n-s.granted
	if p.over == s {
		own := max(p.beyond+min(more, 0), 0) // what is given back is first what the pool has not
		more += p.beyond - own
		p.beyond = own
	}
	p.used += more
	p.grown += more
	s.granted = n
	p.wake()
}

// Refused says whether the operation was told [ErrBusy].
func (s *Share) Refused() bool {
	if s == nil {
		return false
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.refused
}

// Reset gives everything back but what the share began with.
func (s *Share) Reset() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = 0; s.granted == s.base && !s.asked {
		return
	}
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s.asked = false
	s.grant(s.base)
	if p.over == s {
		p.over = nil
		p.wake()
	}
}

// Close gives everything back.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted = 0; !s.event {
		s.pool.Give(s.base)
	}
	s.base = 0
}

// fits says whether an operation may have n bytes more now.
func (p *Pool) fits(n int64) bool {
	return p.grown+n <= p.most/2 && p.used+n <= p.most
}

// grow takes bytes for an operation that goes on.
func (p *Pool) grow(ctx context.Context, s *Share, need Need) error {
	n := need.Bytes
	p.mu.Lock()
	if s.refused {
		p.mu.Unlock()
		return ErrBusy
	}
	switch {
	case p.over == s:
		p.beyond += n
		p.mu.Unlock()
		return nil
	case len(p.waiting) == 0 && p.fits(n):
		p.used += n
		p.grown += n
		p.mu.Unlock()
		return nil
	}
	s.wants, s.answer = n, make(chan struct{}, 1)
	if s.event { // each comes anew
		p.begun++
		s.began = p.begun
	}
	at := slices.IndexFunc(p.waiting, s.before)
	if at < 0 {
		at = len(p.waiting)
	}
	p.waiting = slices.Insert(p.waiting, at, s)
	p.wake()
	p.mu.Unlock()
	if need.Pause != nil {
		need.Pause()
	}
	var late <-chan time.Time
	if !s.runs() && !s.event { // what runs is not refused
		patience := time.NewTimer(need.patience())
		defer patience.Stop()
		late = patience.C
	}
	select {
	case <-s.answer:
		return nil
	case <-ctx.Done():
	case <-late:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, s)
	if i < 0 { // it was answered meanwhile
		return nil
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.wake()
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	s.refused = true // also when its time is over: it has only waited
	return ErrBusy
}

// patience is how long an operation waits that has no more than it began with.
func (n Need) patience() time.Duration {
	if n.Large {
		return Patience
	}
	return LongPatience
}

// before says whether a share gets memory before another one that waits: those that
// run first, in the order in which they began.
func (s *Share) before(other *Share) bool {
	if runs, others := s.runs(), other.runs(); runs != others {
		return runs
	}
	return s.began < other.began
}

// runs says whether an operation has more than it began with.
func (s *Share) runs() bool { return s.granted > s.base }

// wake lets those go on that wait and fit, in their order. The caller holds mu.
func (p *Pool) wake() {
	for len(p.waiting) > 0 {
		s := p.waiting[0]
		switch {
		case p.fits(s.wants):
			p.used += s.wants
			p.grown += s.wants
		case p.over == nil:
			p.over = s
			p.beyond = s.wants
		default:
			return
		}
		p.waiting = p.waiting[1:]
		s.answer <- struct{}{}
	}
}

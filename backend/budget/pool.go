package budget

import (
	"errors"
	"sync"
	"time"
)

// ErrBusy: the memory for operations in flight is in use. Who asks again later may get it.
var ErrBusy = errors.New("the requests, operations and answers in flight have the memory that they may have together (configuration key limit-memory); try again")

// MemoryKey is the setting of the bound of a [Pool].
const MemoryKey = "limit-memory"

// RetryAfter is after how many seconds somebody who was told [ErrBusy] may ask again.
const RetryAfter = 1

// Pool bounds the bytes that all operations in flight hold together: their requests,
// what they have read, their answers. A nil Pool bounds nothing. It is safe for
// concurrent use.
//
// An operation begins if [BeginBytes] are free; else it is refused. What it needs
// beyond that it takes as it goes, out of half of the pool, so that others can begin.
// If that is in use it waits, and who began first goes first; it is refused if it has
// not got the first of it after [Patience], or [LongPatience]. One that has more than it began with waits as
// long as its time lasts. One at a time, the first of those that wait, goes on beyond
// the pool until it ends, within its own limits: so there is always one that ends.
type Pool struct {
	most int64

	mu   sync.Mutex // guards all below
	used int64
	// grown is how much of it operations hold beyond their beginning.
	grown int64
	// beyond is what over holds that the pool has not.
	beyond  int64
	begun   uint64
	waiting []*Share // those that began first come first
	// over goes on beyond the pool; nil if none does.
	over *Share
}

const (
	// BeginBytes is what an operation has without asking.
	BeginBytes = 64 << 10
	// EventBytes is what an event of a subscription has without asking.
	EventBytes = 16 << 10
	// Patience is how long an operation may wait that needs much more than it began with.
	Patience = 300 * time.Millisecond
	// LongPatience is how long one may that needs what most operations need.
	LongPatience = 3 * time.Second
)

// NewPool returns a pool of a number of bytes.
func NewPool(most int64) *Pool { return &Pool{most: most} }

// Most is how many bytes the pool has.
func (p *Pool) Most() int64 { return p.most }

// Used is how many bytes are in use.
func (p *Pool) Used() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used + p.beyond
}

// Waiting is how many operations and events wait for memory.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// Take takes bytes if they are free.
func (p *Pool) Take(n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(n)
}

func (p *Pool) take(n int64) bool {
	if p.used+n > p.most {
		return false
	}
	p.used += n
	return true
}

// Hold takes bytes that are in use already, whether or not they are free.
func (p *Pool) Hold(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += n
}

// Give gives bytes back.
func (p *Pool) Give(n int64) {
	if p == nil || n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	p.wake()
}

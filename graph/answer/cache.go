package answer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/sluicegw/sluice/backend/service/query"
)

const (
	// MaxBody is the longest answer that is kept, in bytes.
	MaxBody = 1 << 20
	// MaxVariables is the longest text of variables by which an answer is kept, in bytes.
	MaxVariables = 4 << 10
	// DefaultMinSteps is the default of [Config.MinSteps]: two pages, or one of 25 resources.
	DefaultMinSteps = 500
)

// Key tells queries apart: equal keys have equal answers in one state of the store.
type Key struct {
	// Plan is the number of the compiled operation, as [Cache.NewPlan] has given it.
	Plan uint64
	// Variables in their one form.
	Variables string
	// Rights is the key of the caller's rights.
	Rights string
}

// Cache keeps answers up to a number of bytes. It is safe for concurrent use.
//
// It keeps no answer with errors, of mutations and subscriptions, above [MaxBody], with variables above
// [MaxVariables], of less work than [Config.MinSteps], or that read anything outside the state of its operation.
type Cache struct {
	minSteps int64
	kept     *otter.Cache[Key, *Kept]
	closed   atomic.Bool
	seed     maphash.Seed
	// asked remembers queries with the states in which they were asked: a slot has the newest of the hashes that fall
	// into it.
	asked [slots]atomic.Uint64
	// alone remembers, in the same way, queries whose latest answers could not be shared: equal ones do not wait for
	// each other.
	alone [slots]atomic.Uint64
	stats *Stats
	// plans is the number of the newest plan.
	plans atomic.Uint64

	mu      sync.Mutex // guards turns and their fields
	running map[Key]*Turn
}

// slots is how many hashes [Cache.asked] and [Cache.alone] have.
const slots = 1 << 14

// Outcome is what became of a query.
type Outcome int

// The outcomes.
const (
	// Hit: its answer was kept.
	Hit Outcome = iota
	// Shared: an equal query was executed at the same time, and answered both.
	Shared
	// Changed: its answer was kept, but what that was read from has changed.
	Changed
	// Unseen: its answer was not kept.
	Unseen
	// Small: its answer took less work than [Config.MinSteps].
	Small
	// Unkept: its answer may not be kept.
	Unkept
	// Outcomes is the number of outcomes.
	Outcomes
)

// String returns the name of the outcome in metrics.
func (o Outcome) String() string {
	return [Outcomes]string{"hit", "shared", "changed", "new", "small", "unkept"}[o]
}

// Stats counts queries by what became of them. It may be shared by caches.
type Stats [Outcomes]atomic.Uint64

// Config of a cache.
type Config struct {
	// Bytes is the most that the answers take together. Required.
	Bytes int64
	// MinSteps is the least work of an answer that is kept, in the steps of package budget. Less costs about as much as
	// finding one that is kept. Default [DefaultMinSteps].
	MinSteps int64
	// Stats counts what becomes of queries. Default: new ones.
	Stats *Stats
}

// New returns an empty cache.
func New(cfg Config) *Cache {
	c := &Cache{
		minSteps: cmp.Or(cfg.MinSteps, DefaultMinSteps),
		stats:    cmp.Or(cfg.Stats, &Stats{}),
		seed:     maphash.MakeSeed(),
		running:  map[Key]*Turn{},
	}
	c.kept = otter.Must(&otter.Options[Key, *Kept]{
		MaximumWeight: uint64(cfg.Bytes),
		Weigher:       func(key Key, k *Kept) uint32 { return uint32(k.weight(key)) },
		Executor:      func(do func()) { do() }, // maintenance is short
	})
	return c
}

// Size returns how many bytes the cache takes. c may be nil.
func (c *Cache) Size() uint64 {
	if c == nil {
		return 0
	}
	return c.kept.WeightedSize()
}

// NewPlan returns a number for the keys of a compiled operation, which no other has; 0 if c is nil.
func (c *Cache) NewPlan() uint64 {
	if c == nil {
		return 0
	}
	return c.plans.Add(1)
}

func (c *Cache) count(o Outcome) { c.stats[o].Add(1) }

// Close drops all answers and keeps no more. c may be nil.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.closed.Store(true)
	c.kept.InvalidateAll()
}

// State is the state that a query reads.
type State interface {
	// Holds reports whether a basis holds in the state.
	Holds(ctx context.Context, basis *query.Basis) bool
	// Renew replaces the state by the newest. It returns false if the query cannot be answered by the same key in it.
	Renew(ctx context.Context) bool
}

// maxWaits is how often a query waits for another request before it is executed beside it.
const maxWaits = 3

// Find returns the answer to a query in its state, or, if there is none, the turn to execute it. If both are nil, the
// caller executes the query without a turn and then calls [Cache.Executed]: it has waited for others in vain, or need
// not wait. All waits together take at most half of the time that ctx has left, so that the other half is left to
// execute the query.
func (c *Cache) Find(ctx context.Context, key Key, state State) (*Kept, *Turn) {
	var halfTime <-chan time.Time
	for range maxWaits {
		stale := c.get(key)
		if stale != nil && state.Holds(ctx, &stale.basis) {
			return c.use(stale, Hit), nil
		}
		if c.isAlone(key) {
			return nil, nil
		}
		t, other := c.take(key, stale)
		switch {
		case t != nil:
			return nil, t
		case other == nil: // a turn has ended meanwhile
			continue
		}
		if halfTime == nil {
			halfTime = afterHalf(ctx)
		}
		select {
		case <-other.done:
		case <-halfTime:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
		if other.kept == nil {
			continue
		}
		if state.Holds(ctx, &other.kept.basis) {
			return c.use(other.kept, Shared), nil
		}
		if !state.Renew(ctx) { // the key is not the query's any more
			return nil, nil
		}
		if state.Holds(ctx, &other.kept.basis) {
			return c.use(other.kept, Shared), nil
		}
	}
	return nil, nil
}

// afterHalf returns a channel that receives a value when half of the time to the deadline of ctx is over; nil if ctx
// has none.
func afterHalf(ctx context.Context) <-chan time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	return time.After(time.Until(end) / 2)
}

// aloneSlot returns the hash of a key, and its slot in alone.
func (c *Cache) aloneSlot(key Key) (hash uint64, slot *atomic.Uint64) {
	hash = maphash.Comparable(c.seed, key)
	return hash, &c.alone[hash%slots]
}

func (c *Cache) isAlone(key Key) bool {
	hash, slot := c.aloneSlot(key)
	return slot.Load() == hash
}

// note remembers whether equal queries can share an answer, by what became of one.
func (c *Cache) note(key Key, became Outcome, r *Result) {
	hash, slot := c.aloneSlot(key)
	switch {
	case became != Unkept:
		if slot.Load() == hash { // most queries write nothing, so that processors do not contend for the slot
			slot.CompareAndSwap(hash, 0)
		}
	case !r.Interrupted:
		slot.Store(hash)
	}
}

// Executed counts a query that was executed without a turn, and returns what became of it.
func (c *Cache) Executed(key Key, r *Result) Outcome {
	became := c.outcome(r)
	c.count(became)
	c.note(key, became, r)
	return became
}

// NotAsked counts a query whose answer was not looked for, by the steps that it took, and returns what became of it.
func (c *Cache) NotAsked(steps int64) Outcome {
	became := c.outcome(&Result{Steps: steps})
	c.count(became)
	return became
}

// take returns a turn for a query of which stale is kept, or the turn that others have. If both are nil, another answer
// is kept now.
func (c *Cache) take(key Key, stale *Kept) (mine, other *Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	other = c.running[key]
	if other != nil {
		other.waiting++
		return nil, other
	}
	if c.get(key) != stale {
		return nil, nil
	}
	mine = &Turn{cache: c, key: key, stale: stale, done: make(chan struct{})}
	c.running[key] = mine
	return mine, nil
}

func (c *Cache) get(key Key) *Kept {
	k, _ := c.kept.GetIfPresent(key)
	return k
}

func (c *Cache) use(k *Kept, how Outcome) *Kept {
	c.count(how)
	if !k.used.Load() {
		k.used.Store(true)
	}
	return k
}

// Turn is the execution of a query for which equal queries wait. Whoever has it must call [Turn.End].
type Turn struct {
	cache *Cache
	key   Key
	// stale is the answer that was kept and does not hold; nil for none.
	stale *Kept
	// waiting is how many requests wait for the answer.
	waiting int
	// done is closed when the turn has ended. kept is its answer then; nil if it cannot be shared.
	done chan struct{}
	kept *Kept
}

// Result is the answer that a turn has made.
type Result struct {
	// Body is the answer as it is sent. It is copied if it is kept.
	Body []byte
	// Basis is what it was read from; nil if that is not known, or the answer has errors.
	Basis *query.Basis
	// Steps is the work that it took.
	Steps int64
	// Interrupted reports whether the caller has gone, so that equal queries may have better answers.
	Interrupted bool
}

// Keepable reports whether the answer may be kept.
func (r *Result) Keepable() bool { return r.Basis != nil && len(r.Body) <= MaxBody }

// End ends the turn with its answer; the zero result stands for none. It keeps the answer if it is likely to be asked
// for again, and returns what became of the query.
func (t *Turn) End(r Result) Outcome {
	became := t.outcome(&r)
	t.cache.count(became)
	t.cache.note(t.key, became, &r)
	t.keep(&r, became)
	t.cache.mu.Lock()
	delete(t.cache.running, t.key)
	t.cache.mu.Unlock()
	close(t.done)
	return became
}

// keep keeps the answer for later requests, or for those who wait for it.
func (t *Turn) keep(r *Result, became Outcome) {
	c := t.cache
	c.mu.Lock()
	awaited := t.waiting > 0
	c.mu.Unlock()
	lasting := became != Unkept && became != Small && (awaited || t.wanted(r))
	if lasting || awaited && became == Small && r.Keepable() {
		t.kept = &Kept{body: bytes.Clone(r.Body), basis: *r.Basis}
	}
	switch {
	case lasting:
		c.kept.Set(t.key, t.kept)
		if c.closed.Load() { // Close may have run before Set
			c.kept.InvalidateAll()
		}
	case t.stale != nil:
		c.kept.Invalidate(t.key)
	}
}

// IsSmall reports whether an answer took too little work to be kept.
func (c *Cache) IsSmall(r *Result) bool { return r.Steps < c.minSteps }

func (t *Turn) outcome(r *Result) Outcome {
	became := t.cache.outcome(r)
	if became == Unseen && t.stale != nil {
		return Changed
	}
	return became
}

// outcome returns what becomes of a query of which no answer is kept.
func (c *Cache) outcome(r *Result) Outcome {
	switch {
	case c.IsSmall(r):
		return Small
	case !r.Keepable():
		return Unkept
	}
	return Unseen
}

// wanted reports whether an answer is likely to be asked for again: the one that was kept before was, or this one was
// asked for before in the same state.
func (t *Turn) wanted(r *Result) bool {
	return t.stale != nil && t.stale.used.Load() || t.cache.askedBefore(t.key, r.Basis)
}

// askedBefore reports whether a query was asked before in the same state, as far as that is remembered.
func (c *Cache) askedBefore(key Key, basis *query.Basis) bool {
	var space [64]byte
	state := basis.AppendVersions(space[:0])
	state = binary.LittleEndian.AppendUint64(state, maphash.Comparable(c.seed, key))
	hash := maphash.Bytes(c.seed, state)
	return c.asked[hash%slots].Swap(hash) == hash
}

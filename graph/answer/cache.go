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
	// MaxBody is the size of the largest answer that is kept, in bytes.
	MaxBody = 1 << 20
	// MaxVariables is the size of the largest variables of an answer that is kept, in
	// bytes.
	MaxVariables = 4 << 10
	// DefaultMinSteps is the default of [Config.MinSteps]. It is the work of two pages, or of
	// one with 25 resources.
	DefaultMinSteps = 500
)

// Key identifies a query: queries with equal keys have equal answers in one state of
// the store.
type Key struct {
	// Plan is the number of the compiled operation, from [Cache.NewPlan].
	Plan uint64
	// Variables in canonical form.
	Variables string
	// Rights is the key of the caller's rights.
	Rights string
}

// Cache caches answers up to a number of bytes. It is safe for concurrent use.
//
// It does not cache answers with errors, answers of mutations and subscriptions, answers
// larger than [MaxBody], answers to operations with more than [MaxVariables] bytes of
// variables, answers that took less work than [Config.MinSteps], or answers for which
// anything outside the state of the operation was read.
type Cache struct {
	minSteps int64
	kept     *otter.Cache[Key, *Kept]
	closed   atomic.Bool
	seed     maphash.Seed
	// asked records which queries were requested in which states: a slot holds the newest of the
	// hashes that fall into it.
	asked [slots]atomic.Uint64
	// alone records, in the same way, the queries whose latest answers could not be shared. Equal
	// queries do not wait for each other then.
	alone [slots]atomic.Uint64
	stats *Stats
	// plans is the number that NewPlan last returned.
	plans atomic.Uint64

	mu      sync.Mutex // guards turns and their fields
	running map[Key]*Turn
}

// slots is the number of hashes in [Cache.asked] and in [Cache.alone].
const slots = 1 << 14

// Outcome says how the cache dealt with a query.
type Outcome int

// The outcomes.
const (
	// Hit means that a kept answer was used.
	Hit Outcome = iota
	// Shared means that an equal query was executed at the same time, and its answer
	// was used.
	Shared
	// Changed means that the kept answer was outdated.
	Changed
	// Unseen means that no answer was kept.
	Unseen
	// Small means that the answer took less work than [Config.MinSteps].
	Small
	// Unkept means that the answer must not be kept.
	Unkept
	// Outcomes is the number of outcomes.
	Outcomes
)

// String returns the name of the outcome in metrics.
func (o Outcome) String() string {
	return [Outcomes]string{"hit", "shared", "changed", "new", "small", "unkept"}[o]
}

// Stats counts queries by outcome. Caches can share it.
type Stats [Outcomes]atomic.Uint64

// Config of a cache.
type Config struct {
	// Bytes is the maximum size of all kept answers together. Required.
	Bytes int64
	// MinSteps is the least work of an answer that is kept, in steps of package budget. With less
	// work, executing the query costs about as much as finding its answer. Default
	// [DefaultMinSteps].
	MinSteps int64
	// Stats counts the queries. Default: a new one.
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

// NewPlan returns a unique number for the keys of a compiled operation; 0 if c is nil.
func (c *Cache) NewPlan() uint64 {
	if c == nil {
		return 0
	}
	return c.plans.Add(1)
}

func (c *Cache) count(o Outcome) { c.stats[o].Add(1) }

// Close drops all answers and stops keeping any. c may be nil.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.closed.Store(true)
	c.kept.InvalidateAll()
}

// State is the state that a query reads.
type State interface {
	// Holds reports whether a basis still holds in the state.
	Holds(ctx context.Context, basis *query.Basis) bool
	// Renew replaces the state by the newest one. It returns false if the query has another key in
	// that state.
	Renew(ctx context.Context) bool
}

// maxWaits is how many times a query waits for other requests before it is executed in
// parallel with them.
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

// note records from an outcome whether equal queries can share an answer.
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

// Executed counts a query that was executed without a turn and returns its outcome.
func (c *Cache) Executed(key Key, r *Result) Outcome {
	became := c.outcome(r)
	c.count(became)
	c.note(key, became, r)
	return became
}

// NotAsked counts a query for which the cache was not searched, and returns its outcome by the
// steps that it took.
func (c *Cache) NotAsked(steps int64) Outcome {
	became := c.outcome(&Result{Steps: steps})
	c.count(became)
	return became
}

// take returns a new turn for a query whose kept answer stale is outdated, or the turn of the
// request that already executes it. If both are nil, an answer has been kept in the meantime.
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

// Turn is the right to execute a query for which equal queries wait. Its holder must call
// [Turn.End].
type Turn struct {
	cache *Cache
	key   Key
	// stale is the outdated answer that was kept; nil for none.
	stale *Kept
	// waiting is the number of requests that wait for the answer.
	waiting int
	// done is closed when the turn ends. kept is then its answer; nil if it cannot be shared.
	done chan struct{}
	kept *Kept
}

// Result is an answer and how it was made.
type Result struct {
	// Body is the answer as it is sent. The cache copies it if it keeps it.
	Body []byte
	// Basis is what the answer was computed from; nil if that is unknown or the answer
	// has errors.
	Basis *query.Basis
	// Steps is the work that the answer took.
	Steps int64
	// Interrupted says that the caller has disconnected. An equal query may then have a better
	// answer.
	Interrupted bool
}

// Keepable reports whether the answer may be kept.
func (r *Result) Keepable() bool { return r.Basis != nil && len(r.Body) <= MaxBody }

// End ends the turn with its answer; the zero result means that there is none. It keeps the answer
// if the answer is likely to be requested again, and returns the outcome of the query.
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

// keep keeps the answer for later requests, or for those that wait for it.
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

// outcome returns the outcome of a query for which no answer was kept.
func (c *Cache) outcome(r *Result) Outcome {
	switch {
	case c.IsSmall(r):
		return Small
	case !r.Keepable():
		return Unkept
	}
	return Unseen
}

// wanted reports whether an answer is likely to be requested again: the outdated answer was used,
// or the same query was requested before in this state.
func (t *Turn) wanted(r *Result) bool {
	return t.stale != nil && t.stale.used.Load() || t.cache.askedBefore(t.key, r.Basis)
}

// askedBefore reports whether a query was requested before in the same state. It may have been
// forgotten.
func (c *Cache) askedBefore(key Key, basis *query.Basis) bool {
	var space [64]byte
	state := basis.AppendVersions(space[:0])
	state = binary.LittleEndian.AppendUint64(state, maphash.Comparable(c.seed, key))
	hash := maphash.Bytes(c.seed, state)
	return c.asked[hash%slots].Swap(hash) == hash
}

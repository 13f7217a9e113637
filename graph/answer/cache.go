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
	// MaxBody is the maximum size of an answer that is kept, in bytes.
	MaxBody = 1 << 20
	// MaxVariables is the maximum size of the variables of an answer that is kept, in bytes.
	MaxVariables = 4 << 10
	// DefaultMinSteps is the default of [Config.MinSteps]. It is about the work of two pages, or of one page with 25
	// resources.
	DefaultMinSteps = 500
)

// Key identifies a query: queries with equal keys have equal answers in one state of
// the store.
type Key struct {
	// Plan is the number of the compiled operation, see [Cache.NewPlan].
	Plan uint64
	// Variables are the variables in canonical form.
	Variables string
	// Rights is a key of the caller's rights.
	Rights string
}

// Cache caches answers up to a number of bytes. It is safe for concurrent use.
//
// These answers are never cached:
//   - answers of mutations and subscriptions, and answers with errors
//   - answers larger than [MaxBody], or to operations with more than [MaxVariables] bytes of variables
//   - answers that took less work than [Config.MinSteps]
//   - answers for which something outside the state of the operation was read
type Cache struct {
	minSteps int64
	kept     *otter.Cache[Key, *Kept]
	closed   atomic.Bool
	seed     maphash.Seed
	// requested remembers which queries were requested in which states of the store. Each slot has the newest hash that
	// falls into it.
	requested [slots]atomic.Uint64
	// alone remembers, in the same way, the queries whose last answer could not be shared. Equal queries then do not
	// wait for each other.
	alone [slots]atomic.Uint64
	stats *Stats
	// plans is the last number returned by NewPlan.
	plans atomic.Uint64

	mu      sync.Mutex // guards running, and the field waiting of each turn
	running map[Key]*Turn
}

// slots is the length of [Cache.requested] and [Cache.alone].
const slots = 1 << 14

// Outcome is how the cache has handled a query.
type Outcome int

// The outcomes.
const (
	// Hit means that a kept answer was used.
	Hit Outcome = iota
	// Shared means that an equal query was being executed, and its answer was used.
	Shared
	// Changed means that the query was executed, because the kept answer was outdated.
	Changed
	// Unseen means that the query was executed, because no answer was kept.
	Unseen
	// Small means that the query was executed, and took less work than [Config.MinSteps].
	Small
	// Unkept means that the query was executed, and its answer cannot be kept.
	Unkept
	// Outcomes is the number of outcomes above.
	Outcomes
)

// String returns the name of the outcome in metrics.
func (o Outcome) String() string {
	return [Outcomes]string{"hit", "shared", "changed", "new", "small", "unkept"}[o]
}

// Stats counts queries by outcome. Several caches may share it.
type Stats [Outcomes]atomic.Uint64

// Config configures a [Cache].
type Config struct {
	// Bytes is the maximum size of all kept answers together. Required.
	Bytes int64
	// MinSteps is the minimum work of an answer that is kept, in steps of package budget. With less work, to execute
	// the query costs about as much as to find its answer. Default: [DefaultMinSteps].
	MinSteps int64
	// Stats counts the queries. Default: a new Stats.
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

// Size returns the number of bytes that the cache uses. c may be nil.
func (c *Cache) Size() uint64 {
	if c == nil {
		return 0
	}
	return c.kept.WeightedSize()
}

// NewPlan returns a unique number for a compiled operation, for [Key.Plan]. It returns 0 if c is nil.
func (c *Cache) NewPlan() uint64 {
	if c == nil {
		return 0
	}
	return c.plans.Add(1)
}

func (c *Cache) count(o Outcome) { c.stats[o].Add(1) }

// Close drops all answers, and no more are kept. c may be nil.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.closed.Store(true)
	c.kept.InvalidateAll()
}

// State is the state of the store that a query reads.
type State interface {
	// IsValid reports whether a basis is still valid in the state: nothing that the answer was computed from has
	// changed.
	IsValid(ctx context.Context, basis *query.Basis) bool
	// Renew replaces the state by the newest one. It returns false if the query has another key in the new state.
	Renew(ctx context.Context) bool
}

// maxWaits is how many times a query waits for an equal query, before it is executed at the same time.
const maxWaits = 3

// Find looks for the answer to a query in its state. It returns one of three results:
//   - an answer that can be used
//   - a turn: the caller executes the query, and then calls [Turn.End]
//   - nil and nil: the caller executes the query, and then calls [Cache.Executed]. Find has waited in vain for an equal
//     query, or equal queries need not wait for each other.
//
// All waits together take at most half of the time that ctx has left. The other half is for executing the query.
func (c *Cache) Find(ctx context.Context, key Key, state State) (*Kept, *Turn) {
	var halfTime <-chan time.Time
	for range maxWaits {
		stale := c.get(key)
		if stale != nil && state.IsValid(ctx, &stale.basis) {
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
		if state.IsValid(ctx, &other.kept.basis) {
			return c.use(other.kept, Shared), nil
		}
		if !state.Renew(ctx) { // the key is not the query's any more
			return nil, nil
		}
		if state.IsValid(ctx, &other.kept.basis) {
			return c.use(other.kept, Shared), nil
		}
	}
	return nil, nil
}

// afterHalf returns a channel that receives a value after half of the time to the deadline of ctx; nil if ctx has no
// deadline.
func afterHalf(ctx context.Context) <-chan time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	return time.After(time.Until(end) / 2)
}

// aloneSlot returns the hash of a key, and its slot in [Cache.alone].
func (c *Cache) aloneSlot(key Key) (hash uint64, slot *atomic.Uint64) {
	hash = maphash.Comparable(c.seed, key)
	return hash, &c.alone[hash%slots]
}

func (c *Cache) isAlone(key Key) bool {
	hash, slot := c.aloneSlot(key)
	return slot.Load() == hash
}

// note remembers whether equal queries can share an answer.
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

// Executed counts a query that was executed without a turn, and returns its outcome.
func (c *Cache) Executed(key Key, r *Result) Outcome {
	became := c.outcome(r)
	c.count(became)
	c.note(key, became, r)
	return became
}

// CountUncached counts a query for which Find was not called, and returns its outcome, which depends on its steps.
func (c *Cache) CountUncached(steps int64) Outcome {
	became := c.outcome(&Result{Steps: steps})
	c.count(became)
	return became
}

// take returns a new turn for a query, or the turn of an equal query that is being executed. It returns nil and nil if
// an answer was kept in the meantime. stale is the outdated answer; nil if there is none.
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

// Turn is the right to execute a query while equal queries wait for its answer. [Turn.End] must be called.
type Turn struct {
	cache *Cache
	key   Key
	// stale is the outdated answer; nil if there is none.
	stale *Kept
	// waiting is the number of requests that wait for the answer.
	waiting int
	// done is closed when the turn ends. kept is then the answer; nil if it cannot be shared.
	done chan struct{}
	kept *Kept
}

// Result is an answer, and information about its execution.
type Result struct {
	// Body is the answer in the form in which it is sent. If the cache keeps it, it makes a copy.
	Body []byte
	// Basis identifies everything from which the answer was computed. It is nil if that is unknown or the answer has
	// errors.
	Basis *query.Basis
	// Steps is the work that the query took.
	Steps int64
	// Interrupted reports whether the caller has disconnected. An equal query may then have a better answer.
	Interrupted bool
}

// Keepable reports whether the answer may be kept.
func (r *Result) Keepable() bool { return r.Basis != nil && len(r.Body) <= MaxBody }

// End ends the turn. The zero Result means that there is no answer. End keeps the answer if it is likely to be
// requested again, and returns the outcome of the query.
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

// keep keeps the answer for later requests, or only for the requests that wait for it.
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

// outcome returns the outcome of a query that was executed because no answer was kept.
func (c *Cache) outcome(r *Result) Outcome {
	switch {
	case c.IsSmall(r):
		return Small
	case !r.Keepable():
		return Unkept
	}
	return Unseen
}

// wanted reports whether an answer is likely to be requested again. That is so if the outdated answer was used, or if
// the same query was requested before in this state.
func (t *Turn) wanted(r *Result) bool {
	return t.stale != nil && t.stale.used.Load() || t.cache.askedBefore(t.key, r.Basis)
}

// askedBefore reports whether a query was requested before in the same state. The cache may have forgotten that.
func (c *Cache) askedBefore(key Key, basis *query.Basis) bool {
	var space [64]byte
	state := basis.AppendVersions(space[:0])
	state = binary.LittleEndian.AppendUint64(state, maphash.Comparable(c.seed, key))
	hash := maphash.Bytes(c.seed, state)
	return c.requested[hash%slots].Swap(hash) == hash
}

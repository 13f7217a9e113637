// Package index keeps the resources of kinds in memory, so that reads need no data from the store. Trees order the
// resources by the values that queries use.
//
// The index is a follower of the hub: it has a change before any subscriber receives it. A kind is filled from the
// store page by page, while changes continue. It is served as soon as it shows a single state of the store. Readers
// take a [View], an immutable state of the index, without a lock. A view has everything that the store had acknowledged
// when it was requested. If there is no such view in time (because the index is filling, lags behind, or has no room
// for a kind), the caller reads the store. Only [Index.Await] returns an error instead, for kinds that belong in
// memory.
//
//	the hub: Deliver, Begin           Run: fill, one kind after the other
//	          |                         |  reads the store without mu
//	          | changes                 | pages
//	          v                         v
//	   kindIndex, guarded by Index.mu: trees that are changed in place
//	          |
//	          | publish, after each delivery: only the kinds that changed
//	          v
//	   snapshot: the same nodes, which are copied before they are changed again
//	          |
//	          | View, Await, Current
//	          v
//	   readers
//
// The states of a kind are described at fillState. The index starts no goroutines: Deliver and Begin run in the hub's
// goroutine, fill in the one that calls Run. Nothing is stored on disk: a new index reads everything.
package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/internal/wait"
)

// Config configures an [Index].
type Config struct {
	// Store is the store to read. Required.
	Store backend.Store
	// Hub delivers the changes of Store. Required.
	Hub *hub.Hub
	// Kinds are the kinds that the index keeps in memory if there is room.
	Kinds []Definition
	// Bytes is the approximate maximum memory for all kinds together, in bytes. Default 256 MiB.
	Bytes int64
	// Wait is how long a read may wait for the index to catch up with the store. Default 100 ms.
	Wait time.Duration
	// Retry is the pause before a kind for which there was no room, or which could not be read, is tried again. Default
	// 30 s.
	Retry time.Duration
	// Logger receives messages about kinds that are filled or given up. Default: none.
	Logger *zap.Logger
}

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("config: Store is missing"))
	}
	if c.Hub == nil {
		errs = append(errs, errors.New("config: Hub is missing"))
	}
	if c.Bytes < 0 || c.Wait < 0 || c.Retry < 0 {
		errs = append(errs, errors.New("config: Bytes, Wait and Retry cannot be negative"))
	}
	for _, d := range c.Kinds {
		if d.Name == "" || d.Rows == nil || d.Keep == nil {
			errs = append(errs, fmt.Errorf("config: kind %q: Name, Rows and Keep are required", d.Name))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Bytes = cmp.Or(c.Bytes, 256<<20)
	c.Wait = cmp.Or(c.Wait, 100*time.Millisecond)
	c.Retry = cmp.Or(c.Retry, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return c
}

// Index keeps the resources of kinds in memory. All methods are safe for concurrent use.
type Index struct {
	cfg Config
	// now returns the time of the store's clock.
	now func() time.Time
	// current is the state that readers see. In it, a kind that is not served is nil.
	current atomic.Pointer[snapshot]
	// head is the latest known head of the store.
	head                    atomic.Pointer[backend.Position]
	reads, fallbacks, waits atomic.Uint64
	// work wakes the goroutine of Run.
	work chan struct{}
	// runs reports whether Run is active.
	runs atomic.Bool

	mu sync.Mutex // guards all below
	// position is the position after the hub's last delivery; zero while the hub does not follow the store.
	position backend.Position
	kinds    []*kindIndex
	// order has the kinds in the order in which they are filled.
	order  []*kindIndex
	byName map[string]*kindIndex
	bytes  int64
	// version is incremented by each delivery, and by each part of a page that is put into the trees.
	version uint64
	// changed remembers the keys of the latest changes.
	changed changedKeys
	// replaced has resources that were replaced recently, for changes whose log entries lack the previous state.
	replaced      []replaced
	replacedBytes int64
	// logged is when the progress was last logged.
	logged time.Time
	// advanced is closed when current changes; nil if no reader waits for that.
	advanced chan struct{}
	// pinnedChanged is closed when another version of a pinned kind is published; nil if no reader waits for that.
	pinnedChanged chan struct{}
}

// snapshot is an immutable state of the kinds that the index serves.
type snapshot struct {
	position backend.Position
	kinds    []*Kind
	// served is the number of kinds that are served.
	served int
	// stuck is set when a read has waited in vain for the next snapshot, so that other reads do not wait.
	stuck atomic.Bool
}

var _ hub.Follower = (*Index)(nil)

// New returns an index. It serves nothing until Run has filled it.
func New(cfg Config) (*Index, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	cfg = cfg.withDefaults()
	x := &Index{
		cfg:    cfg,
		now:    backend.ClockOf(cfg.Store),
		work:   make(chan struct{}, 1),
		byName: map[string]*kindIndex{},
	}
	x.changed.limit = cfg.Bytes / changedShare
	for i := range cfg.Kinds {
		k := newKindIndex(&x.cfg.Kinds[i], i)
		x.kinds, x.order = append(x.kinds, k), append(x.order, k)
		x.byName[k.Name] = k
	}
	x.current.Store(&snapshot{kinds: make([]*Kind, len(x.kinds))})
	return x, nil
}

// The shortest and the longest pause before a store that did not answer is read again.
const (
	minUnavailablePause = 100 * time.Millisecond
	maxUnavailablePause = time.Second
)

// Run follows the hub and fills the kinds until ctx ends, and then returns nil and drops all resources. If another Run
// is active, it only waits until ctx ends.
func (x *Index) Run(ctx context.Context) error {
	if !x.runs.CompareAndSwap(false, true) {
		<-ctx.Done()
		return nil
	}
	defer x.stop()
	defer x.cfg.Hub.AddFollower(x)()
	retry := time.NewTicker(x.cfg.Retry)
	defer retry.Stop()
	backoff := wait.Backoff{Least: minUnavailablePause, Most: maxUnavailablePause}
	for {
		for k := x.next(); k != nil && ctx.Err() == nil; k = x.next() {
			if x.fill(ctx, k) {
				backoff.Reset()
				continue
			}
			x.deprioritize(k)
			backoff.Wait(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-x.work:
		case <-retry.C:
			x.retry(ctx)
		}
	}
}

// stop drops all resources.
func (x *Index) stop() {
	x.runs.Store(false)
	x.Begin(backend.Position{})
}

// next returns the next kind to fill; nil if there is none.
func (x *Index) next() *kindIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.position.IsZero() {
		return nil
	}
	for _, k := range x.order {
		if k.state == waiting {
			return k
		}
	}
	return nil
}

// deprioritize moves a kind that could not be read to the end of order.
func (x *Index) deprioritize(last *kindIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.order = append(slices.DeleteFunc(x.order, func(k *kindIndex) bool { return k == last }), last)
}

// retry schedules kinds that were given up to be filled again, if there is room for the resources that the store has
// now.
func (x *Index) retry(ctx context.Context) {
	for _, k := range x.kinds {
		x.mu.Lock()
		if k.state == givenUp {
			k.backoffRounds--
		}
		due := k.state == givenUp && k.backoffRounds <= 0
		mean := k.mean
		free := x.cfg.Bytes - x.used()
		x.mu.Unlock()
		if !due {
			continue
		}
		page, err := x.cfg.Store.Range(ctx, backend.Range{Kind: k.Name, Count: true})
		if err != nil || int64(page.Count)*mean*6/5 > free {
			continue
		}
		x.mu.Lock()
		if k.state == givenUp {
			k.state = waiting
		}
		x.mu.Unlock()
	}
}

// Begin implements [hub.Follower]. If the store has lost changes, the kinds of these changes become stale; if it is not
// known which changes were lost, all kinds do. If at is zero, all resources are dropped.
func (x *Index) Begin(at backend.Position) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lost, known := x.changed.beyond(at, x.position)
	if !known {
		x.changed.reset(at)
		x.replaced, x.replacedBytes = nil, 0
	}
	x.position = at
	x.version++
	for _, k := range x.kinds {
		x.update(k, func() {
			if at.IsZero() {
				k.clear()
				k.state = waiting
				return
			}
			k.markStale(lost[k.Name], known, x.version)
		})
	}
	x.publish()
	x.wakeRun()
}

// update calls do, which changes a kind, and updates the total size. The caller holds mu.
func (x *Index) update(k *kindIndex, do func()) {
	x.bytes -= k.bytes
	do()
	x.bytes += k.bytes
}

// Deliver implements [hub.Follower].
func (x *Index) Deliver(d backend.Delivery) {
	made := x.prepare(d.Events)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version++
	for i := range d.Events {
		e := &d.Events[i]
		k := x.byName[e.Resource.Kind]
		if k == nil {
			continue
		}
		x.changed.add(
			backend.Key{Kind: k.Name, Namespace: unique.Make(e.Resource.Namespace).Value(), Name: e.Resource.Name},
			backend.ShardOf(x.cfg.Store, e.Resource.Namespace), e.Revision,
		)
		if lacksBefore(e) {
			x.keepReplaced(k, e)
		}
		x.update(k, func() { k.take(keyChange{key: e.Resource.Key, revision: e.Revision, entry: made[i]}, x.version) })
		if k.waitingBytes > maxWaiting {
			x.cfg.Logger.Warn("a kind changes faster than it is read into memory; it is read from the store until it is tried again", zap.String("kind", k.Name),
				zap.Int64("waitingBytes", k.waitingBytes), zap.Int64("limit", maxWaiting))
			x.evict(k)
		}
	}
	x.position = d.Position
	x.fit()
	x.publish()
}

// prepare returns the entry for each event; nil for a deletion, or if the kind is not in the index.
func (x *Index) prepare(events []backend.Event) []*Entry {
	if len(events) == 0 {
		return nil
	}
	out := make([]*Entry, len(events))
	for i := range events {
		e := &events[i]
		if k := x.byName[e.Resource.Kind]; k != nil && e.Type != backend.Deleted { // byName never changes
			out[i] = k.newEntry(e.Resource)
		}
	}
	return out
}

// used returns the size of the index in bytes, without queued changes. The caller holds mu.
func (x *Index) used() int64 { return x.bytes + x.changed.bytes + x.replacedBytes }

// fit gives up the largest kinds until the others, with their queued changes, fit into memory. Pinned kinds are kept.
// It reports whether it has given up any. The caller holds mu.
func (x *Index) fit() (gaveUp bool) {
	for {
		whole := x.used()
		var largest *kindIndex
		for _, k := range x.kinds {
			whole += k.waitingBytes
			if !k.Pinned && (largest == nil || k.bytes+k.waitingBytes > largest.bytes+largest.waitingBytes) {
				largest = k
			}
		}
		if whole <= x.cfg.Bytes || largest == nil || largest.bytes+largest.waitingBytes == 0 {
			return gaveUp
		}
		gaveUp = true
		x.cfg.Logger.Info("a kind does not fit the memory of the index; it is read from the store", zap.String("kind", largest.Name),
			zap.Int64("bytes", largest.bytes+largest.waitingBytes), zap.Int64("limit", x.cfg.Bytes))
		x.evict(largest)
		largest.tooLarge = true
	}
}

// maxFailed limits the pause of a kind that is given up repeatedly. The pause doubles each time: 1, 2, 4, ..., 32
// rounds of Config.Retry.
const maxFailed = 6

// evict drops a kind from memory. The caller holds mu.
func (x *Index) evict(k *kindIndex) {
	k.mean = k.bytes / max(int64(k.names.root.len()), 1)
	x.update(k, k.clear)
	k.state, k.tooLarge = givenUp, false
	k.failed = min(k.failed+1, maxFailed)
	k.backoffRounds = 1 << (k.failed - 1)
	x.wakeReaders()
}

// publish makes the state at x.position visible to readers. The caller holds mu.
func (x *Index) publish() {
	was := x.current.Load()
	next := &snapshot{position: x.position, kinds: make([]*Kind, len(x.kinds))}
	for i, k := range x.kinds {
		if k.state == filled && x.position.Covers(k.since) {
			k.state, k.failed = serving, 0
			x.cfg.Logger.Debug(
				"a kind is read from the index", zap.String("kind", k.Name), zap.Int("resources", k.names.root.len()),
				zap.Int64("bytes", k.bytes),
			)
		}
		if k.state == serving {
			next.kinds[i] = k.copy(was.kinds[i], x.version)
			next.served++
		}
	}
	x.current.Store(next)
	if x.pinnedChanged != nil &&
		slices.ContainsFunc(x.kinds, func(k *kindIndex) bool {
			return k.Pinned && next.kinds[k.number] != was.kinds[k.number]
		}) {
		close(x.pinnedChanged)
		x.pinnedChanged = nil
	}
	x.wakeReaders()
}

// wakeReaders wakes readers that wait for a new snapshot or for a pinned kind. The caller holds mu.
func (x *Index) wakeReaders() {
	if x.advanced != nil {
		close(x.advanced)
		x.advanced = nil
	}
}

func (x *Index) wakeRun() {
	select {
	case x.work <- struct{}{}:
	default:
	}
}

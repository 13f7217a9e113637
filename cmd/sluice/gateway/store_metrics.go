package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/span"
)

// storeMetrics are metrics about the calls of a store, and about the groups in which the store writes batches.
type storeMetrics struct {
	calls  *prometheus.HistogramVec
	errors *prometheus.CounterVec
	// These are metrics about groups of batches; see [backend.WriteObservers].
	wait, size, duration, sync prometheus.Histogram
}

func newStoreMetrics() *storeMetrics {
	return &storeMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_store_call_duration_seconds",
			Help: "Time of a call of the store, by operation: apply (a write), get, range (lists, counts and " +
				"what refers to a resource), and on Redis head and position (how far its logs go) and sync.",
			Buckets: storeBuckets(),
		}, []string{"operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_store_errors_total",
			Help: "Calls of the store that failed, by operation and error: no_space, unavailable, unknown " +
				"(whether the write was made), damaged, unreadable. Conditions that do not hold are no errors " +
				"of the store.",
		}, []string{"operation", "error"}),
		wait: secondsHistogram(
			"sluice_store_write_wait_seconds",
			"How long a write waited until its group began.",
		),
		size: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_store_write_group_size",
			Help: "Writes in a group: of one transaction of the embedded store (at most 128), of one pipeline " +
				"to a Redis (at most 32).",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		duration: secondsHistogram(
			"sluice_store_write_group_duration_seconds",
			"Time of a group of writes: of a transaction of the embedded store, of a pipeline to a Redis and "+
				"its answer.",
		),
		sync: secondsHistogram(
			"sluice_store_sync_duration_seconds",
			"Embedded store: the part of a transaction in which its pages are written to the file and synced to "+
				"the disk.",
		),
	}
}

// storeBuckets returns the bounds of histograms of store times in seconds.
func storeBuckets() []float64 {
	return []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
	}
}

// secondsHistogram returns a histogram of times of a store or of writes.
func secondsHistogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: storeBuckets()})
}

func (m *storeMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.errors, m.wait, m.size, m.duration, m.sync}
}

// writes returns the observers with which a driver updates m.
func (m *storeMetrics) writes() backend.WriteObservers {
	return backend.WriteObservers{Wait: m.wait, Size: m.size, Duration: m.duration, Sync: m.sync}
}

// measured returns a store that measures its calls. It keeps the other methods of the store.
func (m *storeMetrics) measured(store gatewayStore) gatewayStore {
	switch store := store.(type) {
	case *bolt.Store:
		return measuredBolt{boltStore: boltStore{store}, measuredCalls: m.callsOf(store)}
	case *redis.Store:
		return measuredRedis{
			redisStore:    redisStore{store},
			measuredCalls: m.callsOf(store),
			remoteCalls: remoteCalls{
				store:    store,
				head:     m.call("head"),
				position: m.call("position"),
				sync:     m.call("sync"),
			},
		}
	}
	return store
}

func (m *storeMetrics) callsOf(store measurable) measuredCalls {
	return measuredCalls{store: store, apply: m.call("apply"), get: m.call("get"), scan: m.call("range")}
}

// call returns the metrics of one operation.
func (m *storeMetrics) call(operation string) measuredCall {
	return measuredCall{
		duration: m.calls.WithLabelValues(operation),
		errors:   m.errors.MustCurryWith(prometheus.Labels{"operation": operation}),
	}
}

// measuredCall has the metrics of one operation of the store, such as get.
type measuredCall struct {
	duration prometheus.Observer
	errors   *prometheus.CounterVec
}

// done records a call that has ended with err.
func (c *measuredCall) done(ctx context.Context, began time.Time, err error) {
	span.Observe(ctx, c.duration, time.Since(began).Seconds())
	if err == nil {
		return
	}
	if name := storeErrorName(err); name != "" {
		c.errors.WithLabelValues(name).Inc()
	}
}

// storeErrorName returns the name of an error that is a fault of the store; empty for other errors.
func storeErrorName(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{backend.ErrNoSpace, "no_space"},
		{backend.ErrDamaged, "damaged"},
		{backend.ErrUnknown, "unknown"},
		{backend.ErrUnavailable, "unavailable"},
		{backend.ErrUnreadable, "unreadable"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return ""
}

// measuredBolt is the embedded store with measured calls. Its Head, Position and Sync are not measured, because they do
// not read the file.
type measuredBolt struct {
	boltStore
	measuredCalls
}

// measuredRedis is a store on Redis with measured calls.
type measuredRedis struct {
	redisStore
	measuredCalls
	remoteCalls
}

// boltStore and redisStore embed a store one level deeper, so that the methods of measuredCalls take precedence over
// those of the store.
type (
	boltStore  struct{ *bolt.Store }
	redisStore struct{ *redis.Store }
)

var (
	_ gatewayStore       = measuredBolt{}
	_ backend.Ranger     = measuredBolt{}
	_ backend.BareGetter = measuredBolt{}
	_ backend.Clock      = measuredBolt{}
	_ backend.Heads      = measuredBolt{}
	_ gatewayStore       = measuredRedis{}
	_ backend.Ranger     = measuredRedis{}
	_ backend.BareGetter = measuredRedis{}
	_ backend.Clock      = measuredRedis{}
	_ backend.Heads      = measuredRedis{}
	_ backend.Sharder    = measuredRedis{}
	_ backend.Syncer     = measuredRedis{}
)

// measurable has the methods that are measured. All drivers have them.
type measurable interface {
	backend.Store
	backend.Ranger
	backend.BareGetter
}

// measuredCalls calls a store and measures the calls.
type measuredCalls struct {
	store            measurable
	apply, get, scan measuredCall
}

// Apply implements [backend.Store].
func (s measuredCalls) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	began := time.Now()
	res, err := s.store.Apply(ctx, b)
	s.apply.done(ctx, began, err)
	return res, err
}

// Get implements [backend.Store].
func (s measuredCalls) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	began := time.Now()
	out, err := s.store.Get(ctx, keys...)
	s.get.done(ctx, began, err)
	return out, err
}

// GetBare implements [backend.BareGetter].
func (s measuredCalls) GetBare(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	began := time.Now()
	out, err := s.store.GetBare(ctx, keys...)
	s.get.done(ctx, began, err)
	return out, err
}

// Range implements [backend.Store].
func (s measuredCalls) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	began := time.Now()
	page, err := s.store.Range(ctx, r)
	s.scan.done(ctx, began, err)
	return page, err
}

// Ranges implements [backend.Ranger].
func (s measuredCalls) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	began := time.Now()
	pages, err := s.store.Ranges(ctx, rs)
	s.scan.done(ctx, began, err)
	return pages, err
}

// remoteCalls measures the calls that only a store on Redis sends over the network. The embedded store answers them
// from memory.
type remoteCalls struct {
	store                *redis.Store
	head, position, sync measuredCall
}

// Head implements [backend.Heads].
func (s remoteCalls) Head(ctx context.Context) (backend.Position, error) {
	began := time.Now()
	at, err := s.store.Head(ctx)
	s.head.done(ctx, began, err)
	return at, err
}

// Position implements [backend.Store].
func (s remoteCalls) Position(ctx context.Context) (backend.Position, error) {
	began := time.Now()
	at, err := s.store.Position(ctx)
	s.position.done(ctx, began, err)
	return at, err
}

// Sync implements [backend.Syncer].
func (s remoteCalls) Sync(ctx context.Context, namespace string) error {
	began := time.Now()
	err := s.store.Sync(ctx, namespace)
	s.sync.done(ctx, began, err)
	return err
}

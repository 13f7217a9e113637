package gateway

import (
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/graph/identity"
)

// The texts of metrics are also in docs/metrics.md. To update the file, run: go test ./cmd/sluice/gateway -run
// Documented -update

// collectors returns all metrics except those of the server.
func (s *Gateway) collectors(c *catalogues, on shared) []prometheus.Collector {
	out := append(processMetrics(), c.results, c.serviceMetrics(), s.readOnlyMetric())
	out = append(out, on.collectors()...)
	out = append(out, c.indexMetrics()...)
	out = append(out, s.staleCredentials(slices.Concat(on.security.watched(), on.owners.files))...)
	return append(out, s.expiryMetrics(on)...)
}

// damagedMetric returns the counter of stored resources that cannot be decoded.
func damagedMetric() *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{
			Name: "sluice_unreadable_total",
			Help: "Stored resources that could not be read, by kind, each counted once since the start. The log " +
				"has their keys.",
		},
		[]string{"kind"},
	)
}

// processMetrics returns the metrics of the process and its version.
func processMetrics() []prometheus.Collector {
	info := prometheus.GaugeOpts{
		Name:        "sluice_build_info",
		Help:        "Always 1; the labels are the versions of sluice and of Go.",
		ConstLabels: prometheus.Labels{"version": version.Text(), "goversion": runtime.Version()},
	}
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(info, func() float64 { return 1 }),
	}
}

// collectors returns the metrics that do not change with the catalogue.
func (on shared) collectors() []prometheus.Collector {
	out := append(
		on.measures.collectors(),
		gauge("sluice_change_streams", "Open subscriptions, over WebSocket and server-sent events.", func() float64 {
			return float64(on.changes.Subscribers())
		}),
		counter(
			"sluice_change_streams_lagged_total",
			"Subscriptions that ended because their clients read too slowly (LAGGED).",
			func() float64 { return float64(on.changes.Lagged()) },
		),
		counter(
			"sluice_store_unreadable_total",
			"Stored records that the store itself could not decode, counted with each read. The log has their "+
				"keys.",
			func() float64 { return float64(on.store.Unreadable()) },
		),
	)
	if store, ok := on.store.(writeQueue); ok {
		out = append(out, gauge(
			"sluice_store_writes_waiting",
			"Writes that wait for the next transaction of the embedded store, or to be sent to a Redis.",
			func() float64 { return float64(store.WritesWaiting()) },
		))
	}
	if store, ok := on.store.(remoteStore); ok {
		out = append(out, redisMetrics(store)...)
	}
	if on.audit != nil {
		out = append(out, gauge(
			"sluice_audit_behind_changes",
			"With audit: changes that the gateway knows of and the audit log does not have yet. If it grows, "+
				"the file cannot be written.",
			func() float64 { return float64(on.audit.Behind()) },
		))
		out = append(out, on.audit.failureMetrics()...)
	}
	return out
}

// failureMetrics returns the counters of what goes wrong with the audit log.
func (a *auditing) failureMetrics() (out []prometheus.Collector) {
	for _, f := range audit.Failures() {
		out = append(out, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_audit_failures_total",
			Help: "With audit: failures of the audit log. write: lines could not be written; those of changes are written " +
				"later. rename: the file grows on. tidy: renamed files stay as they are. line: a line about a request is " +
				"missing. gap: changes are missing. removed: somebody has removed the file.",
			ConstLabels: prometheus.Labels{"what": f.String()},
		}, func() float64 { return float64(a.Failed(f)) }))
	}
	return out
}

// writeQueue is implemented by a store with a queue of writes.
type writeQueue interface{ WritesWaiting() int }

// remoteStore is a store on Redis.
type remoteStore interface {
	LostHistories() uint64
	Pool() redis.Pool
}

// redisMetrics returns the metrics of a store on Redis.
func redisMetrics(store remoteStore) []prometheus.Collector {
	connections := func(state string, value func(redis.Pool) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "sluice_redis_connections",
			Help:        "Connections to Redis on which calls are made, by state: used or idle.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(value(store.Pool())) })
	}
	return []prometheus.Collector{
		counter(
			"sluice_store_histories_lost_total",
			"Redis: how often the store has lost changes that this gateway had seen. Page somebody.",
			func() float64 { return float64(store.LostHistories()) },
		),
		connections("used", func(p redis.Pool) int { return p.Connections - p.Idle }),
		connections("idle", func(p redis.Pool) int { return p.Idle }),
		gauge(
			"sluice_redis_calls_waiting",
			"Calls of Redis that wait for a connection.",
			func() float64 { return float64(store.Pool().Waiting) },
		),
		counter(
			"sluice_redis_waits_total",
			"Calls of Redis that had to wait for a connection.",
			func() float64 { return float64(store.Pool().Waits) },
		),
		counter(
			"sluice_redis_wait_seconds_total",
			"Total time that calls of Redis have waited for a connection.",
			func() float64 { return store.Pool().Waited.Seconds() },
		),
		counter(
			"sluice_redis_wait_timeouts_total",
			"Calls of Redis that got no connection in time.",
			func() float64 { return float64(store.Pool().Timeouts) },
		),
	}
}

// readOnlyMetric returns the metric that is 1 if the gateway refuses changes, and 0 otherwise.
func (s *Gateway) readOnlyMetric() prometheus.Collector {
	return gauge("sluice_read_only", "1 if the gateway takes no changes (read-only), else 0.", func() float64 {
		if s.ReadOnly {
			return 1
		}
		return 0
	})
}

// staleCredentials returns the metrics about files with credentials that have changed but could not be read. clients
// are the files for Redis and for resource services.
func (s *Gateway) staleCredentials(clients []*identity.Files) (out []prometheus.Collector) {
	add := func(f *identity.Files) {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_credentials_stale",
			Help: "1 while a changed file of credentials cannot be read and the gateway uses what it read before, " +
				"by setting: tokens, tls-cert with its key and client CAs, redis-cert with its key, services and their " +
				"names.",
			ConstLabels: prometheus.Labels{"setting": f.Setting},
		}, func() float64 {
			if f.Stale() {
				return 1
			}
			return 0
		}))
	}
	if t := s.Server.TLS; t != nil {
		add(t.Files)
	}
	if t := s.Server.Identities.Tokens; t != nil {
		add(t.Files)
	}
	for _, files := range clients {
		add(files)
	}
	return out
}

// expiryMetrics returns the metrics about when certificates and static tokens expire.
func (s *Gateway) expiryMetrics(on shared) (out []prometheus.Collector) {
	certificate := func(setting string, until func() time.Time) {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_certificate_expiry_timestamp_seconds",
			Help: "When a certificate of the gateway ends, in seconds since 1970, by setting: tls-cert, redis-cert, " +
				"services and their names; for redis-ca, when the next of the authorities ends that is still valid; " +
				"0 if there is none.",
			ConstLabels: prometheus.Labels{"setting": setting},
		}, func() float64 { return timestamp(until()) }))
	}
	if t := s.Server.TLS; t != nil {
		certificate(t.Setting, func() time.Time { return t.Certificate().NotAfter })
	}
	for _, shown := range slices.Concat(on.security.certificates(), on.owners.certificates) {
		certificate(shown.setting, shown.until)
	}
	if _, found := on.security.authoritiesEnd(time.Now()); found {
		certificate("redis-ca", func() time.Time {
			ends, _ := on.security.authoritiesEnd(time.Now())
			return ends
		})
	}
	t := s.Server.Identities.Tokens
	if t == nil {
		return out
	}
	return append(
		out,
		gauge("sluice_tokens", "Static tokens (tokens) that are valid.", func() float64 {
			valid, _ := t.Valid(time.Now())
			return float64(valid)
		}),
		gauge(
			"sluice_token_expiry_timestamp_seconds",
			"When the next of the static tokens ends, in seconds since 1970; 0 if none does.",
			func() float64 {
				_, next := t.Valid(time.Now())
				return timestamp(next)
			},
		),
	)
}

// timestamp returns a time in seconds since 1970; 0 for the zero time.
func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// indexMetrics returns the metrics of the index of the current catalogue.
func (c *catalogues) indexMetrics() []prometheus.Collector {
	of := func(value func(index.Stats) float64) func() float64 {
		return func() float64 {
			if x := c.current().Index(); x != nil {
				return value(x.Stats())
			}
			return 0
		}
	}
	return append(
		c.waitingMetrics(),
		gauge(
			"sluice_index_bytes",
			"Bytes that the resources in memory take, an estimate.",
			of(func(s index.Stats) float64 { return float64(s.Bytes) }),
		),
		gauge(
			"sluice_index_limit_bytes",
			"Bytes that the resources in memory may take (index-memory).",
			of(func(s index.Stats) float64 { return float64(s.Limit) }),
		),
		gauge(
			"sluice_index_kinds",
			"Kinds of the catalogue, except those with @resource(inMemory: false).",
			of(func(s index.Stats) float64 { return float64(s.Kinds) }),
		),
		gauge(
			"sluice_index_kinds_served",
			"Kinds that are read from memory.",
			of(func(s index.Stats) float64 { return float64(s.Served) }),
		),
		gauge(
			"sluice_index_kinds_filling",
			"Kinds that are not in memory yet and will be.",
			of(func(s index.Stats) float64 { return float64(s.Filling) }),
		),
		gauge(
			"sluice_index_resources",
			"Resources in memory.",
			of(func(s index.Stats) float64 { return float64(s.Resources) }),
		),
		counter(
			"sluice_index_reads_total",
			"Operations that read from memory, since the present catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Reads) }),
		),
		counter(
			"sluice_index_fallbacks_total",
			"Operations that read from the store because the index was behind, since the present catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Fallbacks) }),
		),
		counter(
			"sluice_index_waits_total",
			"Operations that waited for the index to catch up with the store, since the present catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Waits) }),
		),
		gauge(
			"sluice_index_behind_changes",
			"Changes that the store had and the index did not, when the metrics were read.",
			of(func(s index.Stats) float64 { return float64(s.Behind) }),
		),
	)
}

// waitingMetrics returns the metrics about resources in memory that wait for other resources, or for their deletion.
func (c *catalogues) waitingMetrics() (out []prometheus.Collector) {
	since := func(at time.Time) float64 {
		if at.IsZero() {
			return 0
		}
		return max(c.current().Now().Sub(at).Seconds(), 0)
	}
	for _, of := range []struct {
		label string
		age   time.Duration
	}{{"0s", 0}, {"1m", time.Minute}, {"10m", 10 * time.Minute}, {"1h", time.Hour}, {"1d", 24 * time.Hour}} {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_deletions_pending",
			Help: "Resources in memory whose deletion waits for finalizers or for resources that refer to them, by the " +
				"time that it has waited at least: 0s (all), 1m, 10m, 1h, 1d.",
			ConstLabels: prometheus.Labels{"age": of.label},
		}, func() float64 {
			svc := c.current()
			return float64(svc.DeletionsBefore(svc.Now().Add(-of.age)))
		}))
	}
	return append(
		out,
		gauge(
			"sluice_deletion_oldest_seconds",
			"For how long the oldest deletion has waited, of resources in memory; 0 if none waits.",
			func() float64 { return since(c.current().OldestDeletion()) },
		),
		gauge(
			"sluice_waiting_resources",
			"Resources in memory that wait for what they refer to.",
			func() float64 {
				waiting, _ := c.current().Waiting()
				return float64(waiting)
			},
		),
		gauge(
			"sluice_waiting_oldest_seconds",
			"For how long the oldest of the waiting resources in memory has waited; of more than a thousand, only the "+
				"first thousand are looked at. 0 if none waits.",
			func() float64 {
				_, oldest := c.current().Waiting()
				return since(oldest)
			},
		),
	)
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

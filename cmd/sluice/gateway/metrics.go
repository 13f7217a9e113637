package gateway

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/graph/identity"
)

// damagedMetric returns the counter of stored resources that do not decode.
func damagedMetric() *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{
			Name: "sluice_unreadable_total",
			Help: "Stored resources that could not be read, by kind.",
		},
		[]string{"kind"},
	)
}

// processMetrics returns the metrics of the process and its version.
func processMetrics() []prometheus.Collector {
	info := prometheus.GaugeOpts{
		Name:        "sluice_build_info",
		Help:        "Always 1; the version of sluice and of Go.",
		ConstLabels: prometheus.Labels{"version": version.Text(), "goversion": runtime.Version()},
	}
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(info, func() float64 { return 1 }),
	}
}

// metrics returns the metrics of what all catalogues share.
func (on shared) metrics() []prometheus.Collector {
	out := []prometheus.Collector{
		gauge("sluice_change_streams", "Open change streams, over all transports.", func() float64 {
			return float64(on.changes.Subscribers())
		}),
		counter(
			"sluice_change_streams_lagged_total",
			"Change streams that were ended because their clients were too slow.",
			func() float64 { return float64(on.changes.Lagged()) },
		),
		counter(
			"sluice_store_unreadable_total",
			"Stored data whose envelope could not be read and was passed over.",
			func() float64 { return float64(on.store.Unreadable()) },
		),
	}
	if store, ok := on.store.(*redis.Store); ok {
		out = append(out, counter(
			"sluice_store_histories_lost_total",
			"Times that the store went on without changes which this gateway had seen.",
			func() float64 { return float64(store.LostHistories()) },
		))
	}
	if on.audit != nil {
		out = append(out, gauge(
			"sluice_audit_behind_changes",
			"Changes that the gateway knows of and the audit log does not have.",
			func() float64 { return float64(on.audit.Behind()) },
		))
	}
	return out
}

// readOnlyMetric tells whether the gateway takes changes.
func (s *Gateway) readOnlyMetric() prometheus.Collector {
	return gauge("sluice_read_only", "1 if the gateway takes no changes (read-only), else 0.", func() float64 {
		if s.ReadOnly {
			return 1
		}
		return 0
	})
}

// staleCredentials are the metrics of the files of credentials, also of those with which resource services are asked.
func (s *Gateway) staleCredentials(services []*identity.Files) (out []prometheus.Collector) {
	add := func(f *identity.Files) {
		out = append(out, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_credentials_stale", Help: "1 while a changed file of credentials cannot be read, so that what was read before counts; by setting.",
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
	for _, files := range services {
		add(files)
	}
	return out
}

// indexMetrics are the metrics of the index of the current service.
func (c *catalogues) indexMetrics() []prometheus.Collector {
	of := func(value func(index.Stats) float64) func() float64 {
		return func() float64 {
			if x := c.current().Index(); x != nil {
				return value(x.Stats())
			}
			return 0
		}
	}
	return []prometheus.Collector{
		gauge(
			"sluice_index_bytes",
			"Bytes that the resources in memory take, roughly.",
			of(func(s index.Stats) float64 { return float64(s.Bytes) }),
		),
		gauge(
			"sluice_index_limit_bytes",
			"Bytes that they may take.",
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
			"sluice_index_resources",
			"Resources of these kinds.",
			of(func(s index.Stats) float64 { return float64(s.Resources) }),
		),
		counter(
			"sluice_index_reads_total",
			"Operations that read from memory, since the catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Reads) }),
		),
		counter(
			"sluice_index_fallbacks_total",
			"Operations that read from the store, because the index did not serve in time, since the catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Fallbacks) }),
		),
		counter(
			"sluice_index_waits_total",
			"Operations that waited for the index to come up with the store, since the catalogue is served.",
			of(func(s index.Stats) float64 { return float64(s.Waits) }),
		),
		gauge("sluice_deletion_oldest_seconds", "For how long the oldest deletion has waited, of resources in memory; 0 for none.", func() float64 {
			svc := c.current()
			if at := svc.OldestDeletion(); !at.IsZero() {
				return svc.Now().Sub(at).Seconds()
			}
			return 0
		}),
		gauge(
			"sluice_index_behind_changes",
			"Changes that the store has and the index does not.",
			of(func(s index.Stats) float64 { return float64(s.Behind) }),
		),
	}
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

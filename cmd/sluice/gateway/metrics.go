package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/graph/identity"
)

// staleCredentials are the metrics of the files of credentials.
func (s *Gateway) staleCredentials() (out []prometheus.Collector) {
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

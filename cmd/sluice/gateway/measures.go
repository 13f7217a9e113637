package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend/service"
)

// measures are the metrics that the parts of a gateway update while they work. They do not change with the catalogue.
type measures struct {
	store *storeMetrics
	// unreadable counts stored resources that cannot be decoded. calls counts calls of resource services.
	unreadable, calls *prometheus.CounterVec
	// hubLag is the time between a change and its delivery by the hub.
	hubLag prometheus.Histogram
	// lockWait is the time that writes wait for other writes to the same resource. raced counts writes that had to be
	// checked again because of another write in between.
	lockWait prometheus.Histogram
	raced    prometheus.Counter
	// reconcile is the time for evaluating the consequences of changes. reevaluated is the number of resources that
	// were evaluated.
	reconcile   prometheus.Histogram
	reevaluated prometheus.Counter
	// copied is the time of the last copy of the store, by form.
	copied *prometheus.GaugeVec
}

// The forms of copies in measures.copied.
const (
	copyBackup = "backup"
	copyExport = "export"
)

func newMeasures() *measures {
	histogram := func(name, help string, buckets int) prometheus.Histogram {
		const least, factor = 0.001, 4
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(least, factor, buckets),
		})
	}
	m := &measures{
		store:      newStoreMetrics(),
		unreadable: damagedMetric(),
		calls:      callsMetric(),
		hubLag: histogram(
			"sluice_hub_lag_seconds",
			"Time from a change, by the store's clock, until the streams and the index of this gateway have it: one "+
				"observation for each delivery, of its oldest change.",
			9,
		),
		lockWait: histogram(
			"sluice_write_lock_wait_seconds",
			"How long writes waited for others of the same resource at this gateway; writes that did not have "+
				"to wait are not counted.",
			8,
		),
		raced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_write_races_total",
			Help: "Writes that were checked again because another write came in between: one by another gateway, one by " +
				"the gateway itself, or one of a resource that this one refers to.",
		}),
		reconcile: histogram(
			"sluice_reconcile_duration_seconds",
			"Time to do what follows from changes that came together: re-evaluate what waits for them, finish "+
				"deletions.",
			10,
		),
		reevaluated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_reconcile_resources_total",
			Help: "Resources that were re-evaluated because a resource that they refer to has changed.",
		}),
		copied: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_backup_last_timestamp_seconds",
			Help: "When this process has last sent a whole copy of its store, in seconds since 1970, by form: " +
				"backup or export; 0 if it has not.",
		}, []string{"form"}),
	}
	for _, form := range []string{copyBackup, copyExport} {
		m.copied.WithLabelValues(form)
	}
	return m
}

func (m *measures) collectors() []prometheus.Collector {
	return append(
		m.store.collectors(),
		m.unreadable,
		m.calls,
		m.hubLag,
		m.lockWait,
		m.raced,
		m.reconcile,
		m.reevaluated,
		m.copied,
	)
}

// service returns observers with which a service updates m.
func (m *measures) service() service.Observers {
	return service.Observers{
		LockWait:    m.lockWait,
		Raced:       m.raced.Inc,
		Reconcile:   m.reconcile,
		Reevaluated: func(resources int) { m.reevaluated.Add(float64(resources)) },
	}
}

// copiedNow records that a copy of the store was sent now.
func (m *measures) copiedNow(form string) { m.copied.WithLabelValues(form).SetToCurrentTime() }

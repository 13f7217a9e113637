package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/server"
)

const (
	// leastIndex is the smallest index, in bytes.
	leastIndex = 1 << 20
	// indexShare divides the memory of the process: the index may take one part.
	indexShare = 4
)

// indexMemory returns how many bytes the index may take: the setting, or a share of the
// memory of the process; negative for no index.
func indexMemory(setting int64) int64 {
	switch {
	case setting >= leastIndex:
		return setting
	case setting != config.IndexAuto:
		return -1
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit/indexShare, leastIndex)
	}
	limit, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil || limit > math.MaxInt64 {
		return 0 // the service's default
	}
	return max(int64(limit/indexShare), leastIndex)
}

// readyTimeout is how long a gateway may take until it is ready without all in memory.
func (s *serving) readyTimeout() time.Duration {
	switch {
	case s.ReadyTimeout != config.ReadyAuto:
		return s.ReadyTimeout
	case s.Store.URL == "":
		return 0 // there is no other gateway that could answer meanwhile
	}
	return time.Minute
}

// ready returns a function that returns an error while the gateway cannot serve: while the store cannot, and until all
// kinds that fit are in memory or the timeout has passed.
func (c *catalogues) ready(store gatewayStore, timeout time.Duration) func(context.Context) error {
	begin := time.Now()
	var done atomic.Bool
	return func(ctx context.Context) error {
		err := store.Ready(ctx)
		var unconfirmed *redis.NoReplicaError
		switch {
		case errors.As(err, &unconfirmed):
			return &server.NotReadyError{Why: unconfirmed.Error()}
		case err != nil || done.Load():
			return err
		}
		if time.Since(begin) >= timeout {
			done.Store(true)
			return nil
		}
		svc := c.current()
		if rights := svc.PolicySource(); rights != nil && rights.Version() == 0 {
			return &server.NotReadyError{Why: "the roles and bindings are being read"}
		}
		if x := svc.Index(); x != nil {
			if s := x.Stats(); s.Filling > 0 {
				return &server.NotReadyError{Why: fmt.Sprintf("%d of %d kinds are in memory", s.Served, s.Kinds)}
			}
		}
		done.Store(true)
		return nil
	}
}

// filling returns a line for each kind that is not in memory yet.
func (c *catalogues) filling() []string {
	if x := c.current().Index(); x != nil {
		return x.Progress()
	}
	return nil
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
		gauge("sluice_index_bytes", "Bytes that the resources in memory take, roughly.", of(func(s index.Stats) float64 { return float64(s.Bytes) })),
		gauge("sluice_index_limit_bytes", "Bytes that they may take.", of(func(s index.Stats) float64 { return float64(s.Limit) })),
		gauge("sluice_index_kinds", "Kinds of the catalogue, except those with @resource(inMemory: false).", of(func(s index.Stats) float64 { return float64(s.Kinds) })),
		gauge("sluice_index_kinds_served", "Kinds that are read from memory.", of(func(s index.Stats) float64 { return float64(s.Served) })),
		gauge("sluice_index_resources", "Resources of these kinds.", of(func(s index.Stats) float64 { return float64(s.Resources) })),
		counter("sluice_index_reads_total", "Operations that read from memory, since the catalogue is served.", of(func(s index.Stats) float64 { return float64(s.Reads) })),
		counter("sluice_index_fallbacks_total", "Operations that read from the store, because the index did not serve in time, since the catalogue is served.", of(func(s index.Stats) float64 { return float64(s.Fallbacks) })),
		counter("sluice_index_waits_total", "Operations that waited for the index to come up with the store, since the catalogue is served.", of(func(s index.Stats) float64 { return float64(s.Waits) })),
		gauge("sluice_deletion_oldest_seconds", "For how long the oldest deletion has waited, of resources in memory; 0 for none.", func() float64 {
			svc := c.current()
			if at := svc.OldestDeletion(); !at.IsZero() {
				return svc.Now().Sub(at).Seconds()
			}
			return 0
		}),
		gauge("sluice_index_behind_changes", "Changes that the store has and the index does not.", of(func(s index.Stats) float64 { return float64(s.Behind) })),
	}
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

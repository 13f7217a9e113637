package gateway

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

// samples returns how many values each of our histograms has taken, and the values of counters, by name and labels.
func samples(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, of := range families {
		for _, one := range of.GetMetric() {
			name := of.GetName()
			for _, label := range one.GetLabel() {
				name += " " + label.GetValue()
			}
			if of.GetType().String() == "HISTOGRAM" {
				out[name] = float64(one.GetHistogram().GetSampleCount())
			} else {
				out[name] = one.GetCounter().GetValue()
			}
		}
	}
	return out
}

func putBatch(name string) backend.Batch {
	return backend.Batch{RequestID: "r-" + name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
		Key: backend.Key{Kind: "Shelf", Namespace: "default", Name: name}, Op: backend.OpPut,
		Put: backend.Put{UID: "u-" + name, Body: []byte(`{}`)},
	}}}
}

func TestStoreMetrics_CountCallsAndGroups(t *testing.T) {
	m := newStoreMetrics()
	kept, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), StoreFile), Observe: m.writes()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	store := m.measured(kept)
	batch := putBatch("a")
	if _, err := store.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), batch.Actions[0].Key); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.GetBare(t.Context(), store, batch.Actions[0].Key); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Range(t.Context(), backend.Range{Kind: "Shelf", Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(); err != nil { // it answers once the group was measured
		t.Fatal(err)
	}
	got := samples(t, m.collectors()...)
	for name, want := range map[string]float64{
		"sluice_store_call_duration_seconds apply":  1,
		"sluice_store_call_duration_seconds get":    2,
		"sluice_store_call_duration_seconds range":  1,
		"sluice_store_write_wait_seconds":           1,
		"sluice_store_write_group_size":             1,
		"sluice_store_write_group_duration_seconds": 1,
		"sluice_store_sync_duration_seconds":        1,
	} {
		if got[name] != want {
			t.Errorf("%s has taken %v values, want %v", name, got[name], want)
		}
	}
}

// TestStoreMetrics_KeepTheAbilitiesOfAStore: what is measured can be copied as a whole, and tells how many writes wait.
func TestStoreMetrics_KeepTheAbilitiesOfAStore(t *testing.T) {
	var embedded, remote gatewayStore = measuredBolt{}, measuredRedis{}
	if _, ok := embedded.(backupStore); !ok {
		t.Error("the embedded store cannot be copied")
	}
	if _, ok := embedded.(writeQueue); !ok {
		t.Error("the embedded store does not tell how many writes wait")
	}
	if _, ok := remote.(remoteStore); !ok {
		t.Error("a store on Redis does not tell how its connections are used")
	}
	if _, ok := remote.(backend.Verifier); !ok {
		t.Error("a store on Redis cannot be checked")
	}
}

func TestStoreMetrics_CountTheErrorsOfTheStore(t *testing.T) {
	m := newStoreMetrics()
	call := m.call("apply")
	for _, err := range []error{
		nil,
		context.Canceled,
		backend.ErrConflict,
		fmt.Errorf("%w: %w", backend.ErrUnavailable, backend.ErrNoSpace),
		fmt.Errorf("%w: %w", backend.ErrUnknown, context.DeadlineExceeded),
		backend.ErrUnavailable,
		errors.Join(backend.ErrUnavailable, backend.ErrDamaged),
	} {
		call.done(t.Context(), time.Now(), err)
	}
	got := samples(t, m.collectors()...)
	want := map[string]float64{
		"sluice_store_call_duration_seconds apply":    7,
		"sluice_store_errors_total no_space apply":    1,
		"sluice_store_errors_total unknown apply":     1,
		"sluice_store_errors_total unavailable apply": 1,
		"sluice_store_errors_total damaged apply":     1,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

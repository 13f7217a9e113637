package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// namespaceIn is a namespace that lies in the shard.
func namespaceIn(st *redis.Store, shard int) string {
	for i := 0; ; i++ {
		if ns := fmt.Sprint("ns", i); st.Shard(ns) == shard {
			return ns
		}
	}
}

func TestLog_ALookAtTheLogIsBoundedInBytesOverAllShards(t *testing.T) {
	t.Parallel()
	for says, shards := range map[string]int{"one shard": 1, "several shards": 4} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			from, err := st.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			const changes = 24
			for i := range changes {
				putOne(t, st, backend.Key{Kind: "Net", Namespace: namespaceIn(st, i%shards), Name: "n"}, strings.Repeat("x", 1_000_000))
			}
			w, err := st.Watch(t.Context(), backend.Watch{From: from})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for seen := 0; seen < changes; {
				before := serverInfo(t, s, "stats", "total_net_output_bytes")
				d, err := w.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if sent := serverInfo(t, s, "stats", "total_net_output_bytes") - before; sent > backend.MaxDeliveryBytes+1<<20 {
					t.Errorf("%d bytes were read for a delivery of at most %d", sent, backend.MaxDeliveryBytes)
				}
				seen += len(d.Events)
			}
		})
	}
}

// A watcher that is told of nothing still learns of epochs: the table of them is bounded.
func TestLog_AWatchMovesOnToAnEpochInWhichNothingHappened(t *testing.T) {
	t.Parallel()
	cfg := redis.Config{URL: server.Server(t).URL(), Prefix: redistest.Prefix(), Shards: 2}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w, err := st.Watch(t.Context(), backend.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := redis.OpenAnew(t.Context(), cfg) // begins an epoch
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	want, err := other.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for at := (backend.Position{}); !at.Equal(want); {
		d, err := w.Next(t.Context())
		if err != nil || len(d.Events) > 0 || d.CaughtUp {
			t.Fatalf("%d changes, mark %v, error %v", len(d.Events), d.CaughtUp, err)
		}
		at = d.Position
	}
}

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestApply_AFullServerIsReadAndRefusesChanges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	key := func(i int) backend.Key {
		return backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns", i%2), Name: fmt.Sprint("k", i)}
	}
	for i := range 5 {
		putOne(t, st, key(i), fmt.Sprint(i), toTarget(key(i)))
	}
	s.Do("CONFIG", "SET", "maxmemory", "1")
	again, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Shards: 3}) // its connections are new
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	put := func(st *redis.Store) error {
		_, err := st.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{{Key: key(9), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}}})
		return err
	}
	target := toTarget(key(0)).Key
	for name, st := range map[string]*redis.Store{"a store that was open": st, "one that is opened": again} {
		for _, read := range []backend.Range{{Kind: "Net", Limit: 10}, {Kind: "Net", Referenced: &target, Limit: 10}} {
			if p, err := st.Range(t.Context(), read); err != nil || len(p.Resources) < 2 {
				t.Errorf("%s: %+v: %d resources, %v", name, read, len(p.Resources), err)
			}
		}
		if p, err := st.Range(t.Context(), backend.Range{Kind: "Net", Count: true}); err != nil || p.Count != 5 {
			t.Errorf("%s: %d counted, %v", name, p.Count, err)
		}
		if got, err := st.Get(t.Context(), key(0), key(1)); err != nil || got[0] == nil || got[1] == nil {
			t.Errorf("%s: %v %v", name, got, err)
		}
		if _, err := st.Position(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := put(st); !errors.Is(err, backend.ErrNoSpace) || errors.Is(err, backend.ErrUnknown) {
			t.Errorf("%s: a put: %v", name, err)
		}
		if err := st.Ready(t.Context()); !errors.Is(err, backend.ErrNoSpace) {
			t.Errorf("%s: it is ready: %v", name, err)
		}
	}
	s.Do("CONFIG", "SET", "maxmemory", "0")
	for name, st := range map[string]*redis.Store{"a store that was open": st, "one that is opened": again} {
		if err := st.Ready(t.Context()); err != nil {
			t.Errorf("%s: with room again it is not ready: %v", name, err)
		}
	}
	if err := put(st); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if p, err := again.Range(context.Background(), backend.Range{Kind: "Net", Limit: 10}); err != nil || len(p.Resources) != 6 {
		t.Errorf("%d resources, %v", len(p.Resources), err)
	}
}

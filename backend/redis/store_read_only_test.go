package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// dump returns all that a server has under a prefix.
func dump(t *testing.T, s *redistest.Server, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range s.Client().Keys(t.Context(), prefix+"*").Val() {
		out[key] = s.Client().Dump(t.Context(), key).Val()
	}
	return out
}

func TestStore_ReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	s := server.Server(t)
	cfg := redis.Config{URL: s.URL(), Prefix: redistest.Prefix()}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	begin, err := st.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, expires time.Time) {
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: name}
		a := backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}")), ExpiresAt: expires}}
		if _, err := st.Apply(t.Context(), batchOf(st, a)); err != nil {
			t.Fatal(err)
		}
	}
	put("due", st.Now().Add(-time.Second))
	put("a", time.Time{})
	// The server does not continue the history of the epoch any more.
	s.Do("HSET", cfg.Prefix+"m:{0}", "run", "another", "replid", "another")
	before := dump(t, s, cfg.Prefix)

	readCfg := cfg
	readCfg.ReadOnly = true
	reader, err := redis.Open(t.Context(), readCfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	page, err := reader.Range(t.Context(), backend.Range{Kind: "Net", Limit: 10})
	if err != nil || len(page.Resources) != 1 {
		t.Errorf("%v, %v", page.Resources, err)
	}
	if events := changes(t, reader, begin, "Net"); len(events) != 2 {
		t.Errorf("%d events", len(events))
	}
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: "a"}
	if _, err := reader.Apply(t.Context(), batchOf(reader, backend.Action{Key: k, Op: backend.OpDelete})); !errors.Is(err, backend.ErrReadOnly) {
		t.Errorf("a delete: %v", err)
	}
	if n, err := reader.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("%d are purged, %v", n, err)
	}
	if err := reader.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, dump(t, s, cfg.Prefix)); d != "" {
		t.Errorf("changed:\n%s", d)
	}

	// Another gateway begins the next epoch, and the reader follows.
	writer, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	putOne(t, writer, k, "new")
	redistest.Await(t, "the change of the next epoch", func() error {
		got, err := reader.Get(t.Context(), k)
		if err == nil && string(got[0].Body) != string(backend.EncodeBody([]byte("new"))) {
			err = errors.New("an old body")
		}
		if err == nil {
			_, err = reader.Position(t.Context())
		}
		return err
	})
}

func TestStore_ReadOnlyMakesNoStore(t *testing.T) {
	t.Parallel()
	s := server.Server(t)
	cfg := redis.Config{URL: s.URL(), Prefix: redistest.Prefix(), ReadOnly: true}
	if _, err := redis.Open(t.Context(), cfg); !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), "a read-only gateway makes none") {
		t.Errorf("%v", err)
	}
	if keys := s.Client().Keys(t.Context(), cfg.Prefix+"*").Val(); len(keys) > 0 {
		t.Errorf("%v were made", keys)
	}
}

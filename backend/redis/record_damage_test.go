package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestRecord_DamageStopsNeitherThePurgeNorTheOthers spoils what is stored, as a bug or a
// foreign hand would.
func TestRecord_DamageStopsNeitherThePurgeNorTheOthers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(value string) string{
		"no header":      func(string) string { return "rubbish" },
		"a bad revision": func(v string) string { return "x" + v },
		"malformed references": func(v string) string {
			at := strings.Index(v, "\x02Target") - 2 // where the length of the first one is
			return v[:at] + "\xff" + v[at+1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			st, err := redis.Open(t.Context(), redis.Config{URL: s.URL()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			key := func(i int) backend.Key { return backend.Key{Kind: "Net", Namespace: "ns", Name: fmt.Sprint("k", i)} }
			apply := func(a backend.Action) error {
				_, err := st.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{a}})
				return err
			}
			for i, expires := range []time.Time{st.Now().Add(-2 * time.Second), st.Now().Add(-time.Second), {}} {
				put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}")), ExpiresAt: expires, Declared: "d", Refs: []backend.Ref{toTarget(key(i))}}
				if err := apply(backend.Action{Key: key(i), Op: backend.OpPut, Put: put}); err != nil {
					t.Fatal(err)
				}
			}
			for _, k := range s.Client().Keys(t.Context(), "sluice:i:*").Val() {
				if strings.Contains(k, "k0") || strings.Contains(k, "k2") {
					v := s.Client().Get(t.Context(), k).Val()
					if spoil(v) == v {
						t.Fatal("nothing was spoilt")
					}
					s.Do("SET", k, spoil(v))
				}
			}
			s.Do("ZADD", "sluice:x:{0}", "0", "x\x00")
			if n, err := st.Purge(t.Context()); err != nil || n != 1 {
				t.Errorf("purged %d, %v", n, err)
			}
			if n, err := st.Purge(t.Context()); err != nil || n != 0 {
				t.Errorf("then purged %d, %v", n, err)
			}
			if due := s.Client().ZRangeArgs(t.Context(), goredis.ZRangeArgs{Key: "sluice:x:{0}", ByLex: true, Start: "[x", Stop: "(y"}).Val(); len(due) > 0 {
				t.Errorf("due for ever: %q", due)
			}
			if err := apply(backend.Action{Key: key(2), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}); !errors.Is(err, backend.ErrUnreadable) {
				t.Errorf("a put over it: %v", err)
			}
			if err := apply(backend.Action{Key: key(2), Op: backend.OpDelete}); err != nil {
				t.Errorf("its delete: %v", err)
			}
			target := toTarget(key(0)).Key
			if p, err := st.Range(t.Context(), backend.Range{Referenced: &target, Limit: 10}); err != nil || len(p.Resources) != 0 {
				t.Errorf("%d resources, %v", len(p.Resources), err)
			}
		})
	}
}

func TestRecord_ABatchDeletesSeveralDamagedResources(t *testing.T) {
	t.Parallel()
	s, st := openOwn(t)
	for i := range 3 {
		putOne(t, st, faultKey(0, i), "1", toTarget(faultKey(0, i)))
	}
	for i := range 2 {
		s.Do("SET", "sluice:i:{0}:"+string(faultKey(0, i).Append(nil)), "rubbish")
	}
	for i, want := range []struct{ resources, unreadable int }{{1, 1}, {0, 1}, {1, 0}} { // 0 and 2 are of one kind
		k := faultKey(0, i)
		page, err := st.Range(t.Context(), backend.Range{Kind: k.Kind, Start: backend.OrderTuple(k.Namespace, k.Name), Limit: 1})
		if err != nil || len(page.Resources) != want.resources || len(page.Unreadable) != want.unreadable {
			t.Errorf("from %s: %d resources, %d that do not decode, %v", k, len(page.Resources), len(page.Unreadable), err)
		}
	}
	res, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: faultKey(0, 0), Op: backend.OpDelete},
		backend.Action{Key: faultKey(0, 1), Op: backend.OpDelete}, backend.Action{Key: faultKey(0, 2), Op: backend.OpDelete}))
	if err != nil {
		t.Fatal(err)
	}
	if res.Resources[0].UID != "" || res.Resources[2].UID == "" {
		t.Errorf("last states %+v, %+v", res.Resources[0], res.Resources[2])
	}
	if left := s.Client().ZRange(t.Context(), "sluice:x:{0}", 0, -1).Val(); len(left) > 0 {
		t.Errorf("members %q", left)
	}
	if err := st.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRecord_AServerThatCannotSaveIsRead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	putOne(t, st, faultKey(0, 0), "a")
	_ = st.Close()
	s.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	if st, err = redis.Open(t.Context(), redis.Config{URL: s.URL()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if got, err := st.Get(t.Context(), faultKey(0, 0)); err != nil || got[0] == nil {
		t.Errorf("%v %v", got, err)
	}
}

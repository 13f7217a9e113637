package redis_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestVerify_BesideWriters verifies a store while others create and delete the same names again and again. Its log is
// longer than a page, so names are stored at some pages and absent at others.
func TestVerify_BesideWriters(t *testing.T) {
	t.Parallel()
	st, err := redis.Open(t.Context(), redis.Config{URL: server.Server(t).URL(), Prefix: redistest.Prefix()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	toggle := func(ctx context.Context, name string, create bool) error {
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: name}
		a := backend.Action{Key: k, Op: backend.OpDelete}
		if create {
			a = backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}
		}
		_, err := st.Apply(ctx, batchOf(st, a))
		return err
	}
	// Each writer creates all of its names, then deletes all of them, and so on.
	const writers, names = 4, 30
	write := func(ctx context.Context, w, i int) error {
		return toggle(ctx, fmt.Sprintf("%d-%d", w, i%names), i/names%2 == 0)
	}
	for i := range writers * 8 * names {
		if err := write(t.Context(), i%writers, i/writers); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	for w := range writers {
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := write(ctx, w, i); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		_, err := st.Verify(t.Context(), backend.Verification{Found: func(d backend.Damage) { t.Errorf("%s", d) }})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerify_NamesFieldsThatAHeadLacks(t *testing.T) {
	t.Parallel()
	srv := server.Server(t)
	for _, field := range []string{"run", "replid", "epochs", "count", "bytes", "oldest"} {
		prefix := redistest.Prefix()
		st, err := redis.Open(t.Context(), redis.Config{URL: srv.URL(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: "a"}
		put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}
		if _, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: k, Op: backend.OpPut, Put: put})); err != nil {
			t.Fatal(err)
		}
		srv.Do("HDEL", prefix+"m:{0}", field)
		var found []string
		read, err := st.Verify(t.Context(), backend.Verification{Found: func(d backend.Damage) { found = append(found, d.String()) }})
		if err != nil {
			t.Fatal(err)
		}
		if read.Damaged == 0 || !strings.Contains(strings.Join(found, "\n"), "lacks the field "+field) {
			t.Errorf("without %s it finds %q", field, found)
		}
	}
}

// TestVerify_ReportsARecordThatIsDamagedMeanwhile damages a record after the verification has read it, and before it
// reads it a second time because the index lacks it.
func TestVerify_ReportsARecordThatIsDamagedMeanwhile(t *testing.T) {
	t.Parallel()
	srv := server.Server(t)
	prefix := redistest.Prefix()
	st, err := redis.Open(t.Context(), redis.Config{URL: srv.URL(), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	other := map[string]string{"a": "b", "b": "a"}
	for name := range other {
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: name}
		put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}
		if _, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: k, Op: backend.OpPut, Put: put})); err != nil {
			t.Fatal(err)
		}
	}
	srv.Do("DEL", prefix+"x:{0}")
	spoilt := ""
	var problems []string
	found := func(d backend.Damage) {
		if d.Part == backend.PartRecord && d.Key.Name == spoilt {
			problems = append(problems, d.Problem)
		}
		if spoilt != "" {
			return
		}
		spoilt = other[d.Key.Name]
		k := backend.Key{Kind: "Net", Namespace: "ns", Name: spoilt}
		srv.Do("SET", string(k.Append([]byte(prefix+"i:{0}:"))), "rubbish")
	}
	if _, err := st.Verify(t.Context(), backend.Verification{Found: found}); err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 {
		t.Errorf("of %q it reports %q", spoilt, problems)
	}
}

package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestFetch_PageIsReadInTwoExchanges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for i := range 12 {
		putOne(t, st, faultKey(0, i), fmt.Sprint(i), toTarget(faultKey(0, i)))
	}
	target := toTarget(faultKey(0, 0)).Key
	for _, c := range []struct {
		says string
		read backend.Range
		want []string
	}{
		{"a page by name with more to come", backend.Range{Kind: "Net", Namespace: "ns0", Limit: 5}, []string{"zrange=1", "mget=1"}},
		{"the last page by name", backend.Range{Kind: "Net", Namespace: "ns0", Limit: 6}, []string{"zrange=1", "mget=1"}},
		{"a page over all shards", backend.Range{Kind: "Net", Limit: 5}, []string{"zrange=3", "mget=1"}},
		{"a page of references, bound ones and others", backend.Range{Kind: "Net", Referenced: &target, Limit: 5}, []string{"zrange=2", "mget=1"}},
	} {
		t.Run(c.says, func(t *testing.T) {
			s.Do("CONFIG", "RESETSTAT")
			p, err := st.Range(t.Context(), c.read)
			if err != nil || len(p.Resources) != c.read.Limit || p.More != (c.read.Limit < 6) {
				t.Fatalf("%d resources, more %v, error %v", len(p.Resources), p.More, err)
			}
			stats := s.Client().Info(t.Context(), "commandstats").Val()
			for _, want := range c.want {
				name, calls, _ := strings.Cut(want, "=")
				if !strings.Contains(stats, "cmdstat_"+name+":calls="+calls+",") {
					t.Errorf("no %s calls of %s in:\n%s", calls, name, stats)
				}
			}
		})
	}
}

func TestFetch_ScanOfLargeResourcesReadsLittleAhead(t *testing.T) {
	t.Parallel()
	s, st := openOwn(t)
	const size, n = 75 << 10, 60
	for i := range n {
		putOne(t, st, backend.Key{Kind: "Net", Namespace: "ns", Name: fmt.Sprint("n", i)}, strings.Repeat("x", size))
	}
	sent := func() int {
		_, text, _ := strings.Cut(s.Client().Info(t.Context(), "stats").Val(), "total_net_output_bytes:")
		text, _, _ = strings.Cut(text, "\r\n")
		bytes, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	for try := range 3 {
		before := sent()
		p, err := st.Range(t.Context(), backend.Range{Kind: "Net", Limit: n})
		if err != nil || !p.More || len(p.Resources) < 10 {
			t.Fatalf("%d resources, more %v, error %v", len(p.Resources), p.More, err)
		}
		if got := sent() - before; try > 0 && got > 3*backend.MaxPageBytes {
			t.Errorf("%d bytes were read for a page of at most %d", got, backend.MaxPageBytes)
		}
	}
}

// putOne stores a resource, whatever is there.
func putOne(t *testing.T, st *redis.Store, k backend.Key, body string, refs ...backend.Ref) *backend.Resource {
	t.Helper()
	res, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{
		UID: "u", Caller: true, Declared: "declared", Refs: refs, Body: backend.EncodeBody([]byte(body)),
	}}))
	if err != nil {
		t.Fatal(err)
	}
	return res.Resources[0]
}

// toTarget is a reference to the one target of all resources of a namespace, bound for
// every other name.
func toTarget(k backend.Key) backend.Ref {
	return backend.Ref{Key: backend.Key{Kind: "Target", Namespace: k.Namespace, Name: "t"}, Bound: k.Name[len(k.Name)-1]%2 == 0}
}

// openOwn starts a server and opens a store on it.
func openOwn(t *testing.T) (*redistest.Server, *redis.Store) {
	t.Helper()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return s, st
}

// batchOf has time enough to be judged.
func batchOf(st *redis.Store, actions ...backend.Action) backend.Batch {
	return backend.Batch{RequestID: redistest.Prefix(), Deadline: st.Now().Add(30 * time.Second), Actions: actions}
}

func TestFetch_AGetOfOneKeyAsksForNothingElse(t *testing.T) {
	t.Parallel()
	s, st := openOwn(t)
	putOne(t, st, faultKey(0, 0), "1")
	s.Do("CONFIG", "RESETSTAT")
	for range 5 {
		if got, err := st.Get(t.Context(), faultKey(0, 0)); err != nil || got[0] == nil {
			t.Fatal(got, err)
		}
	}
	stats := s.Client().Info(t.Context(), "commandstats").Val()
	if strings.Contains(stats, "cmdstat_hget:") || !strings.Contains(stats, "cmdstat_mget:calls=5,") {
		t.Errorf("the server was asked %s", stats)
	}
}

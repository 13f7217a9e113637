package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// fill stores n resources of a kind, by the names that name returns.
func fill(t *testing.T, st *redis.Store, n int, name func(int) backend.Key, change func(*backend.Put)) {
	t.Helper()
	byNamespace := map[string][]backend.Action{}
	for i := range n {
		a := backend.Action{Key: name(i), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}
		if change != nil {
			change(&a.Put)
		}
		byNamespace[a.Key.Namespace] = append(byNamespace[a.Key.Namespace], a)
	}
	for _, actions := range byNamespace {
		for batch := range slices.Chunk(actions, backend.MaxWrites) {
			if _, err := st.Apply(t.Context(), batchOf(st, batch...)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func openScan(t *testing.T, cfg redis.Config) *redis.Store {
	t.Helper()
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// A call that reads on in the index while a resource goes from one range to another must
// not be told of two states.
func TestScan_RangesOfACallAreOfOneStateHoweverManyMembersTheyRead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	reader, writer := openScan(t, redis.Config{URL: p.URL()}), openScan(t, redis.Config{URL: s.URL()})
	target := backend.Key{Kind: "Target", Namespace: "z", Name: "t"}
	refer := func(put *backend.Put) { put.Refs, put.Declared = []backend.Ref{{Key: target}}, "declared" }
	fill(t, writer, 1500, func(i int) backend.Key { return backend.Key{Kind: "Net", Namespace: "z", Name: fmt.Sprint("n", i)} },
		func(put *backend.Put) {
			refer(put)
			put.ExpiresAt = writer.Now().Add(-time.Second) // so that a page is not full with them
		})
	write := func(refers bool) {
		put := backend.Put{UID: "u", Declared: "declared", Deleting: !refers, Body: backend.EncodeBody([]byte("{}"))}
		if refers {
			refer(&put)
		}
		a := backend.Action{Key: backend.Key{Kind: "Net", Namespace: "z", Name: "wanted"}, Op: backend.OpPut, Put: put}
		if _, err := writer.Apply(context.Background(), batchOf(writer, a)); err != nil {
			t.Error(err)
		}
	}
	write(true)
	// Before each later look at the references the resource goes to the other range.
	looks, refers := 0, true
	p.Hold(func(args []string) bool {
		if len(args) > 2 && strings.EqualFold(args[0], "zrange") && strings.HasPrefix(args[2], "(r\x02Target") {
			looks++
			refers = !refers
			write(refers)
		}
		return false
	})
	for range 10 {
		pages, err := reader.Ranges(t.Context(), []backend.Range{{Kind: "Net", Referenced: &target, Limit: 10}, {Kind: "Net", Deleting: true, Limit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if found, other := len(pages[0].Resources) == 1, len(pages[1].Resources) == 1; found == other {
			t.Fatalf("found by its reference: %v, by its deletion: %v", found, other)
		}
	}
	if looks == 0 {
		t.Error("no range was read in several steps")
	}
}

// The third time members and resources are read in one step of the server.
func TestScan_AResourceThatMovesWheneverItIsReadIsFoundInTheEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	reader, writer := openScan(t, redis.Config{URL: p.URL()}), openScan(t, redis.Config{URL: s.URL()})
	target := backend.Key{Kind: "Target", Namespace: "z", Name: "t"}
	refer := func(put *backend.Put, bound bool) {
		put.Refs, put.Declared = []backend.Ref{{Key: target, Bound: bound}}, "declared"
	}
	fill(t, writer, 700, func(i int) backend.Key { return backend.Key{Kind: "Net", Namespace: "z", Name: fmt.Sprint("n", i)} },
		func(put *backend.Put) { refer(put, len(put.Body)%2 == 0) })
	moves := 0
	move := func() {
		moves++
		put := backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}
		refer(&put, moves%2 == 0)
		if _, err := writer.Apply(context.Background(), batchOf(writer, backend.Action{Key: backend.Key{Kind: "Net", Namespace: "z", Name: "moving"}, Op: backend.OpPut, Put: put})); err != nil {
			t.Error(err)
		}
	}
	move()
	p.Hold(func(args []string) bool {
		if strings.EqualFold(args[0], "mget") {
			move()
		}
		return false
	})
	for _, r := range []backend.Range{{Referenced: &target}, {Kind: "Net", Referenced: &target, Reverse: true}, {Kind: "Net", Namespace: "z"}} {
		r.Limit = backend.MaxLimit
		for range 5 {
			got, err := reader.Range(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Resources) != 701 || !slices.ContainsFunc(got.Resources, func(r *backend.Resource) bool { return r.Name == "moving" }) {
				t.Errorf("%+v: not among %d resources", r, len(got.Resources))
			}
		}
	}
}

func TestScan_LargeResourcesAreReadWithinTheBoundWhateverWasReadBefore(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st := openScan(t, redis.Config{URL: s.URL(), LogEntries: 1})
	small := func(i int) backend.Key { return backend.Key{Kind: "Small", Namespace: "ns", Name: fmt.Sprint("n", i)} }
	fill(t, st, 300, small, nil)
	if _, err := st.Range(t.Context(), backend.Range{Kind: "Small", Limit: 300}); err != nil {
		t.Fatal(err)
	}
	const n, large = 60, 100_000
	keys := make([]backend.Key, n)
	for i := range keys {
		keys[i] = backend.Key{Kind: "Large", Namespace: "ns", Name: fmt.Sprintf("n%02d", i)}
		putOne(t, st, keys[i], strings.Repeat("x", large))
	}
	for says, read := range map[string]func() (int, error){
		"a page": func() (int, error) {
			p, err := st.Range(t.Context(), backend.Range{Kind: "Large", Limit: n})
			return len(p.Resources), err
		},
		"a get of many": func() (int, error) {
			got, err := st.Get(t.Context(), keys...)
			return len(got), err
		},
		"pages of several ranges": func() (int, error) {
			pages, err := st.Ranges(t.Context(), []backend.Range{{Kind: "Large", Limit: n}, {Kind: "Small", Limit: 1}})
			return len(pages[0].Resources), err
		},
	} {
		before := serverInfo(t, s, "stats", "total_net_output_bytes")
		got, err := read()
		if err != nil || got != backend.MaxPageBytes/large {
			t.Errorf("%s: %d resources, error %v", says, got, err)
		}
		if sent := serverInfo(t, s, "stats", "total_net_output_bytes") - before; sent > backend.MaxPageBytes+2<<20 {
			t.Errorf("%s: %d bytes were read for at most %d", says, sent, backend.MaxPageBytes)
		}
	}
}

func TestScan_APageOverManyShardsReadsTheRecordsOfOnePage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st := openScan(t, redis.Config{URL: s.URL(), Shards: manyShards})
	const namespaces, each = 100, 64
	fill(t, st, namespaces*each, func(i int) backend.Key {
		return backend.Key{Kind: "Net", Namespace: fmt.Sprintf("ns%03d", i%namespaces), Name: fmt.Sprintf("n%05d", i)}
	}, func(put *backend.Put) { put.Deleting = true })
	for _, r := range []backend.Range{{Kind: "Net"}, {Kind: "Net", Deleting: true}, {Kind: "Net", Reverse: true}} {
		for _, r.Limit = range []int{20, 500} {
			before := serverInfo(t, s, "stats", "keyspace_hits")
			p, err := st.Range(t.Context(), r)
			if err != nil || len(p.Resources) != r.Limit || !p.More {
				t.Fatalf("%+v: %d resources, more %v, error %v", r, len(p.Resources), p.More, err)
			}
			// Besides the records, the index and the meta of each shard.
			if read := serverInfo(t, s, "stats", "keyspace_hits") - before - 2*manyShards; read > r.Limit+1 {
				t.Errorf("%+v: %d records were read", r, read)
			}
		}
	}
}

func TestScan_ACountDoesNotReadWhatWaitsToBePurged(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st := openScan(t, redis.Config{URL: s.URL(), LogEntries: 1})
	const n = 3000
	name := func(kind, namespace string) func(int) backend.Key {
		return func(i int) backend.Key {
			return backend.Key{Kind: kind, Namespace: namespace, Name: fmt.Sprintf("n%05d", i)}
		}
	}
	target := backend.Key{Kind: "Target", Namespace: "a", Name: "t"}
	refer := func(put *backend.Put) {
		put.Deleting = true
		put.Declared, put.Refs = "declared", []backend.Ref{{Key: target}}
	}
	fill(t, st, n, name("Token", "a"), func(put *backend.Put) {
		refer(put)
		put.ExpiresAt = st.Now().Add(-time.Second)
	})
	fill(t, st, 7, name("Token", "a"), refer)
	fill(t, st, 5, name("Token", "b"), nil)
	fill(t, st, 3, name("Other", "a"), refer)
	for _, c := range []struct {
		says    string
		read    backend.Range
		want    int
		records int // the most that may be read
	}{
		{"of another kind", backend.Range{Kind: "Other"}, 3, 0},
		{"of another kind, in the namespace", backend.Range{Kind: "Other", Namespace: "a"}, 3, 0},
		{"of another kind, being deleted", backend.Range{Kind: "Other", Deleting: true}, 3, 0},
		{"of another kind, by reference", backend.Range{Kind: "Other", Referenced: &target}, 3, 0},
		{"of the kind", backend.Range{Kind: "Token"}, 12, 0},
		{"of the kind, in another namespace", backend.Range{Kind: "Token", Namespace: "b"}, 5, 5},
		{"of the kind, in the namespace", backend.Range{Kind: "Token", Namespace: "a"}, 7, 0},
		{"of the kind, being deleted", backend.Range{Kind: "Token", Deleting: true}, 7, n},
		{"of the kind, by reference", backend.Range{Kind: "Token", Referenced: &target}, 7, n},
	} {
		c.read.Count = true
		before := serverInfo(t, s, "stats", "keyspace_hits")
		p, err := st.Range(t.Context(), c.read)
		if err != nil || p.Count != c.want {
			t.Errorf("%s: %d, error %v, want %d", c.says, p.Count, err, c.want)
		}
		// The index is looked at a few times, for every chunk of the expiries once more.
		if read := serverInfo(t, s, "stats", "keyspace_hits") - before; read > c.records+30 {
			t.Errorf("%s: %d records were read, want at most %d", c.says, read, c.records)
		}
	}
}

package redis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// newer writes into a store of one shard as a release of the same format does
// that knows more than this one.
type newer struct {
	*testing.T
	server *redistest.Server
	prefix string
}

// sumsBytes is how long the sums of a record are, before the references.
const sumsBytes = 12

// newerExt is what only a newer release knows of a record.
const newerExt = "compressed=1;owner=someone"

func (n *newer) item(k backend.Key) string { return n.prefix + "i:{0}:" + string(k.Append(nil)) }

// element is one of a list in a record or an entry.
func element(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }

// modify adds to a resource all that a newer release may add.
func (n *newer) modify(k backend.Key) {
	n.Helper()
	meta := n.server.Client().HGetAll(n.Context(), n.prefix+"m:{0}").Val()
	seq, _ := strconv.Atoi(meta["seq"])
	id := fmt.Sprint(meta["epoch"], "-", seq+1)
	before := strings.SplitN(n.server.Client().Get(n.Context(), n.item(k)).Val(), "\n", 15)
	field := slices.Clone(before)
	field[0], field[4], field[13] = id, before[0], newerExt
	refs, _ := strconv.Atoi(field[8])
	bound, _ := strconv.Atoi(field[9])
	length, _ := strconv.Atoi(field[10])
	rest := field[14][sumsBytes:]
	record := redis.SealRecord(k, strings.Join(field[:14], "\n")+"\n", rest[:length], rest[length:])
	weight := len(k.Kind+k.Namespace+k.Name) + len(rest) - length + refs + bound + 128 + 64
	head := fmt.Sprintf("m\n%d\n%s\nnewer\n\n%s\n%s\n%s\n%s\n\n%s", weight, field[1], before[0], before[1], before[2], before[3], k.Append(nil))
	head = redis.SealHead(id, head)
	pipe := n.server.Client().TxPipeline()
	pipe.Do(n.Context(), "XADD", n.prefix+"c:{0}", id, "h", head, "d", record, "t", "a field of a newer release")
	pipe.Set(n.Context(), n.item(k), record, 0)
	pipe.HSet(n.Context(), n.prefix+"m:{0}", "seq", seq+1, "future", "a field of a newer release")
	pipe.HIncrBy(n.Context(), n.prefix+"m:{0}", "count", 1)
	pipe.HIncrBy(n.Context(), n.prefix+"m:{0}", "bytes", int64(weight))
	if _, err := pipe.Exec(n.Context()); err != nil {
		n.Fatal(err)
	}
}

// kept wants a resource to have what only the newer release knows.
func (n *newer) kept(k backend.Key) {
	n.Helper()
	record := n.server.Client().Get(n.Context(), n.item(k)).Val()
	if want := "\n" + newerExt + "\n"; strings.Count(record, want) != 1 {
		n.Errorf("%q is not once in %q", want, record)
	}
}

func TestStore_WhatANewerReleaseWroteSurvives(t *testing.T) {
	t.Parallel()
	n := &newer{T: t, server: server.Server(t), prefix: redistest.Prefix()}
	cfg := redis.Config{URL: n.server.URL(), Prefix: n.prefix}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	k := backend.Key{Kind: "Net", Namespace: "default", Name: "n"}
	putOne(t, st, k, "1", toTarget(k))
	w, err := st.Watch(t.Context(), backend.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.modify(k)

	t.Run("it is read and delivered", func(t *testing.T) {
		d, err := w.Next(t.Context())
		if err != nil || len(d.Events) != 1 {
			t.Fatalf("%d events, error %v", len(d.Events), err)
		}
		target := toTarget(k).Key
		for _, r := range []backend.Range{{Kind: "Net", Limit: 10}, {Referenced: &target, Limit: 10}} {
			p, err := st.Range(t.Context(), r)
			if err != nil || len(p.Resources) != 1 {
				t.Fatalf("%+v: %d resources, error %v", r, len(p.Resources), err)
			}
			if d := cmp.Diff(d.Events[0].Resource, p.Resources[0]); d != "" {
				t.Errorf("delivered -, read +:\n%s", d)
			}
		}
		n.kept(k)
	})
	t.Run("an update keeps it", func(t *testing.T) {
		for i := range 3 { // without references, with one, and with the same
			putOne(t, st, k, fmt.Sprint("2-", i), []backend.Ref{toTarget(k)}[:min(i, 1)]...)
			n.kept(k)
		}
	})
	t.Run("a rebind keeps it", func(t *testing.T) {
		found, err := st.Get(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		a := backend.Action{Key: k, Op: backend.OpRebind, If: backend.Condition{Revision: found[0].Revision, BindingVersion: found[0].BindingVersion}, Put: backend.Put{Declared: "others"}}
		if _, err := st.Apply(t.Context(), batchOf(st, a)); err != nil {
			t.Fatal(err)
		}
		n.kept(k)
	})
	t.Run("a new epoch keeps it", func(t *testing.T) {
		again, err := redis.OpenAnew(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		putOne(t, again, k, "3", toTarget(k))
		n.kept(k)
		if v := n.server.Client().HGet(t.Context(), n.prefix+"m:{0}", "future").Val(); v == "" {
			t.Error("the field of the meta is gone")
		}
	})
	t.Run("a delete leaves nothing of it", func(t *testing.T) {
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: k, Op: backend.OpDelete})); err != nil {
			t.Fatal(err)
		}
		if left := n.server.Client().ZRange(t.Context(), n.prefix+"x:{0}", 0, -1).Val(); len(left) > 0 {
			t.Errorf("members %q", left)
		}
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two releases that share a store write in turn.
func TestStore_TwoReleasesShareAStore(t *testing.T) {
	t.Parallel()
	n := &newer{T: t, server: server.Server(t), prefix: redistest.Prefix()}
	st := openLate(t, n.server.URL(), n.prefix)
	from, err := st.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	const keys = 4
	for i := range keys {
		putOne(t, st, faultKey(0, i), "0")
	}
	written := keys
	for i := range 60 {
		k := faultKey(0, rnd.IntN(keys))
		if rnd.IntN(2) == 0 {
			n.modify(k)
			n.kept(k)
			putOne(t, st, k, fmt.Sprint(i))
			written++
		} else {
			putOne(t, st, k, fmt.Sprint(i), toTarget(k))
		}
		written++
	}
	w, err := st.Watch(t.Context(), backend.Watch{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	state := map[backend.Key]*backend.Resource{}
	for seen := 0; seen < written; {
		d, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(d.Events)
		for _, e := range d.Events {
			state[e.Resource.Key] = e.Resource
		}
	}
	now, err := list(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(now, state); d != "" {
		t.Errorf("stored -, delivered +:\n%s", d)
	}
	if err := st.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

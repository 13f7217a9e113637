package redis_test

import (
	"fmt"
	"math/rand/v2"
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

// The things that this release does not know.
const (
	newerExt    = "compressed=1;owner=someone"
	newerRow    = "\x02future\x00\x02value\x00"
	newerMiddle = "\x02what only a newer release reads\x00"
)

func (n *newer) item(k backend.Key) string { return n.prefix + "i:{0}:" + string(k.Append(nil)) }

// entry is one of a record, of any type.
func entry(kind byte, middle string) string {
	return string([]byte{kind, byte(len(middle) >> 8), byte(len(middle))}) + middle
}

// members that such a release makes of its entries.
func (n *newer) members(k backend.Key) []string {
	return []string{
		"i" + string(backend.AppendString(nil, k.Kind)) + newerRow + string(backend.OrderTuple(k.Namespace, k.Name)),
		"q" + newerMiddle + string(k.Append(nil)),
	}
}

// modify adds to a resource all that a newer release may add.
func (n *newer) modify(k backend.Key) {
	n.Helper()
	meta := n.server.Client().HGetAll(n.Context(), n.prefix+"m:{0}").Val()
	seq, _ := strconv.Atoi(meta["seq"])
	id := fmt.Sprint(meta["epoch"], "-", seq+1)
	field := strings.SplitN(n.server.Client().Get(n.Context(), n.item(k)).Val(), "\n", 17)
	length, _ := strconv.Atoi(field[10])
	before, body := field[16][:length], field[16][length:]
	entries := before + entry('i', newerRow)
	if !strings.Contains(before, entry('q', newerMiddle)) {
		entries += entry('q', newerMiddle)
	}
	rows := len("future") + len(newerRow) - len("\x02future\x00")
	size, _ := strconv.Atoi(field[8])
	rowsize, _ := strconv.Atoi(field[9])
	field[0], field[8], field[9], field[10], field[15] = id, fmt.Sprint(size+rows), fmt.Sprint(rowsize+rows), fmt.Sprint(len(entries)), newerExt
	record := strings.Join(field[:16], "\n") + "\n" + entries + body
	weight := size + rows + rowsize + 64
	head := fmt.Sprintf("m\n%d\n%s\nnewer\n%s", weight, field[4], k.Append(nil))
	pipe := n.server.Client().TxPipeline()
	pipe.Do(n.Context(), "XADD", n.prefix+"c:{0}", id, "h", head, "d", record, "b", before, "t", "a field of a newer release")
	pipe.Set(n.Context(), n.item(k), record, 0)
	for _, m := range n.members(k) {
		pipe.Do(n.Context(), "ZADD", n.prefix+"x:{0}", 0, m)
	}
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
	for _, want := range []string{"\n" + newerExt + "\n", entry('q', newerMiddle)} {
		if strings.Count(record, want) != 1 {
			n.Errorf("%q is not once in %q", want, record)
		}
	}
	if err := n.server.Client().ZScore(n.Context(), n.prefix+"x:{0}", n.members(k)[1]).Err(); err != nil {
		n.Errorf("its member: %v", err)
	}
}

func TestWhatANewerReleaseWroteSurvives(t *testing.T) {
	t.Parallel()
	n := &newer{T: t, server: server.Server(t), prefix: redistest.Prefix()}
	cfg := redis.Config{URL: n.server.URL(), Prefix: n.prefix}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	k := backend.Key{Kind: "Net", Namespace: "default", Name: "n"}
	color := func(i int64) backend.Row { return backend.Row{Index: "color", Value: backend.AppendInt(nil, i)} }
	putOne(t, st, k, "1", color(1))
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
		for _, index := range []string{"", "color", "future"} {
			p, err := st.Range(t.Context(), backend.Range{Kind: "Net", Index: index, Limit: 10})
			if err != nil || len(p.Resources) != 1 {
				t.Fatalf("by %q: %d resources, error %v", index, len(p.Resources), err)
			}
			if d := cmp.Diff(d.Events[0].Resource, p.Resources[0]); d != "" {
				t.Errorf("delivered -, read +:\n%s", d)
			}
			if rows := p.Resources[0].Rows; len(rows) != 2 || rows[1].Index != "future" {
				t.Errorf("rows %v", rows)
			}
		}
		n.kept(k)
	})
	t.Run("an update keeps it", func(t *testing.T) {
		for i := range int64(3) { // other rows, then the same
			putOne(t, st, k, fmt.Sprint("2-", i), color(min(i, 1)))
			n.kept(k)
		}
	})
	t.Run("a reindex keeps it", func(t *testing.T) {
		found, err := st.Get(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		a := backend.Action{Key: k, Op: backend.OpReindex, If: backend.Condition{Revision: found[0].Revision}, Put: backend.Put{Fingerprint: "f", Rows: []backend.Row{color(7)}}}
		if _, err := st.Apply(t.Context(), batchOf(st, a)); err != nil {
			t.Fatal(err)
		}
		n.kept(k)
	})
	t.Run("a new epoch keeps it", func(t *testing.T) {
		again, err := redis.Open(t.Context(), redis.ForTest(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		putOne(t, again, k, "3", color(1))
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
func TestTwoReleasesShareAStore(t *testing.T) {
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
			putOne(t, st, k, fmt.Sprint(i), backend.Row{Index: "color", Value: backend.AppendInt(nil, rnd.Int64N(3))})
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

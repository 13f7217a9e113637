package redis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// A put alone takes a shorter way through the script than a batch does.
func TestPutAloneIsWhatItIsInABatch(t *testing.T) {
	t.Parallel()
	s := server.Server(t)
	var dumps [2][]string
	for way := range dumps {
		prefix := redistest.Prefix()
		var ms atomic.Int64
		ms.Store(1_750_000_000_000)
		clock := func() time.Time { return time.UnixMilli(ms.Load()).UTC() }
		st, err := redis.Open(t.Context(), redis.Config{
			URL: s.URL(), Prefix: prefix, Clock: clock, Rand: rand.New(rand.NewPCG(1, 1)), LogEntries: 40, LogSlack: 3,
			LogAge: 3 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		rnd := rand.New(rand.NewPCG(2, 2))
		var said []string
		for i := range 400 {
			b := backend.Batch{RequestID: fmt.Sprint("r", i), Deadline: clock().Add(time.Minute), Actions: []backend.Action{randomPut(rnd, st, t)}}
			ms.Add(rnd.Int64N(4) * rnd.Int64N(500))
			if way == 1 {
				b.Actions = append(b.Actions, backend.Action{
					Key: backend.Key{Kind: "Absent", Namespace: "ns", Name: "n"}, If: backend.Condition{Presence: backend.Absent},
				})
			}
			res, err := st.Apply(t.Context(), b)
			if err != nil {
				said = append(said, err.Error())
				continue
			}
			trimmed := s.Client().HGet(t.Context(), prefix+"m:{0}", "trimmed").Val()
			said = append(said, fmt.Sprintf("%+v, trimmed to %s", res.Resources[0], trimmed))
		}
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
		keys := s.Client().Keys(t.Context(), prefix+"*").Val()
		slices.Sort(keys)
		for _, key := range keys {
			dump, err := s.Client().Dump(t.Context(), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(key, prefix)
			switch name[0] {
			case 'm':
				dump = fmt.Sprint(s.Client().HGetAll(t.Context(), key).Val())
			case 'c':
				dump = fmt.Sprint(s.Client().XRange(t.Context(), key, "-", "+").Val())
			case 'x':
				dump = fmt.Sprintf("%q", s.Client().ZRange(t.Context(), key, 0, -1).Val())
			}
			said = append(said, fmt.Sprintf("%q is %q", name, dump))
		}
		dumps[way] = said
	}
	if d := cmp.Diff(dumps[0], dumps[1]); d != "" {
		t.Errorf("alone -, in a batch +:\n%s", d)
	}
}

// randomPut is of few keys, with rows, conditions, expiry, deletion and finalizers that
// come and go.
func randomPut(rnd *rand.Rand, st *redis.Store, t *testing.T) backend.Action {
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: fmt.Sprint("n", rnd.IntN(6))}
	if rnd.IntN(4) == 0 {
		k.Kind = "_lease"
	}
	a := backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{
		UID: fmt.Sprint("u", rnd.IntN(2)), Caller: rnd.IntN(2) == 0, Fingerprint: "f", Deleting: rnd.IntN(4) == 0,
		Body: backend.EncodeBody(fmt.Append(nil, rnd.IntN(1000))),
	}}
	if rnd.IntN(3) > 0 {
		a.Put.Rows = []backend.Row{{Index: "color", Value: backend.AppendInt(nil, rnd.Int64N(2))}}
	}
	if rnd.IntN(8) == 0 {
		a.Put.ExpiresAt = st.Now().Add(time.Duration(rnd.IntN(2)) * time.Hour)
	}
	if rnd.IntN(3) == 0 {
		a.Put.Finalizers = new(rnd.IntN(3))
	}
	a.If.Unfinalized = rnd.IntN(5) == 0
	switch rnd.IntN(5) {
	case 0:
		a.If.Presence = backend.Absent
	case 1:
		a.If.Presence = backend.Present
	case 2:
		a.If.UID = fmt.Sprint("u", rnd.IntN(2))
	}
	switch rnd.IntN(6) {
	case 0:
		a.If.NotDeleting = true
	case 1:
		a.If.Deleting = true
	case 2:
		if found, err := st.Get(t.Context(), k); err == nil && found[0] != nil {
			a.If.Revision = found[0].Revision
			a.If.Revision.Seq -= uint64(rnd.IntN(2))
		}
	}
	if a.If.Presence == backend.Absent {
		a.If = backend.Condition{Presence: backend.Absent}
	}
	return a
}

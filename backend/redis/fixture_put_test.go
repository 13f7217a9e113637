package redis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
)

// randomPut is of few keys, with references, conditions, expiry, deletion and finalizers that
// come and go.
func randomPut(rnd *rand.Rand, st *redis.Store, t *testing.T) backend.Action {
	k := backend.Key{Kind: "Net", Namespace: "ns", Name: fmt.Sprint("n", rnd.IntN(6))}
	if rnd.IntN(4) == 0 {
		k.Kind = "_lease"
	}
	a := backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{
		UID: fmt.Sprint("u", rnd.IntN(2)), Caller: rnd.IntN(2) == 0, Deleting: rnd.IntN(4) == 0,
		Body: backend.EncodeBody(fmt.Append(nil, rnd.IntN(1000))),
	}}
	if rnd.IntN(3) > 0 {
		a.Put.Declared = "declared"
		for i := range rnd.IntN(3) {
			a.Put.Refs = append(a.Put.Refs, backend.Ref{Key: backend.Key{Kind: "Target", Namespace: "ns", Name: fmt.Sprint("t", i)}, Bound: rnd.IntN(2) == 0})
		}
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

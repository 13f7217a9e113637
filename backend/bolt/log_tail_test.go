package bolt_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
)

func TestLog_ATailHasTheNewestChangesInBoundedRoom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var tail bolt.Tail
	resource := &backend.Resource{Key: backend.Key{Kind: "Network", Name: "a"}}
	for seq := uint64(0); seq < 10*bolt.TailEntries; {
		group := make([]backend.Event, 1+rnd.IntN(128))
		for i := range group {
			seq++
			group[i] = backend.Event{Type: backend.Added, Resource: resource, Revision: backend.Revision{Epoch: 1, Seq: seq}}
		}
		tail.Append(group)
		events, base, room := tail.State()
		first := seq - min(seq, bolt.TailEntries)
		if uint64(len(events)) != seq-first || first > 0 && base.Seq != first {
			t.Fatalf("after change %d there are %d changes behind %d, want %d behind %d", seq, len(events), base.Seq, seq-first, first)
		}
		for i, e := range events {
			if e.Revision.Seq != first+uint64(i)+1 {
				t.Fatalf("change %d of %d has the revision %d", i, len(events), e.Revision.Seq)
			}
		}
		if room > 3*bolt.TailEntries {
			t.Fatalf("there is room for %d changes", room)
		}
	}
}

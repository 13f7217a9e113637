package storekit

import (
	"hash/maphash"

	"github.com/sluicegw/sluice/backend"
)

// progressStep is how many records, entries or changes are read between two calls of [backend.Verification.Progress].
const progressStep = 10_000

// Inspector counts what a verification reads, and passes on what it finds.
type Inspector struct {
	backend.Verification
	Verified backend.Verified
}

// Tell reports damage.
func (i *Inspector) Tell(d backend.Damage) {
	i.Verified.Damaged++
	i.Found(d)
}

// Count adds one to a counter of i.Verified.
func (i *Inspector) Count(counter *int64) {
	*counter++
	if i.Progress != nil && *counter%progressStep == 0 {
		i.Progress(i.Verified)
	}
}

// Absent holds the keys that a log left stored and that are not. It keeps hashes, since a log may have many.
type Absent struct {
	seed maphash.Seed
	keys map[uint64]struct{}
}

// NewAbsent returns an empty set.
func NewAbsent() *Absent { return &Absent{seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}} }

func (a *Absent) hash(k backend.Key) uint64 { return maphash.Bytes(a.seed, k.Append(nil)) }

// Note takes a log entry of a key under which nothing is stored: the last one has to be its deletion.
func (a *Absent) Note(e *backend.Event) {
	if e.Type == backend.Deleted {
		delete(a.keys, a.hash(e.Resource.Key))
	} else {
		a.keys[a.hash(e.Resource.Key)] = struct{}{}
	}
}

// Take reports whether the log left a key stored, and forgets it.
func (a *Absent) Take(k backend.Key) bool {
	h := a.hash(k)
	_, has := a.keys[h]
	delete(a.keys, h)
	return has
}

// Len is the number of keys.
func (a *Absent) Len() int { return len(a.keys) }

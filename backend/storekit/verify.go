package storekit

import (
	"hash/maphash"

	"github.com/sluicegw/sluice/backend"
)

// progressStep is how many records, entries or changes are read between two calls of [backend.Verification.Progress].
const progressStep = 10_000

// Inspector counts what a verification reads, and reports damage.
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

// Absent is the set of keys that are stored according to the log, and are not. It keeps hashes,
// since a log may have many keys.
type Absent struct {
	seed maphash.Seed
	keys map[uint64]struct{}
}

// NewAbsent returns an empty set.
func NewAbsent() *Absent { return &Absent{seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}} }

func (a *Absent) hash(k backend.Key) uint64 { return maphash.Bytes(a.seed, k.Append(nil)) }

// Note takes a log entry for a key that is not stored. The last entry must be a deletion.
func (a *Absent) Note(e *backend.Event) {
	if e.Type == backend.Deleted {
		delete(a.keys, a.hash(e.Resource.Key))
	} else {
		a.keys[a.hash(e.Resource.Key)] = struct{}{}
	}
}

// Take reports whether the key is in the set, and removes it.
func (a *Absent) Take(k backend.Key) bool {
	h := a.hash(k)
	_, has := a.keys[h]
	delete(a.keys, h)
	return has
}

// Len returns the number of keys.
func (a *Absent) Len() int { return len(a.keys) }

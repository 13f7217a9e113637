package storekit

import (
	"hash/maphash"

	"github.com/sluicegw/sluice/backend"
)

// progressStep is the number of records, entries or changes that are read between two calls of
// [backend.Verification.Progress].
const progressStep = 10_000

// Inspector counts what a verification has read, and reports damage.
type Inspector struct {
	backend.Verification
	Verified backend.Verified
}

// Report counts the damage and passes it to Found.
func (i *Inspector) Report(d backend.Damage) {
	i.Verified.Damaged++
	i.Found(d)
}

// Count increments a counter of i.Verified, and calls Progress from time to time.
func (i *Inspector) Count(counter *int64) {
	*counter++
	if i.Progress != nil && *counter%progressStep == 0 {
		i.Progress(i.Verified)
	}
}

// Absent is a set of keys that have an entry in the log but no stored record. It stores only hashes of the keys,
// because there may be many.
type Absent struct {
	seed maphash.Seed
	keys map[uint64]struct{}
}

// NewAbsent returns an empty set.
func NewAbsent() *Absent { return &Absent{seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}} }

func (a *Absent) hash(k backend.Key) uint64 { return maphash.Bytes(a.seed, k.Append(nil)) }

// Note adds the key of a log entry without a stored record. If the entry is a deletion, it removes the key instead. It
// must be called in the order of the log.
func (a *Absent) Note(e *backend.Event) {
	if e.Type == backend.Deleted {
		delete(a.keys, a.hash(e.Resource.Key))
	} else {
		a.keys[a.hash(e.Resource.Key)] = struct{}{}
	}
}

// Take removes a key from the set and reports whether the set had it.
func (a *Absent) Take(k backend.Key) bool {
	h := a.hash(k)
	_, has := a.keys[h]
	delete(a.keys, h)
	return has
}

// Len returns the number of keys.
func (a *Absent) Len() int { return len(a.keys) }

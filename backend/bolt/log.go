package bolt

import (
	"bytes"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// The maximum number and size of the changes in the tail.
const (
	tailEntries = 4096
	tailBytes   = 16 << 20
)

// readBytes is the number of bytes after which a read of the log takes no further entry from the file.
const readBytes = 8 << 20

// tail has the newest changes in memory, so that watchers that keep up never read the file.
type tail struct {
	// base is the revision before the first event.
	base   backend.Revision
	events []backend.Event
	bytes  int
}

// reset empties the tail after the file was reopened. old and now are the states of the log before and after that.
func (t *tail) reset(old, now *storekit.LogState) {
	*t = tail{base: now.Head()}
	// If the log ends where it ended before, there is no change between the old head and the new one.
	if head := old.Head(); len(now.Epochs) > 1 && now.Epochs[len(now.Epochs)-2] == head {
		t.base = head
	}
}

// append adds changes, and drops the oldest ones if there are too many.
func (t *tail) append(events []backend.Event) {
	t.events = append(t.events, events...)
	for i := range events {
		t.bytes += events[i].Size()
	}
	n := 0
	for n < len(t.events) && (len(t.events)-n > tailEntries || t.bytes > tailBytes) {
		t.bytes -= t.events[n].Size()
		n++
	}
	if n > 0 {
		t.base = t.events[n-1].Revision
		clear(t.events[:n])
		t.events = t.events[n:]
	}
}

// covers reports whether the tail has all changes after r.
func (t *tail) covers(r backend.Revision) bool { return r.Compare(t.base) >= 0 }

// after returns at most limit changes after r. The tail must cover r.
func (t *tail) after(r backend.Revision, limit int) []backend.Event {
	if limit == 0 {
		return nil
	}
	from, found := slices.BinarySearchFunc(
		t.events, r, func(e backend.Event, r backend.Revision) int { return e.Revision.Compare(r) },
	)
	if found {
		from++
	}
	return slices.Clone(t.events[from:min(from+limit, len(t.events))])
}

// readEntries reads the log from the file up to the head in state, which must not be newer than the transaction. It
// sets state.Trimmed to where the log now begins. If an entry is missing or does not decode, the entries before it are
// returned, or ErrPositionExpired if there are none.
func readEntries(tx *bbolt.Tx, state *storekit.LogState, after backend.Revision, limit int) ([]backend.Event, error) {
	log, err := readLogRecord(tx)
	if err != nil {
		return nil, err
	}
	state.Trimmed = log.State.Trimmed
	if state.Resume(after) != nil {
		return nil, nil
	}
	end := backend.Successor(entryKey(state.Head()))
	var events []backend.Event
	size := 0
	cursor := tx.Bucket([]byte(logBucket)).Cursor()
	k, v := cursor.Seek(backend.Successor(entryKey(after)))
	for at := after; k != nil && bytes.Compare(k, end) < 0 && len(events) < limit &&
		size < readBytes; k, v = cursor.Next() {
		rev, err := decodeEntryKey(k)
		if err != nil || !state.Follows(at, rev) {
			break
		}
		e, err := decodeEvent(rev, v)
		if err != nil {
			break
		}
		at = rev
		size += len(v)
		events = append(events, e)
	}
	if len(events) == 0 && limit > 0 && state.Behind(after) > 0 {
		return nil, backend.ErrPositionExpired
	}
	return events, nil
}

package mirror

import (
	"maps"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// keepDeletions is for how long deletions are remembered: longer than a look or a write takes.
const keepDeletions = 2 * time.Minute

// deletions are the keys whose records were deleted lately, with the times at which this gateway knew. A record that is
// absent, as it was when a look began, may have been there meanwhile and gone again: then what the look has found may
// be older than what was there. It is safe for concurrent use; the zero value is empty.
//
//	look: no record, the service shows A ------------------------------------> A is not added: it may be gone
//	others:         A is added ... A is deleted, B is added ... B is deleted
type deletions struct {
	mu    sync.Mutex // guards all below
	at    map[backend.Key]time.Time
	swept time.Time
}

// note notes that the record of a key was deleted.
func (d *deletions) note(key backend.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.at == nil || now.Sub(d.swept) > keepDeletions {
		maps.DeleteFunc(d.at, func(_ backend.Key, at time.Time) bool { return now.Sub(at) > keepDeletions })
		d.swept = now
	}
	if d.at == nil {
		d.at = map[backend.Key]time.Time{}
	}
	d.at[key] = now
}

// since reports whether the record of a key was deleted at a time or after it.
func (d *deletions) since(key backend.Key, begin time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, deleted := d.at[key]
	return deleted && !at.Before(begin)
}

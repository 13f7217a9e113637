package mirror

import (
	"maps"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// keepDeletions is how long deletions are remembered. It must be longer than the time that a look or a write takes.
const keepDeletions = 2 * time.Minute

// deletions remembers recently deleted records, with the times at which this gateway learned of the deletions. If a
// look finds no record, it has no revision by which to notice later that the record has changed. The record may have
// been added and deleted meanwhile. Then the result of the look is older than the deletion:
//
//	look: no record, the service shows A ------------------------------------> A is not added: it may be gone
//	others:         A is added ... A is deleted, B is added ... B is deleted
//
// It is safe for concurrent use. The zero value is empty.
type deletions struct {
	mu    sync.Mutex // guards all below
	at    map[backend.Key]time.Time
	swept time.Time
}

// note remembers that the record of a key was deleted.
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

// since reports whether the record of a key was deleted at or after begin.
func (d *deletions) since(key backend.Key, begin time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, deleted := d.at[key]
	return deleted && !at.Before(begin)
}

package memory

import (
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of one commit.
const (
	purgeRound = 256
	trimRound  = 256
)

// Data is the contents of a store. It is made by Open or as &Data{}, and only
// one Open at a time may use it.
type Data struct {
	mu sync.RWMutex // guards all below but changed
	// handles counts the open Store values.
	handles int
	// resources are keyed by Key.Append, rows by AppendRowKey, expiry by (ms, key).
	resources, rows, expiry btree.Map[string, *backend.Resource]
	// log is ordered by revision; logBytes is the sum of its sizes.
	log      []backend.Event
	logBytes int64
	state    backend.LogState
	changed  backend.Broadcast
}

func (d *Data) lookup(k backend.Key) (*backend.Resource, error) {
	r, _ := d.resources.Get(string(k.Append(nil)))
	return r, nil
}

// commit makes the changes and logs them. The caller holds mu.
func (d *Data) commit(events []backend.Event) {
	for _, e := range events {
		key := string(e.Resource.Key.Append(nil))
		if old, ok := d.resources.Delete(key); ok {
			for _, row := range old.Rows {
				d.rows.Delete(string(backend.AppendRowKey(nil, old.Key, row)))
			}
			if !old.ExpiresAt.IsZero() {
				d.expiry.Delete(expiryKey(old.ExpiresAt, key))
			}
		}
		if e.Type != backend.Deleted {
			d.resources.Set(key, e.Resource)
			for _, row := range e.Resource.Rows {
				d.rows.Set(string(backend.AppendRowKey(nil, e.Resource.Key, row)), e.Resource)
			}
			if !e.Resource.ExpiresAt.IsZero() {
				d.expiry.Set(expiryKey(e.Resource.ExpiresAt, key), e.Resource)
			}
		}
		d.log = append(d.log, e)
		d.logBytes += int64(e.Size())
		d.state.Advance(e.Revision)
	}
	if len(events) > 0 {
		d.changed.Fire()
	}
}

func expiryKey(at time.Time, key string) string {
	return string(backend.AppendInt(nil, at.UnixMilli())) + key
}

// expired returns the events that purge what is expired, at most a round of
// them. The caller holds mu.
func (d *Data) expired(now time.Time) []backend.Event {
	end := string(backend.AppendInt(nil, now.UnixMilli()+1))
	head := d.state.Head()
	var events []backend.Event
	d.expiry.Scan(func(key string, r *backend.Resource) bool {
		if key >= end || len(events) == purgeRound {
			return false
		}
		head.Seq++
		events = append(events, backend.Expire(r, head, now))
		return true
	})
	return events
}

// trim removes the oldest entries that are over the log's bounds, never the
// last one. The caller holds mu.
func (d *Data) trim(cfg *Config, now time.Time) {
	n := 0
	for n < trimRound && len(d.log)-n > 1 {
		e := &d.log[n]
		if len(d.log)-n <= cfg.LogEntries && d.logBytes <= cfg.LogBytes && now.Sub(e.Time) <= cfg.LogAge {
			break
		}
		d.logBytes -= int64(e.Size())
		n++
	}
	if n > 0 {
		d.state.Trim(d.log[n-1].Revision)
		clear(d.log[:n])
		d.log = d.log[n:]
	}
}

// readLog is one view of the log. The caller holds mu.
func (d *Data) readLog(after backend.Revision, limit int) backend.LogPage {
	page := backend.LogPage{State: d.state.Clone(), Changed: d.changed.Wait()}
	if d.state.Resume(after) == nil {
		from, found := slices.BinarySearchFunc(d.log, after, func(e backend.Event, r backend.Revision) int {
			return e.Revision.Compare(r)
		})
		if found {
			from++
		}
		page.Events = slices.Clone(d.log[from:min(from+limit, len(d.log))])
	}
	return page
}

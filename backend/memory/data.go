package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// purgeRound is the maximum number of resources that one purge removes. trimRound is the maximum number of entries that
// are removed from the log at a time.
const (
	purgeRound = 256
	trimRound  = 256
)

// Data has the contents of a store. It is created by Open or as &Data{}. Only one open store, with its handles, may use
// it at a time.
type Data struct {
	mu sync.RWMutex // guards all below but changed
	// handles is the number of open stores on the data.
	handles int
	// The keys of resources and deleting are from Key.Append, and the keys of refs from AppendRefKey. A key of expiry
	// is the time in milliseconds, followed by the key of the resource.
	resources, deleting, refs, expiry btree.Map[string, *backend.Resource]
	// log is in the order of revisions. logBytes is the total size of its events.
	log      []backend.Event
	logBytes int64
	state    storekit.LogState
	changed  storekit.Broadcast
}

var _ storekit.ShardState = (*Data)(nil)

// Stored implements [storekit.ShardState]. The caller holds mu.
func (d *Data) Stored(k backend.Key) (*backend.Resource, error) {
	r, _ := d.resources.Get(string(k.Append(nil)))
	return r, nil
}

// Bound implements [storekit.ShardState]. The caller holds mu.
func (d *Data) Bound(k backend.Key, now time.Time) (bound bool, err error) {
	r := backend.Range{Referenced: &k, BoundOnly: true}
	start, end := r.Bounds()
	d.refs.Ascend(string(start), func(key string, r *backend.Resource) bool {
		if key >= string(end) {
			return false
		}
		bound = r.Key != k && !r.ExpiredAt(now)
		return !bound
	})
	return bound, nil
}

// commit applies changes and adds them to the log. The caller holds mu.
func (d *Data) commit(changes []storekit.Write) {
	logged := false
	for i := range changes {
		c := &changes[i]
		d.store(c)
		if c.Logged() {
			logged = true
			d.log = append(d.log, c.Event)
			d.logBytes += int64(c.Event.Size())
		}
	}
	if logged {
		d.changed.Fire()
	}
}

// store replaces a resource and its index entries.
func (d *Data) store(c *storekit.Write) {
	endedRefs, _ := c.Refs()
	if old := c.Before; old != nil {
		for _, ref := range endedRefs {
			d.refs.Delete(string(backend.AppendRefKey(nil, ref, old.Key)))
		}
		key := string(old.Key.Append(nil))
		if !old.ExpiresAt.IsZero() {
			d.expiry.Delete(expiryKey(old.ExpiresAt, key))
		}
		d.deleting.Delete(key)
		if c.After == nil {
			d.resources.Delete(key)
		}
	}
	r := c.After
	if r == nil {
		return
	}
	// Each index entry points to the resource, so the entries that stay the same must be set, too.
	key := string(r.Key.Append(nil))
	d.resources.Set(key, r)
	if r.Deleting {
		d.deleting.Set(key, r)
	}
	for _, ref := range r.RefEntries() {
		d.refs.Set(string(backend.AppendRefKey(nil, ref, r.Key)), r)
	}
	if !r.ExpiresAt.IsZero() {
		d.expiry.Set(expiryKey(r.ExpiresAt, key), r)
	}
}

func expiryKey(at time.Time, key string) string {
	return string(backend.AppendInt(nil, at.UnixMilli())) + key
}

// expired returns the changes that remove expired resources, at most purgeRound. The caller holds mu and must commit
// them.
func (d *Data) expired(now time.Time) []storekit.Write {
	end := string(backend.AppendInt(nil, now.UnixMilli()+1))
	var changes []storekit.Write
	d.expiry.Scan(func(key string, r *backend.Resource) bool {
		if key >= end || len(changes) == purgeRound {
			return false
		}
		changes = append(changes, storekit.Expire(r, &d.state, now))
		return true
	})
	return changes
}

// trim removes the oldest entries while the log exceeds its limits. It never removes the last one. The caller holds mu.
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

// readLog returns a page of the log. The caller holds mu.
func (d *Data) readLog(after backend.Revision, limit int) storekit.LogPage {
	page := storekit.LogPage{State: d.state.Clone(), Changed: d.changed.Wait()}
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

// scan calls visit for each resource in a range, including expired ones, until visit returns false or ctx ends. The
// caller holds mu.
func (d *Data) scan(ctx context.Context, r backend.Range, visit func(*backend.Resource) bool) error {
	tree := &d.resources
	switch {
	case r.Referenced != nil:
		tree = &d.refs
	case r.Deleting:
		tree = &d.deleting
	}
	from, to := r.Bounds()
	start, end := string(from), string(to)
	of := func(stored *backend.Resource) *backend.Resource { return stored }
	if r.KeysOnly {
		of = func(stored *backend.Resource) *backend.Resource {
			return &backend.Resource{
				Key:      stored.Key,
				Envelope: backend.Envelope{Revision: stored.Revision, ExpiresAt: stored.ExpiresAt},
			}
		}
	}
	n := 0
	step := func(r *backend.Resource) bool {
		n++
		return (n%1024 != 0 || ctx.Err() == nil) && visit(of(r))
	}
	if r.Reverse {
		tree.Descend(end, func(key string, r *backend.Resource) bool {
			return key >= end || key >= start && step(r)
		})
	} else {
		tree.Ascend(start, func(key string, r *backend.Resource) bool {
			return key < end && step(r)
		})
	}
	return ctx.Err()
}

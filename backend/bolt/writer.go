package bolt

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// writer changes the buckets in one transaction.
type writer struct {
	core                                          *core
	resources, deleting, refs, expiry, logEntries *bbolt.Bucket
	tx                                            *bbolt.Tx
	id                                            int64 // of tx
	log                                           logRecord
	events                                        []backend.Event
	changed                                       bool
	// trims says that the log is to be trimmed when the group is done.
	trims bool
	// stored looks resources up. A cursor that is kept needs no memory for each look-up.
	stored *bbolt.Cursor
	// key is memory in which keys are made. bbolt keeps none of those that it is given.
	key []byte
}

// newWriter makes a writer for a number of calls.
func newWriter(c *core, tx *bbolt.Tx, calls int) (*writer, error) {
	log, err := readLogRecord(tx)
	if err != nil {
		return nil, err
	}
	c.forms.Reset()
	w := &writer{
		core: c, tx: tx, id: int64(tx.ID()), log: log, events: make([]backend.Event, 0, calls),
		resources: tx.Bucket([]byte(resourceBucket)), deleting: tx.Bucket([]byte(deletingBucket)),
		refs: tx.Bucket([]byte(refBucket)), expiry: tx.Bucket([]byte(expiryBucket)), logEntries: tx.Bucket([]byte(logBucket)),
	}
	w.stored = w.resources.Cursor()
	w.logEntries.FillPercent = 1 // entries are only ever appended
	return w, nil
}

// dirty says whether there is something to commit.
func (w *writer) dirty() bool { return w.changed }

// finish trims the log, once for all calls of the group, and writes what it knows of
// itself.
func (w *writer) finish() error {
	if w.trims {
		if err := w.trim(w.core.cfg.Clock().UTC()); err != nil {
			return err
		}
	}
	if !w.changed {
		return nil
	}
	return writeLogRecord(w.tx, &w.log)
}

// run does one call. failed is the call's own error, after which nothing has
// changed; fatal is an error of the file.
func (w *writer) run(call *call) (failed, fatal error) {
	if err := call.ctx.Err(); err != nil {
		return err, nil
	}
	now := w.core.cfg.Clock().UTC()
	if len(call.batch.Actions) == 0 {
		n, err := w.purge(now)
		if err != nil {
			return nil, err
		}
		call.purged, w.trims = n, true
		return nil, nil
	}
	res, changes, err := storekit.Judge(call.batch, now, &w.log.State, w)
	if err != nil {
		return err, nil
	}
	for i := range changes {
		if err := w.write(&changes[i]); err != nil {
			return nil, err
		}
	}
	res.Position = backend.NewPosition(w.log.State.Head())
	call.result, w.trims = res, true
	return nil, nil
}

var _ storekit.ShardState = (*writer)(nil)

// Stored is part of [storekit.ShardState].
func (w *writer) Stored(k backend.Key) (*backend.Resource, error) {
	w.key = k.Append(w.key[:0])
	found, v := w.stored.Seek(w.key)
	if v == nil || !bytes.Equal(found, w.key) {
		return nil, nil
	}
	r, err := new(arena).resource(k, v)
	if err != nil {
		return nil, unreadable(k, err)
	}
	return r, nil
}

// Bound is part of [storekit.ShardState]. A referrer that does not decode counts as
// bound: nobody can tell that it is not.
func (w *writer) Bound(k backend.Key, now time.Time) (bool, error) {
	own := k.Append(nil)
	r := backend.Range{Referenced: &k, BoundOnly: true}
	start, end := r.Bounds()
	cursor := w.refs.Cursor()
	for key, v := cursor.Seek(start); key != nil && bytes.Compare(key, end) < 0; key, v = cursor.Next() {
		referrer, err := entryTarget(key, v)
		if err != nil {
			return true, nil
		}
		if bytes.Equal(referrer, own) {
			continue
		}
		if gone, err := expiredForm(w.resources.Get(referrer), now); err != nil || !gone {
			return true, nil
		}
	}
	return false, nil
}

// write makes one change and logs it.
func (w *writer) write(c *storekit.Write) error {
	w.changed = true
	w.log.State.Follow(c)
	if !c.Logged() {
		var form []byte
		if c.After != nil {
			form = appendResource(w.room(c.After.Size()), c.After)
		}
		return w.store(c, form)
	}
	entry, form := appendEvent(w.room(c.Event.Size()), &c.Event)
	if err := w.store(c, form); err != nil {
		return err
	}
	w.key = appendEntryKey(w.key[:0], c.Event.Revision)
	if err := w.logEntries.Put(w.key, entry); err != nil {
		return err
	}
	w.log.Count++
	w.log.Bytes += int64(c.Event.Size())
	w.events = append(w.events, c.Event)
	return nil
}

// room is memory for a form of something of a size, until the transaction ends.
func (w *writer) room(size int) []byte { return w.core.forms.Take(size + formRoom)[:0] }

// store replaces one resource and the entries that lead to it. form is the
// encoded resource after the change.
func (w *writer) store(c *storekit.Write, form []byte) error {
	r := c.After
	if r == nil {
		r = c.Before
	}
	w.key = r.Key.Append(w.key[:0])
	key := w.key
	if c.Damaged {
		if err := w.sweep(key); err != nil {
			return err
		}
	}
	was, is := c.Before != nil && c.Before.Deleting, c.After != nil && c.After.Deleting
	if was && !is {
		if err := w.deleting.Delete(key); err != nil {
			return err
		}
	}
	if is && !was {
		if err := w.deleting.Put(key, []byte{}); err != nil {
			return err
		}
	}
	endedRefs, begunRefs := c.Refs()
	for _, ref := range endedRefs {
		if err := w.refs.Delete(backend.AppendRefKey(nil, ref, r.Key)); err != nil {
			return err
		}
	}
	for _, ref := range begunRefs {
		if err := w.refs.Put(refEntry(r.Key, ref)); err != nil {
			return err
		}
	}
	if c.Before != nil && !c.Before.ExpiresAt.IsZero() {
		if err := w.expiry.Delete(expiryKey(c.Before.ExpiresAt, key)); err != nil {
			return err
		}
	}
	if c.After == nil {
		return w.resources.Delete(key)
	}
	if !r.ExpiresAt.IsZero() {
		if err := w.expiry.Put(expiryKey(r.ExpiresAt, key), []byte{}); err != nil {
			return err
		}
	}
	return w.resources.Put(key, form)
}

// sweep removes all entries that lead to a resource that does not decode, and
// hence cannot tell which they are. It reads all references and all expiries.
func (w *writer) sweep(key []byte) error {
	if err := w.deleting.Delete(key); err != nil {
		return err
	}
	err := removeAll(w.refs, func(rk, v []byte) bool {
		target, err := entryTarget(rk, v)
		return err == nil && bytes.Equal(target, key)
	})
	if err != nil {
		return err
	}
	return removeAll(w.expiry, func(ek, _ []byte) bool {
		target, err := backend.SkipElement(ek)
		return err == nil && bytes.Equal(target, key)
	})
}

// removeAll removes the entries that match.
func removeAll(b *bbolt.Bucket, match func(k, v []byte) bool) error {
	var old [][]byte
	cursor := b.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if match(k, v) {
			old = append(old, bytes.Clone(k))
		}
	}
	for _, k := range old {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

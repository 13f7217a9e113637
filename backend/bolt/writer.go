package bolt

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// writer makes the changes of a group in its transaction: run is called for each call of the group, then finish.
type writer struct {
	core                                          *core
	resources, deleting, refs, expiry, logEntries *bbolt.Bucket
	tx                                            *bbolt.Tx
	id                                            int64 // of tx
	log                                           logRecord
	events                                        []backend.Event
	// changed reports whether there is anything to commit.
	changed bool
	// err is the first error of the file. After it, nothing more is written.
	err error
	// trims reports whether finish must trim the log.
	trims bool
	// stored is a cursor for finding resources.
	stored *bbolt.Cursor
	// key is a buffer for keys. bbolt does not keep keys that are passed to it.
	key []byte
}

// newWriter returns a writer for the transaction of a group. calls is the number of calls in the group.
func newWriter(c *core, tx *bbolt.Tx, calls int) (*writer, error) {
	log, err := readLogRecord(tx)
	if err != nil {
		return nil, err
	}
	c.forms.Reset()
	w := &writer{
		core:       c,
		tx:         tx,
		id:         int64(tx.ID()),
		log:        log,
		events:     make([]backend.Event, 0, calls),
		resources:  tx.Bucket([]byte(resourceBucket)),
		deleting:   tx.Bucket([]byte(deletingBucket)),
		refs:       tx.Bucket([]byte(refBucket)),
		expiry:     tx.Bucket([]byte(expiryBucket)),
		logEntries: tx.Bucket([]byte(logBucket)),
	}
	w.stored = w.resources.Cursor()
	w.logEntries.FillPercent = 1 // entries are only ever appended
	return w, nil
}

// finish trims the log, once for the whole group, and stores the state of the log.
func (w *writer) finish() error {
	if w.trims {
		w.trim(w.core.cfg.Clock().UTC())
	}
	if w.err == nil && w.changed {
		w.err = writeLogRecord(w.tx, &w.log)
	}
	return w.err
}

// run checks the conditions of a call and makes its changes. The error is an error of the call, which then has changed
// nothing; an error of the file is stored in w.err.
func (w *writer) run(call *call) error {
	select {
	case <-call.cancelled:
		return errCancelled
	default:
	}
	now := w.core.cfg.Clock().UTC()
	if len(call.batch.Actions) == 0 {
		call.purged, w.trims = w.purge(now), true
		return nil
	}
	res, changes, err := storekit.Evaluate(call.batch, now, &w.log.State, w)
	if err != nil {
		return err
	}
	for i := range changes {
		w.write(&changes[i])
	}
	res.Position = backend.NewPosition(w.log.State.Head())
	call.result, w.trims = res, true
	return nil
}

var _ storekit.ShardState = (*writer)(nil)

// Stored implements [storekit.ShardState].
func (w *writer) Stored(k backend.Key) (*backend.Resource, error) {
	w.key = k.Append(w.key[:0])
	v := valueOf(w.stored, w.key)
	if v == nil {
		return nil, nil
	}
	r, err := new(arena).resource(k, w.key, v)
	if err != nil {
		return nil, storekit.Unreadable(k, err)
	}
	return r, nil
}

// Bound implements [storekit.ShardState]. A referrer that does not decode counts as bound.
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
		form := w.resources.Get(referrer)
		if checkSum(referrer, form) != nil {
			return true, nil
		}
		if gone, err := expiredForm(form, now); err != nil || !gone {
			return true, nil
		}
	}
	return false, nil
}

// write makes a change, and appends its log entry if it has one.
func (w *writer) write(c *storekit.Write) {
	w.changed = true
	if !c.Logged() {
		var form []byte
		if c.After != nil {
			form = appendResource(w.formMemory(c.After.Size()), c.After)
		}
		w.store(c, form)
		return
	}
	entry, form := appendEvent(w.formMemory(c.Event.Size()), &c.Event)
	w.store(c, form)
	w.key = appendEntryKey(w.key[:0], c.Event.Revision)
	w.put(w.logEntries, w.key, entry)
	w.log.Count++
	w.log.Bytes += int64(c.Event.Size())
	w.events = append(w.events, c.Event)
}

// formMemory returns memory for encoding something of a given size. It is valid until the transaction ends.
func (w *writer) formMemory(size int) []byte { return w.core.forms.Take(size + formRoom)[:0] }

// put stores a value, unless the file has had an error.
func (w *writer) put(b *bbolt.Bucket, key, value []byte) {
	if w.err == nil {
		w.err = b.Put(key, value)
	}
}

// remove deletes a key, unless the file has had an error.
func (w *writer) remove(b *bbolt.Bucket, key []byte) {
	if w.err == nil {
		w.err = b.Delete(key)
	}
}

// store replaces a resource and its index entries. form is the encoded resource after the change.
func (w *writer) store(c *storekit.Write, form []byte) {
	r := c.After
	if r == nil {
		r = c.Before
	}
	w.key = r.Key.Append(w.key[:0])
	key := w.key
	if c.Damaged {
		w.sweep(key)
	}
	was, is := c.Before != nil && c.Before.Deleting, c.After != nil && c.After.Deleting
	if was && !is {
		w.remove(w.deleting, key)
	} else if is && !was {
		w.put(w.deleting, key, []byte{})
	}
	endedRefs, begunRefs := c.Refs()
	for _, ref := range endedRefs {
		w.remove(w.refs, backend.AppendRefKey(nil, ref, r.Key))
	}
	for _, ref := range begunRefs {
		entry, value := refEntry(r.Key, ref)
		w.put(w.refs, entry, value)
	}
	if c.Before != nil && !c.Before.ExpiresAt.IsZero() {
		w.remove(w.expiry, expiryKey(c.Before.ExpiresAt, key))
	}
	if c.After == nil {
		w.remove(w.resources, key)
		return
	}
	if !r.ExpiresAt.IsZero() {
		w.put(w.expiry, expiryKey(r.ExpiresAt, key), []byte{})
	}
	w.put(w.resources, key, form)
}

// sweep removes all index entries of a resource that does not decode. The resource cannot show which entries it has,
// so sweep reads all references and all expiries.
func (w *writer) sweep(key []byte) {
	w.remove(w.deleting, key)
	w.removeAll(w.refs, func(rk, v []byte) bool {
		target, err := entryTarget(rk, v)
		return err == nil && bytes.Equal(target, key)
	})
	w.removeAll(w.expiry, func(ek, _ []byte) bool {
		target, err := backend.SkipElement(ek)
		return err == nil && bytes.Equal(target, key)
	})
}

func (w *writer) removeAll(b *bbolt.Bucket, match func(k, v []byte) bool) {
	var old [][]byte
	cursor := b.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if match(k, v) {
			old = append(old, bytes.Clone(k))
		}
	}
	for _, k := range old {
		w.remove(b, k)
	}
}

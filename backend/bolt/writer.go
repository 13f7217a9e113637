package bolt

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Bounds of one call.
const (
	purgeRound = 256
	trimRound  = 256
)

// writer changes the buckets in one transaction.
type writer struct {
	core                                *core
	resources, rows, expiry, logEntries *bbolt.Bucket
	tx                                  *bbolt.Tx
	log                                 logRecord
	events                              []backend.Event
	changed                             bool
}

func newWriter(c *core, tx *bbolt.Tx) (*writer, error) {
	log, err := readLogRecord(tx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		core: c, tx: tx, log: log,
		resources: tx.Bucket([]byte(resourceBucket)), rows: tx.Bucket([]byte(rowBucket)),
		expiry: tx.Bucket([]byte(expiryBucket)), logEntries: tx.Bucket([]byte(logBucket)),
	}
	w.logEntries.FillPercent = 1 // entries are only ever appended
	return w, nil
}

// dirty says whether there is something to commit.
func (w *writer) dirty() bool { return w.changed }

// finish writes what the log knows of itself.
func (w *writer) finish() error { return writeLogRecord(w.tx, &w.log) }

// run does one call. failed is its own error: it changed nothing. fatal is one of the file.
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
		call.purged = n
		return nil, w.trim(now)
	}
	res, events, err := backend.Plan(call.batch, now, w.log.State.Head(), w.lookup)
	if err != nil {
		return err, nil
	}
	for i := range events {
		if err := w.write(&events[i]); err != nil {
			return nil, err
		}
	}
	res.Position = backend.NewPosition(w.log.State.Head())
	call.result = res
	return nil, w.trim(now)
}

func (w *writer) lookup(k backend.Key) (*backend.Resource, error) {
	v := w.resources.Get(k.Append(nil))
	if v == nil {
		return nil, nil
	}
	r, err := decodeResource(k, v)
	if err != nil {
		return nil, unreadable(k, err)
	}
	return r, nil
}

// write makes one change and logs it.
func (w *writer) write(e *backend.Event) error {
	w.changed = true
	r := e.Resource
	key := r.Key.Append(nil)
	entry, form := encodeEvent(e)
	if e.Type != backend.Added {
		if err := w.unindex(key, e); err != nil {
			return err
		}
	}
	if e.Type == backend.Deleted {
		if err := w.resources.Delete(key); err != nil {
			return err
		}
	} else {
		if err := w.resources.Put(key, form); err != nil {
			return err
		}
		for _, row := range r.Rows {
			if slices.ContainsFunc(e.RowsBefore, row.Equal) {
				continue
			}
			if err := w.rows.Put(rowEntry(r.Key, row)); err != nil {
				return err
			}
		}
		if !r.ExpiresAt.IsZero() {
			if err := w.expiry.Put(expiryKey(r.ExpiresAt, key), []byte{}); err != nil {
				return err
			}
		}
	}
	if err := w.logEntries.Put(entryKey(e.Revision), entry); err != nil {
		return err
	}
	w.log.State.Advance(e.Revision)
	w.log.Count++
	w.log.Bytes += int64(e.Size())
	w.events = append(w.events, *e)
	return nil
}

// unindex removes the rows and the expiry that the change ends.
func (w *writer) unindex(key []byte, e *backend.Event) error {
	after := e.RowsAfter()
	for _, row := range e.RowsBefore {
		if slices.ContainsFunc(after, row.Equal) {
			continue
		}
		if err := w.rows.Delete(backend.AppendRowKey(nil, e.Resource.Key, row)); err != nil {
			return err
		}
	}
	// For a deletion the resource is the old one; a modification needs the stored form.
	old := e.Resource.ExpiresAt
	if e.Type == backend.Modified {
		var err error
		if old, err = expiryOf(w.resources.Get(key)); err != nil {
			return err
		}
	}
	if old.IsZero() {
		return nil
	}
	return w.expiry.Delete(expiryKey(old, key))
}

// purge removes what is expired, at most a round of it.
func (w *writer) purge(now time.Time) (int, error) {
	end := backend.AppendInt(nil, now.UnixMilli()+1)
	var due [][]byte
	cursor := w.expiry.Cursor()
	for k, _ := cursor.First(); k != nil && bytes.Compare(k, end) < 0 && len(due) < purgeRound; k, _ = cursor.Next() {
		due = append(due, bytes.Clone(k))
	}
	n := 0
	for _, k := range due {
		r, err := w.expired(k, now)
		if err != nil {
			// The resource stays for someone to look at; its expiry would stop all others.
			w.core.skip("purge", k, err)
			w.changed = true
			if err := w.expiry.Delete(k); err != nil {
				return 0, err
			}
			continue
		}
		head := w.log.State.Head()
		head.Seq++
		e := backend.Expire(r, head, now)
		if err := w.write(&e); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// expired returns the resource that an expiry key stands for.
func (w *writer) expired(k []byte, now time.Time) (*backend.Resource, error) {
	target, err := backend.SkipElement(k)
	if err != nil {
		return nil, err
	}
	key, err := backend.DecodeKey(target)
	if err != nil {
		return nil, err
	}
	r, err := w.lookup(key)
	if err == nil && (r == nil || !r.ExpiredAt(now)) {
		err = errors.New("no expired resource")
	}
	return r, err
}

// trim removes the oldest entries that are over the log's bounds, never the last one.
func (w *writer) trim(now time.Time) error {
	cfg := &w.core.cfg
	var old [][]byte
	cursor := w.logEntries.Cursor()
	for k, v := cursor.First(); k != nil && len(old) < trimRound && w.log.Count > 1; k, v = cursor.Next() {
		size, at, err := entryHead(v)
		if err != nil {
			w.core.cfg.Logger.Warn("a log entry does not decode", zap.Binary("key", k), zap.Error(err))
			at = now
		}
		if w.log.Count <= int64(cfg.LogEntries) && w.log.Bytes <= cfg.LogBytes && now.Sub(at) <= cfg.LogAge {
			break
		}
		old = append(old, bytes.Clone(k))
		w.log.Count--
		w.log.Bytes = max(w.log.Bytes-size, 0)
	}
	for _, k := range old {
		w.changed = true
		if err := w.logEntries.Delete(k); err != nil {
			return err
		}
		rev, err := decodeEntryKey(k)
		if err != nil {
			return err
		}
		w.log.State.Trim(rev)
	}
	return nil
}

package bolt

import (
	"bytes"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// purgeRound is the maximum number of resources that a call purges. trimRound is the maximum number of entries that a
// transaction removes from the log, unless it adds many: then it may remove twice as many as it adds.
const (
	purgeRound = 256
	trimRound  = 256
)

// purge removes expired resources, at most purgeRound of them.
func (w *writer) purge(now time.Time) (n int) {
	end := backend.AppendInt(nil, now.UnixMilli()+1)
	var due [][]byte
	cursor := w.expiry.Cursor()
	for k, _ := cursor.First(); k != nil && bytes.Compare(k, end) < 0 && len(due) < purgeRound; k, _ = cursor.Next() {
		due = append(due, bytes.Clone(k))
	}
	for _, k := range due {
		r, err := w.expired(k, now)
		if err != nil {
			// A damaged resource is kept for an operator. Its expiry entry is removed; otherwise every purge would find
			// it again.
			w.core.skip("purge", k, err)
			w.changed = true
			w.remove(w.expiry, k)
			continue
		}
		change := storekit.Expire(r, &w.log.State, now)
		w.write(&change)
		n++
	}
	return n
}

// expired returns the resource whose expiry entry has the key k. If there is no such resource, or it is not expired,
// that is an error.
func (w *writer) expired(k []byte, now time.Time) (*backend.Resource, error) {
	target, err := backend.SkipElement(k)
	if err != nil {
		return nil, err
	}
	key, err := backend.DecodeKey(target)
	if err != nil {
		return nil, err
	}
	r, err := w.Stored(key)
	if err == nil && (r == nil || !r.ExpiredAt(now)) {
		err = errors.New("no expired resource")
	}
	return r, err
}

// trim removes the oldest entries beyond the limits of the log, and entries that do not decode, but never the last
// entry. If a watch still needs a removed entry, it ends: see readEntries.
func (w *writer) trim(now time.Time) {
	cfg := &w.core.cfg
	cursor, most := w.logEntries.Cursor(), max(trimRound, 2*len(w.events))
	for n := 0; n < most && w.log.Count > 1 && w.err == nil; n++ {
		k, v := cursor.First() // after a deletion a cursor has to be placed again
		if k == nil {
			break
		}
		rev, err := decodeEntryKey(k)
		size, at, headErr := entryHead(rev, v)
		if err = errors.Join(err, headErr); err != nil {
			w.core.cfg.Logger.Warn("a log entry does not decode and is removed", zap.Binary("key", k), zap.Error(err))
		} else if w.log.Count <= int64(cfg.LogEntries) && w.log.Bytes <= cfg.LogBytes && now.Sub(at) <= cfg.LogAge {
			break
		}
		w.err, w.changed = cursor.Delete(), true
		w.log.Count--
		w.log.Bytes = max(w.log.Bytes-size, 0)
		// If the revision is not within the log, the key of the entry is damaged.
		if log := &w.log.State; rev.Compare(log.Trimmed) > 0 && rev.Compare(log.Head()) <= 0 {
			log.Trim(rev)
		}
	}
}

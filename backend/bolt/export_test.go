package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// WithCommit makes commit stand in for the commit of every transaction.
func (c Config) WithCommit(commit func(commit func() error) error) Config {
	c.commit = commit
	return c
}

// WithProbe makes probe stand in for trying whether there is space.
func (c Config) WithProbe(probe func(bytes int) error) Config {
	c.probe = probe
	return c
}

// CopyTo writes a consistent copy of the open file.
func (s *Store) CopyTo(w io.Writer) error {
	return s.core.view(context.Background(), func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Edit changes the file behind the store's back.
func (s *Store) Edit(edit func(resources, log *bbolt.Bucket) error) error {
	return s.change(func(tx *bbolt.Tx) error {
		return edit(tx.Bucket([]byte(resourceBucket)), tx.Bucket([]byte(logBucket)))
	})
}

// EditBucket changes one bucket behind the store's back.
func (s *Store) EditBucket(name string, edit func(*bbolt.Bucket) error) error {
	return s.change(func(tx *bbolt.Tx) error { return edit(tx.Bucket([]byte(name))) })
}

func (s *Store) change(edit func(*bbolt.Tx) error) error {
	return s.core.db.Update(func(tx *bbolt.Tx) error {
		s.core.acknowledged.Store(int64(tx.ID()))
		return edit(tx)
	})
}

// ForgetTail makes watchers read the file.
func (s *Store) ForgetTail() {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.core.tail = tail{base: s.core.state.Head()}
}

// Tail is memory of the newest changes.
type Tail struct{ tail }

// TailEntries is how many changes a tail has, at most.
const TailEntries = tailEntries

// Append adds changes.
func (t *Tail) Append(events []backend.Event) { t.append(events) }

// State returns what the tail has, the revision before that, and for how many changes it has room.
func (t *Tail) State() (events []backend.Event, base backend.Revision, room int) {
	return t.events, t.base, cap(t.events)
}

// The forms, for the fuzz tests.
var (
	DecodeEvent = decodeEvent
	EntryKey    = entryKey
)

// EncodeEvent returns the form of a log entry and, as its end, that of its resource.
func EncodeEvent(e *backend.Event) (entry, resource []byte) { return appendEvent(nil, e) }

// DecodeResource reads one form.
func DecodeResource(k backend.Key, form []byte) (*backend.Resource, error) {
	return new(arena).resource(k, k.Append(nil), form)
}

// ResourceIn returns the form of the resource at the end of a log entry, with a sum that fits; nil for none.
func ResourceIn(entry []byte) []byte {
	p, _ := readEntry(backend.Revision{Epoch: 1, Seq: 1}, entry)
	Resum(p.key.Append(nil), p.resource)
	return p.resource
}

// Resum sets the sum of a form, so that decoders look at what follows it. A form without a sum stays as it is.
func Resum(key, form []byte) {
	if len(form) >= sumAt+sumBytes {
		setSum(key, form)
	}
}

// DecodeTogether reads forms one after the other into shared memory.
func DecodeTogether(keys []backend.Key, forms [][]byte) ([]*backend.Resource, error) {
	var a arena
	out := make([]*backend.Resource, len(forms))
	for i, form := range forms {
		var err error
		if out[i], err = a.resource(keys[i], keys[i].Append(nil), form); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DecodeRest runs the decoders of what is neither resource nor event.
func DecodeRest(b []byte) {
	_, _, _ = entryHead(backend.Revision{Epoch: 1, Seq: 1}, b)
	_, _ = decodeEntryKey(b)
	_, _ = expiredForm(b, time.Time{})
	_, _ = entryTarget(b, b)
}

// RecodeLog reads a log record without its sum and writes it again.
func RecodeLog(b []byte) ([]byte, error) {
	l, err := decodeLogRecord(appendSum(slices.Clone(b)))
	if err != nil {
		return nil, err
	}
	return cutSum(l.encode())
}

// LogForm is the form of a log record, without its sum.
func LogForm(state storekit.LogState, count, size int64) []byte {
	l := logRecord{State: state, Count: count, Bytes: size}
	form, _ := cutSum(l.encode())
	return form
}

// DecodeLog reads a log record with its sum.
func DecodeLog(b []byte) error {
	_, err := decodeLogRecord(b)
	return err
}

// Idle says what is left of calls although none is under way.
func (s *Store) Idle() error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.queue) > 0 || len(c.slots) > 0:
		return fmt.Errorf("%d calls wait, %d slots are taken", len(c.queue), len(c.slots))
	case c.committing:
		return errors.New("somebody commits")
	case c.awaited != 0 || len(c.gathered) > 0:
		return fmt.Errorf("%d calls are awaited, %d signals are left", c.awaited, len(c.gathered))
	case slices.ContainsFunc(c.abandoned, func(w *call) bool { return !w.ended() }):
		return errors.New("a call that was given up is not answered")
	}
	return nil
}

package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

var _ backend.Verifier = (*Store)(nil)

// Verify implements [backend.Verifier]. With Config.ReadOnly it also checks the pages of the file, which do not change
// then. If a part of the file cannot be read, the other parts are still verified.
func (s *Store) Verify(ctx context.Context, v backend.Verification) (backend.Verified, error) {
	if err := s.ready(ctx); err != nil {
		return backend.Verified{}, err
	}
	c := &verifier{core: s.core, Inspector: storekit.Inspector{Verification: v}}
	if s.core.cfg.ReadOnly {
		if err := c.pages(); err != nil {
			return c.Verified, fmt.Errorf("bolt: verify: %w", err)
		}
	}
	for _, part := range []func(ctx context.Context, tx *bbolt.Tx) error{
		c.records, c.deletions, c.references, c.expiries, c.log,
	} {
		err := s.core.view(ctx, func(tx *bbolt.Tx) error { return part(ctx, tx) })
		var d *damage
		if errors.As(err, &d) {
			c.Report(backend.Damage{Part: backend.PartPage, Problem: "a page cannot be read, and what is behind it was not looked at: " + d.cause})
			err = nil
		}
		if err != nil {
			return c.Verified, fmt.Errorf("bolt: verify: %w", err)
		}
	}
	return c.Verified, nil
}

type verifier struct {
	storekit.Inspector
	core *core
	// memory is used to decode one record after the other.
	memory arena
}

// pages checks the pages of the file. Each of them must be in use or free.
func (c *verifier) pages() (err error) {
	f, err := os.Open(c.core.cfg.Path)
	if err != nil {
		return pathCause(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	meta, size := newestMeta(f)
	if meta == nil {
		return backend.FormatErrorf("no page says where the data is")
	}
	if wrong := verifyPages(f, meta, size); wrong != nil {
		c.Report(backend.Damage{Part: backend.PartPage, Problem: wrong.Error()})
	}
	return nil
}

// walk calls visit for all entries of a bucket, until visit returns an error or ctx ends.
func walk(ctx context.Context, b *bbolt.Bucket, visit func(k, v []byte) error) error {
	cursor := b.Cursor()
	n := 0
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		n++
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(k, v); err != nil {
			return err
		}
	}
	return nil
}

// record decodes a record. If it does not decode, record reports damage and returns nil.
func (c *verifier) record(k, v []byte) (backend.Key, *backend.Resource) {
	key, err := backend.DecodeKey(k)
	if err != nil {
		c.Report(backend.Damage{Part: backend.PartRecord, Problem: fmt.Sprintf("the key %q is none: %v", k, err)})
		return key, nil
	}
	c.memory = arena{}
	r, err := c.memory.resource(key, k, v)
	if err != nil {
		c.Report(backend.Damage{Part: backend.PartRecord, Key: key, Problem: err.Error()})
		return key, nil
	}
	return key, r
}

// records checks that each record decodes, that the other buckets have all its entries, and that the log has an entry
// of its last change.
func (c *verifier) records(ctx context.Context, tx *bbolt.Tx) error {
	log, err := readLogRecord(tx)
	if err != nil {
		c.Report(backend.Damage{Part: backend.PartHead, Problem: err.Error()})
		return nil
	}
	deleting := tx.Bucket([]byte(deletingBucket)).Cursor()
	refs := tx.Bucket([]byte(refBucket)).Cursor()
	expiry := tx.Bucket([]byte(expiryBucket)).Cursor()
	entries := tx.Bucket([]byte(logBucket)).Cursor()
	return walk(ctx, tx.Bucket([]byte(resourceBucket)), func(k, v []byte) error {
		c.Count(&c.Verified.Records)
		key, r := c.record(k, v)
		if r == nil {
			return nil
		}
		if r.Deleting && !has(deleting, k) {
			c.Report(backend.Damage{
				Part: backend.PartDeletion, Key: key, Problem: "its deletion was requested, and no entry leads to it",
			})
		}
		for _, ref := range r.RefEntries() {
			entry, value := refEntry(key, ref)
			if !bytes.Equal(valueOf(refs, entry), value) {
				c.Report(backend.Damage{
					Part: backend.PartReference, Key: key,
					Problem: fmt.Sprintf("it refers to %s, and no entry leads to it from there", ref.Key),
				})
			}
		}
		if !r.ExpiresAt.IsZero() && !has(expiry, expiryKey(r.ExpiresAt, k)) {
			c.Report(backend.Damage{Part: backend.PartExpiry, Key: key, Problem: "it expires, and no entry leads to it"})
		}
		if !key.Internal() && r.Revision.Compare(log.State.Trimmed) > 0 && !has(entries, entryKey(r.Revision)) {
			c.Report(backend.Damage{
				Part: backend.PartLog, Key: key, Revision: r.Revision, Problem: "the log has no entry of its last change",
			})
		}
		return nil
	})
}

func has(c *bbolt.Cursor, key []byte) bool {
	k, _ := c.Seek(key)
	return bytes.Equal(k, key)
}

// checkIndex checks the entries of an index bucket. target returns the key of the record to which an entry belongs.
// agrees reports whether the record should have that entry.
func (c *verifier) checkIndex(
	ctx context.Context, tx *bbolt.Tx, bucket, part string,
	target func(k, v []byte) ([]byte, error), agrees func(entry []byte, r *backend.Resource) bool,
) error {
	resources := tx.Bucket([]byte(resourceBucket)).Cursor()
	return walk(ctx, tx.Bucket([]byte(bucket)), func(k, v []byte) error {
		c.Count(&c.Verified.Entries)
		to, err := target(k, v)
		var key backend.Key
		if err == nil {
			key, err = backend.DecodeKey(to)
		}
		if err != nil {
			c.Report(backend.Damage{Part: part, Problem: fmt.Sprintf("the entry %q leads to no key", k)})
			return nil
		}
		form := valueOf(resources, to)
		if form == nil {
			c.Report(backend.Damage{Part: part, Key: key, Problem: "an entry leads to it, and it is not stored"})
			return nil
		}
		c.memory = arena{}
		r, err := c.memory.resource(key, to, form)
		if err == nil && !agrees(k, r) { // verifier.records reports a record that does not decode
			c.Report(backend.Damage{
				Part: part, Key: key, Problem: fmt.Sprintf("an entry leads to it that it does not have: %q", k),
			})
		}
		return nil
	})
}

func (c *verifier) deletions(ctx context.Context, tx *bbolt.Tx) error {
	return c.checkIndex(ctx, tx, deletingBucket, backend.PartDeletion,
		func(k, _ []byte) ([]byte, error) { return k, nil },
		func(_ []byte, r *backend.Resource) bool { return r.Deleting })
}

func (c *verifier) references(ctx context.Context, tx *bbolt.Tx) error {
	hasEntry := func(entry []byte, r *backend.Resource) bool {
		return slices.ContainsFunc(r.RefEntries(), func(ref backend.Ref) bool {
			own, _ := refEntry(r.Key, ref)
			return bytes.Equal(own, entry)
		})
	}
	return c.checkIndex(ctx, tx, refBucket, backend.PartReference, entryTarget, hasEntry)
}

func (c *verifier) expiries(ctx context.Context, tx *bbolt.Tx) error {
	return c.checkIndex(ctx, tx, expiryBucket, backend.PartExpiry,
		func(k, _ []byte) ([]byte, error) { return backend.SkipElement(k) },
		func(entry []byte, r *backend.Resource) bool {
			return !r.ExpiresAt.IsZero() && bytes.Equal(entry, expiryKey(r.ExpiresAt, r.Key.Append(nil)))
		})
}

// log checks that the log has no gaps between the trim mark and the head, and that each stored resource agrees with its
// last entry.
func (c *verifier) log(ctx context.Context, tx *bbolt.Tx) error {
	log, err := readLogRecord(tx)
	if err != nil {
		return nil // verifier.records has reported it
	}
	ends := map[uint64]uint64{}
	for _, e := range log.State.Epochs {
		ends[e.Epoch] = e.Seq
	}
	resources := tx.Bucket([]byte(resourceBucket)).Cursor()
	absent := storekit.NewAbsent()
	last := log.State.Trimmed
	var count, size int64
	err = walk(ctx, tx.Bucket([]byte(logBucket)), func(k, v []byte) error {
		c.Count(&c.Verified.Changes)
		rev, err := decodeEntryKey(k)
		if err != nil {
			c.Report(backend.Damage{Part: backend.PartLog, Problem: fmt.Sprintf("the key %x is none", k)})
			return nil
		}
		count++
		end, known := ends[last.Epoch]
		gap := rev.Epoch == last.Epoch && rev.Seq != last.Seq+1
		if rev.Epoch > last.Epoch {
			gap = rev.Seq != 1 || known && end != last.Seq
		}
		if gap {
			c.Report(backend.Damage{
				Part: backend.PartLog, Revision: rev,
				Problem: fmt.Sprintf("it follows %s: changes are missing in between", last),
			})
		}
		last = rev
		e, err := decodeEvent(rev, v)
		if err != nil {
			c.Report(backend.Damage{Part: backend.PartLog, Revision: rev, Problem: err.Error()})
			return nil
		}
		size += int64(e.Size())
		c.checkStored(resources, absent, &e)
		return nil
	})
	if err != nil {
		return err
	}
	if end, known := ends[last.Epoch]; known && last.Seq != end {
		c.Report(backend.Damage{
			Part: backend.PartHead, Problem: fmt.Sprintf("the log ends at %s, and should at %d-%d", last, last.Epoch, end),
		})
	}
	if c.Verified.Damaged == 0 && (count != log.Count || size != log.Bytes) {
		c.Report(backend.Damage{Part: backend.PartHead, Problem: fmt.Sprintf("the log has %d entries of %d bytes, and should have %d of %d", count, size, log.Count, log.Bytes)})
	}
	return c.reportAbsent(ctx, tx, absent)
}

// checkStored reports damage if the stored resource is older than a log entry of it. If the resource is not stored,
// checkStored notes its key in absent.
func (c *verifier) checkStored(resources *bbolt.Cursor, absent *storekit.Absent, e *backend.Event) {
	key := e.Resource.Key
	form := valueOf(resources, key.Append(nil))
	if form == nil {
		absent.Note(e)
		return
	}
	c.memory = arena{keysOnly: true}
	r, err := c.memory.resource(key, key.Append(nil), form)
	if err != nil {
		return // verifier.records has reported it
	}
	if order := r.Revision.Compare(e.Revision); order < 0 || order == 0 && e.Type == backend.Deleted {
		c.Report(backend.Damage{Part: backend.PartRecord, Key: key, Revision: e.Revision, Problem: fmt.Sprintf("the log has a change that is not stored: what is stored is of %s", r.Revision)})
	}
}

// reportAbsent reports resources that are not stored although their last log entry is not a deletion.
func (c *verifier) reportAbsent(ctx context.Context, tx *bbolt.Tx, absent *storekit.Absent) error {
	if absent.Len() == 0 {
		return nil
	}
	return walk(ctx, tx.Bucket([]byte(logBucket)), func(k, v []byte) error {
		rev, err := decodeEntryKey(k)
		if err != nil {
			return nil
		}
		if e, err := decodeEvent(rev, v); err == nil && absent.Take(e.Resource.Key) {
			c.Report(backend.Damage{Part: backend.PartRecord, Key: e.Resource.Key, Revision: rev, Problem: "the log has its changes and no deletion that can be read, and it is not stored"})
		}
		return nil
	})
}

package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
)

// checkErrors is how many errors Check reports at most.
const checkErrors = 20

// Check reads the whole file and reports where its pages, resources, deletions,
// references, expiries and log are inconsistent.
func (s *Store) Check(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var found []error
	_, err := s.Verify(ctx, backend.Verification{Found: func(d backend.Damage) { found = append(found, fmt.Errorf("verify: %s", d)) }})
	if err != nil {
		return err
	}
	return s.core.view(ctx, func(tx *bbolt.Tx) error {
		c := &checker{tx: tx, resources: map[string]backend.Revision{}}
		for err := range tx.Check() {
			c.wrong("pages: %w", err)
		}
		c.checkResources()
		c.checkLog()
		if (len(c.errs) > 0) != (len(found) > 0) {
			c.wrong("the check and Verify do not agree: %v", found)
		}
		return errors.Join(append(c.errs, found...)...)
	})
}

type checker struct {
	tx *bbolt.Tx
	// resources are the revisions of the stored resources, by key.
	resources map[string]backend.Revision
	errs      []error
}

func (c *checker) wrong(format string, args ...any) {
	if len(c.errs) < checkErrors {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// each visits a bucket and returns the number of its keys.
func (c *checker) each(bucket string, visit func(k, v []byte)) int {
	n := 0
	cursor := c.tx.Bucket([]byte(bucket)).Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		visit(k, v)
		n++
	}
	return n
}

// checkResources expects every entry that leads to a resource, and no others.
func (c *checker) checkResources() {
	entries := map[string]int{deletingBucket: 0, refBucket: 0, expiryBucket: 0}
	expect := func(bucket string, key backend.Key, entry, value []byte) {
		entries[bucket]++
		if got := c.tx.Bucket([]byte(bucket)).Get(entry); got == nil || !bytes.Equal(got, value) {
			c.wrong("resource %s: entry %x in bucket %q is %x, want %x", key, entry, bucket, got, value)
		}
	}
	c.each(resourceBucket, func(k, v []byte) {
		key, err := backend.DecodeKey(k)
		if err != nil {
			c.wrong("resource key %x: %w", k, err)
			return
		}
		r, err := new(arena).resource(key, k, v)
		if err != nil {
			c.wrong("resource %s: %w", key, err)
			return
		}
		c.resources[string(k)] = r.Revision
		if r.Deleting {
			expect(deletingBucket, key, k, nil)
		}
		for _, ref := range r.RefEntries() {
			entry, value := refEntry(key, ref)
			expect(refBucket, key, entry, value)
		}
		if !r.ExpiresAt.IsZero() {
			expect(expiryBucket, key, expiryKey(r.ExpiresAt, k), nil)
		}
	})
	for bucket, want := range entries {
		if n := c.each(bucket, func(_, _ []byte) {}); n != want {
			c.wrong("bucket %q has %d entries, want %d", bucket, n, want)
		}
	}
}

// checkLog expects dense revisions from the trim mark to the head, and what is
// stored under each key to be what the log's last entry of the key left.
func (c *checker) checkLog() {
	log, err := readLogRecord(c.tx)
	if err != nil {
		c.wrong("%w", err)
		return
	}
	ends := map[uint64]uint64{}
	for _, e := range log.State.Epochs {
		ends[e.Epoch] = e.Seq
	}
	last := log.State.Trimmed
	size := int64(0)
	newest := map[string]backend.Event{}
	n := c.each(logBucket, func(k, v []byte) {
		rev, err := decodeEntryKey(k)
		if err != nil {
			c.wrong("log key %x: %w", k, err)
			return
		}
		e, err := decodeEvent(rev, v)
		if err != nil {
			c.wrong("log entry %s: %w", rev, err)
			return
		}
		if end, known := ends[last.Epoch]; rev.Epoch == last.Epoch && rev.Seq != last.Seq+1 || rev.Epoch > last.Epoch && (rev.Seq != 1 || known && end != last.Seq) {
			c.wrong("log entry %s follows %s", rev, last)
		}
		last = rev
		size += int64(e.Size())
		newest[string(e.Resource.Key.Append(nil))] = e
	})
	if end, known := ends[last.Epoch]; known && last.Seq != end {
		c.wrong("the log ends at %s, its epoch at %d", last, end)
	}
	if int64(n) != log.Count || size != log.Bytes {
		c.wrong("the log has %d entries of %d bytes, its record says %d of %d", n, size, log.Count, log.Bytes)
	}
	for k, e := range newest {
		stored, ok := c.resources[k]
		if want := e.Type != backend.Deleted; ok != want || want && stored != e.Revision {
			c.wrong("%s is stored at %q, its last log entry is %s %s", e.Resource.Key, stored, e.Type, e.Revision)
		}
	}
}

package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// The buckets of the file. A change updates all of them in one transaction.
//
//	meta       "magic", "format", "log" (a logRecord)
//	resources  Key.Append                -> encoded resource
//	deleting   Key.Append                -> nothing; the resources whose deletion was requested
//	refs       AppendRefKey              -> offset of the referrer's key in the key
//	expiry     AppendInt(ms), Key.Append -> nothing
//	log        epoch, seq, big-endian    -> encoded log entry
const (
	metaBucket     = "meta"
	resourceBucket = "resources"
	deletingBucket = "deleting"
	refBucket      = "refs"
	expiryBucket   = "expiry"
	logBucket      = "log"

	magicKey  = "magic"
	magic     = "sluice store"
	formatKey = "format"
	logKey    = "log"
)

// Format is the version of the stored format that this release reads and writes.
const Format = 8

// logRecord is the stored state of the log.
type logRecord struct {
	State storekit.LogState
	// Count is the number of entries in the log, and Bytes their total size.
	Count, Bytes int64
}

func (l *logRecord) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(l.State.Epochs)))
	for _, e := range l.State.Epochs {
		b = appendRevision(b, e)
	}
	b = appendRevision(b, l.State.Trimmed)
	b = binary.AppendUvarint(b, l.State.Internal)
	b = binary.AppendUvarint(b, uint64(l.Count))
	return appendSum(binary.AppendUvarint(b, uint64(l.Bytes)))
}

func decodeLogRecord(b []byte) (logRecord, error) {
	fields, err := cutSum(b)
	if err != nil {
		return logRecord{}, fmt.Errorf("log record: %w", err)
	}
	d := &decoder{rest: fields}
	var l logRecord
	n := d.uvarint()
	if n > uint64(len(fields)) {
		return logRecord{}, fmt.Errorf("log record: %w", backend.ErrUnreadable)
	}
	l.State.Epochs = make([]backend.Revision, n)
	for i := range l.State.Epochs {
		l.State.Epochs[i] = d.revision()
	}
	l.State.Trimmed, l.State.Internal = d.revision(), d.uvarint()
	l.Count, l.Bytes = int64(d.uvarint()), int64(d.uvarint())
	if err := d.err(); err != nil {
		return logRecord{}, fmt.Errorf("log record: %w", err)
	}
	return l, nil
}

func readLogRecord(tx *bbolt.Tx) (logRecord, error) {
	return decodeLogRecord(tx.Bucket([]byte(metaBucket)).Get([]byte(logKey)))
}

func writeLogRecord(tx *bbolt.Tx, l *logRecord) error {
	return tx.Bucket([]byte(metaBucket)).Put([]byte(logKey), l.encode())
}

// entryKeyBytes is the length of a log entry's key.
const entryKeyBytes = 16

// entryKey returns the key of a log entry. Keys are ordered by revision.
func entryKey(r backend.Revision) []byte { return appendEntryKey(make([]byte, 0, entryKeyBytes), r) }

func appendEntryKey(b []byte, r backend.Revision) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, r.Epoch), r.Seq)
}

func decodeEntryKey(b []byte) (backend.Revision, error) {
	if len(b) != entryKeyBytes {
		return backend.Revision{}, fmt.Errorf("log key: %w", backend.ErrUnreadable)
	}
	return backend.Revision{Epoch: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}, nil
}

// expiryKey returns the key of an entry in the bucket expiry, ordered by time.
func expiryKey(at time.Time, key []byte) []byte {
	return append(backend.AppendInt(make([]byte, 0, 9+len(key)), at.UnixMilli()), key...)
}

// refEntry returns the entry in the bucket refs for a reference from the resource with key k.
func refEntry(k backend.Key, ref backend.Ref) (key, value []byte) {
	key = backend.AppendRefKey(nil, ref, k)
	return key, binary.AppendUvarint(nil, uint64(len(key)-len(k.Append(nil))))
}

// entryTarget returns the key of the referrer, which is the end of the key of an entry in the bucket refs.
func entryTarget(key, value []byte) ([]byte, error) {
	at, n := binary.Uvarint(value)
	if n != len(value) || at > uint64(len(key)) {
		return nil, fmt.Errorf("entry: %w", backend.ErrUnreadable)
	}
	return key[at:], nil
}

func bucketNames() []string {
	return []string{metaBucket, resourceBucket, deletingBucket, refBucket, expiryBucket, logBucket}
}

// strangers returns an error for a file without a meta bucket, unless it is empty. If it has buckets with other names,
// it belongs to another program. If it has a bucket of a store, or a value outside of any bucket, it is damaged. A
// copy that was made during a write can be like that.
func strangers(tx *bbolt.Tx) error {
	cursor := tx.Cursor()
	k, v := cursor.First()
	if k == nil {
		return nil
	}
	for ; k != nil; k, v = cursor.Next() {
		if v != nil || slices.Contains(bucketNames(), string(k)) {
			return backend.FormatErrorf("the file is damaged: it has parts of a store and no head; was it copied while it was written?")
		}
	}
	return backend.FormatErrorf("the file belongs to another program")
}

// prepare creates the buckets in an empty file. It returns an error for a file that is not a store in this format.
func prepare(tx *bbolt.Tx) error {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		if err := strangers(tx); err != nil {
			return err
		}
		for _, name := range bucketNames() {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		meta = tx.Bucket([]byte(metaBucket))
		if err := meta.Put([]byte(magicKey), []byte(magic)); err != nil {
			return err
		}
		if err := meta.Put([]byte(formatKey), binary.AppendUvarint(nil, Format)); err != nil {
			return err
		}
		return writeLogRecord(tx, &logRecord{})
	}
	return checkFormat(tx)
}

// checkFormat returns an error for a file with a meta bucket that is not a store in this format.
func checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket([]byte(metaBucket))
	if string(meta.Get([]byte(magicKey))) != magic {
		return backend.FormatErrorf("the file belongs to another program")
	}
	format, n := binary.Uvarint(meta.Get([]byte(formatKey)))
	if n <= 0 || format == 0 {
		return backend.FormatErrorf("the file does not say its format")
	}
	if format > Format {
		return backend.FormatErrorf("the file has format %d, written by a newer release; this one reads %d", format, Format)
	}
	if format < Format {
		return backend.FormatErrorf("the file has format %d, written before the first release; this one reads %d: begin with an empty folder", format, Format)
	}
	for _, name := range []string{resourceBucket, deletingBucket, refBucket, expiryBucket, logBucket} {
		if tx.Bucket([]byte(name)) == nil {
			return backend.FormatErrorf("the file has no bucket %q", name)
		}
	}
	return nil
}

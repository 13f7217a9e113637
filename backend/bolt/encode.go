package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The form of a resource is a version byte, the length of the envelope, the
// envelope and the body. The form of a log entry is a version byte, the length
// of its head, the head and the resource. Within envelope and head integers are
// varints, times are milliseconds since 1970, and strings have their length
// before them. The envelope begins with flags and expiry, the head with size
// and time, so that counts and trimming read no more than that.
const (
	resourceForm byte = 1
	entryForm    byte = 1
)

const (
	flagDeleting byte = 1 << iota
	flagExpires
)

// What of an entry the rows before are.
const (
	rowsOfResource byte = iota // those of the resource itself
	rowsOfEntry                // those that follow in the entry
)

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendRevision(b []byte, r backend.Revision) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, r.Epoch), r.Seq)
}

func appendRows(b []byte, rows []backend.Row) []byte {
	b = binary.AppendUvarint(b, uint64(len(rows)))
	for _, row := range rows {
		b = appendString(b, row.Index)
		b = append(binary.AppendUvarint(b, uint64(len(row.Value))), row.Value...)
	}
	return b
}

// framed appends a version byte and what write appends, after its length.
func framed(b []byte, version byte, write func([]byte) []byte) []byte {
	var space [256]byte
	part := write(space[:0])
	return append(binary.AppendUvarint(append(b, version), uint64(len(part))), part...)
}

// appendResource appends the form of a resource; its key is not part of it.
func appendResource(b []byte, r *backend.Resource) []byte {
	b = framed(b, resourceForm, func(b []byte) []byte {
		var flags byte
		if r.Deleting {
			flags |= flagDeleting
		}
		if !r.ExpiresAt.IsZero() {
			b = binary.AppendVarint(append(b, flags|flagExpires), r.ExpiresAt.UnixMilli())
		} else {
			b = append(b, flags)
		}
		b = appendRevision(appendRevision(b, r.Revision), r.SpecRevision)
		b = binary.AppendVarint(binary.AppendVarint(b, r.CreatedAt.UnixMilli()), r.UpdatedAt.UnixMilli())
		return appendRows(appendString(appendString(b, r.UID), r.Fingerprint), r.Rows)
	})
	return append(b, r.Body...)
}

// encodeEvent returns the form of a log entry and, as its end, that of its resource.
func encodeEvent(e *backend.Event) (entry, resource []byte) {
	b := framed(make([]byte, 0, e.Size()+256), entryForm, func(b []byte) []byte {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(e.Size())), e.Time.UnixMilli())
		b = append(b, byte(e.Type))
		b = appendString(appendString(appendString(b, e.Resource.Kind), e.Resource.Namespace), e.Resource.Name)
		b = appendString(b, e.RequestID)
		switch {
		case e.Type == backend.Modified && e.RowsChanged():
			b = appendRows(append(b, rowsOfEntry), e.RowsBefore)
		case e.Type == backend.Modified:
			b = append(b, rowsOfResource)
		}
		if e.Type == backend.Modified {
			b = appendString(b, e.FingerprintBefore)
		}
		return b
	})
	n := len(b)
	b = appendResource(b, e.Resource)
	return b, b[n:]
}

// decoder reads one part of a form. The first thing that does not fit makes it bad.
type decoder struct {
	text string // the part, for strings that share its memory
	rest []byte // what is left of it
	bad  bool
}

// part returns a decoder of the framed part that b begins with, and what follows it.
func part(b []byte, version byte) (d decoder, rest []byte, err error) {
	if len(b) == 0 || b[0] != version {
		return decoder{}, nil, fmt.Errorf("unknown form: %w", backend.ErrUnreadable)
	}
	n, k := binary.Uvarint(b[1:])
	if k <= 0 || n > uint64(len(b)-1-k) {
		return decoder{}, nil, fmt.Errorf("cut short: %w", backend.ErrUnreadable)
	}
	b = b[1+k:]
	return decoder{rest: b[:n:n]}, b[n:], nil
}

// share makes strings share one copy of the part.
func (d *decoder) share() { d.text = string(d.rest) }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) time() time.Time {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return time.Time{}
	}
	d.rest = d.rest[n:]
	return time.UnixMilli(v).UTC()
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	v := d.rest[:n:n]
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) string() string {
	n := len(d.bytes())
	end := len(d.text) - len(d.rest)
	if d.bad || n > end {
		return ""
	}
	return d.text[end-n : end]
}

func (d *decoder) revision() backend.Revision {
	return backend.Revision{Epoch: d.uvarint(), Seq: d.uvarint()}
}

func (d *decoder) rows() []backend.Row {
	n := d.uvarint()
	if n > uint64(len(d.rest)) || n > math.MaxInt32 {
		d.bad = true
	}
	if d.bad || n == 0 {
		return nil
	}
	rows := make([]backend.Row, n)
	for i := range rows {
		rows[i] = backend.Row{Index: d.string(), Value: d.bytes()}
	}
	return rows
}

// err says whether all of the part was read, and read well.
func (d *decoder) err() error {
	if d.bad || len(d.rest) > 0 {
		return fmt.Errorf("malformed: %w", backend.ErrUnreadable)
	}
	return nil
}

// decodeResource reads what appendResource wrote. The result has its own memory.
func decodeResource(k backend.Key, b []byte) (*backend.Resource, error) {
	d, body, err := part(bytes.Clone(b), resourceForm)
	if err != nil {
		return nil, err
	}
	d.share()
	r := &backend.Resource{Key: k, Body: body}
	flags := d.byte()
	r.Deleting = flags&flagDeleting != 0
	if flags&flagExpires != 0 {
		r.ExpiresAt = d.time()
	}
	r.Revision, r.SpecRevision = d.revision(), d.revision()
	r.CreatedAt, r.UpdatedAt = d.time(), d.time()
	r.UID, r.Fingerprint = d.string(), d.string()
	r.Rows = d.rows()
	if flags&^(flagDeleting|flagExpires) != 0 {
		d.bad = true
	}
	return r, d.err()
}

// expiryOf reads when an encoded resource expires; zero means never.
func expiryOf(b []byte) (time.Time, error) {
	d, _, err := part(b, resourceForm)
	if err != nil || d.byte()&flagExpires == 0 {
		return time.Time{}, err
	}
	at := d.time()
	if d.bad {
		return time.Time{}, fmt.Errorf("malformed: %w", backend.ErrUnreadable)
	}
	return at, nil
}

// expiredForm says whether an encoded resource is expired.
func expiredForm(b []byte, now time.Time) (bool, error) {
	at, err := expiryOf(b)
	e := backend.Envelope{ExpiresAt: at}
	return e.ExpiredAt(now), err
}

// decodeEvent reads what encodeEvent wrote. The result has its own memory.
func decodeEvent(rev backend.Revision, b []byte) (backend.Event, error) {
	d, rest, err := part(b, entryForm)
	if err != nil {
		return backend.Event{}, err
	}
	d.share()
	d.uvarint()
	e := backend.Event{Revision: rev, Time: d.time(), Type: backend.EventType(d.byte())}
	k := backend.Key{Kind: d.string(), Namespace: d.string(), Name: d.string()}
	e.RequestID = d.string()
	if e.Resource, err = decodeResource(k, rest); err != nil {
		return backend.Event{}, err
	}
	switch e.Type {
	case backend.Added:
	case backend.Modified:
		e.RowsBefore = e.Resource.Rows
		switch d.byte() {
		case rowsOfResource:
		case rowsOfEntry:
			e.RowsBefore = d.rows()
			for i := range e.RowsBefore {
				e.RowsBefore[i].Value = bytes.Clone(e.RowsBefore[i].Value)
			}
		default:
			d.bad = true
		}
		e.FingerprintBefore = d.string()
	case backend.Deleted:
		e.RowsBefore, e.FingerprintBefore = e.Resource.Rows, e.Resource.Fingerprint
	default:
		d.bad = true
	}
	return e, d.err()
}

// entryHead reads size and time of a log entry.
func entryHead(b []byte) (size int64, at time.Time, err error) {
	d, _, err := part(b, entryForm)
	if err != nil {
		return 0, time.Time{}, err
	}
	size, at = int64(d.uvarint()), d.time()
	if d.bad || size < 0 {
		return 0, time.Time{}, fmt.Errorf("malformed: %w", backend.ErrUnreadable)
	}
	return size, at, nil
}

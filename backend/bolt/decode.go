package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// decoder decodes a part of a form. After the first error it returns zero values.
type decoder struct {
	text string // the part, for strings that share its memory
	rest []byte // not read yet
	bad  bool
}

// part returns a decoder for the part at the beginning of b, and the rest of b. It does not check the sum.
func part(b []byte, version byte) (d decoder, rest []byte, err error) {
	if len(b) == 0 || b[0] != version {
		return decoder{}, nil, fmt.Errorf("unknown form: %w", backend.ErrUnreadable)
	}
	if len(b) < sumAt+sumBytes {
		return decoder{}, nil, fmt.Errorf("cut short: %w", backend.ErrUnreadable)
	}
	b = b[sumAt+sumBytes:]
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return decoder{}, nil, fmt.Errorf("cut short: %w", backend.ErrUnreadable)
	}
	b = b[k:]
	return decoder{rest: b[:n:n]}, b[n:], nil
}

// share copies the part. All results of [decoder.string] share the copy, so share must be called first.
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

// finalizers decodes the number of finalizers, which is not 0.
func (d *decoder) finalizers() int {
	n := d.uvarint()
	if n == 0 || n > backend.MaxFinalizers {
		d.bad = true
		return 0
	}
	return int(n)
}

// bindingVersion decodes a binding version. It is 0 in the log entry of a delete whose resource could not be decoded.
func (d *decoder) bindingVersion() uint32 {
	n := d.uvarint()
	if n > math.MaxUint32 {
		d.bad = true
		return 0
	}
	return uint32(n)
}

// count decodes the length of a list whose elements have at least one byte.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) || n > math.MaxInt32 {
		d.bad = true
	}
	if d.bad {
		return 0
	}
	return int(n)
}

// err returns an error if there was one, or if bytes are left.
func (d *decoder) err() error {
	d.bad = d.bad || len(d.rest) > 0
	return d.cutShort()
}

// cutShort returns [backend.ErrUnreadable] if the part is too short or has an invalid value. Bytes may be left.
func (d *decoder) cutShort() error {
	if d.bad {
		return fmt.Errorf("malformed: %w", backend.ErrUnreadable)
	}
	return nil
}

// expiredForm reports whether an encoded resource is expired, without checking the sum.
func expiredForm(b []byte, now time.Time) (bool, error) {
	d, _, err := part(b, resourceForm)
	if err != nil || d.byte()&flagExpires == 0 {
		return false, err
	}
	return !d.time().After(now), d.cutShort()
}

// key decodes a key that was encoded by appendKey.
func (d *decoder) key() backend.Key {
	return backend.Key{Kind: d.string(), Namespace: d.string(), Name: d.string()}
}

// before decodes the result of appendBefore. If bound is false, b.Bound was not stored, because the change did not
// affect the bound references.
func (d *decoder) before() (b *backend.Before, bound bool) {
	flags := d.byte()
	b = &backend.Before{Deleting: flags&flagDeleting != 0, Revision: d.revision(), UpdatedAt: d.time()}
	if flags&flagExpires != 0 {
		b.ExpiresAt = d.time()
	}
	if flags&flagBound != 0 {
		for range d.count() {
			b.Bound = append(b.Bound, d.key())
		}
	}
	d.bad = d.bad || flags&^(flagDeleting|flagExpires|flagBound) != 0
	return b, flags&flagBound != 0
}

// entryParts are the decoded parts of a log entry, without the resource, which is still encoded.
type entryParts struct {
	size   int64
	event  backend.Event // without Resource and Change
	key    backend.Key
	change []byte
	// bound is false if event.Before.Bound was not stored, because the resource has the same bound references after the
	// change.
	bound bool
	// resource is the encoded resource.
	resource []byte
}

// readEntry decodes a log entry without its resource, and checks the sum of the entry. The result shares memory with b.
func readEntry(rev backend.Revision, b []byte) (p entryParts, err error) {
	d, rest, err := part(b, entryForm)
	if err != nil {
		return p, err
	}
	d.share()
	p.size = int64(d.uvarint())
	p.event = backend.Event{Revision: rev, Time: d.time(), Type: backend.EventType(d.byte())}
	p.key = d.key()
	p.event.RequestID = d.string()
	p.event.Actor = d.string()
	p.bound = true
	p.resource = rest
	switch p.event.Type {
	case backend.Added, backend.Deleted:
	case backend.Modified:
		p.event.Before, p.bound = d.before()
		n := d.uvarint()
		if n > uint64(len(rest)) {
			return p, fmt.Errorf("cut short: %w", backend.ErrUnreadable)
		}
		p.change = rest[:n]
		p.resource = rest[n:]
	default:
		d.bad = true
	}
	d.bad = d.bad || p.size < 0
	if err := d.err(); err != nil {
		return p, err
	}
	var key [entryKeyBytes]byte
	return p, checkSum(appendEntryKey(key[:0], rev), b[:len(b)-len(p.resource)])
}

// decodeEvent decodes a log entry. The result does not share memory with b.
func decodeEvent(rev backend.Revision, b []byte) (backend.Event, error) {
	p, err := readEntry(rev, b)
	if err != nil {
		return backend.Event{}, err
	}
	e := p.event
	if len(p.change) > 0 {
		e.Change = bytes.Clone(p.change)
	}
	e.Resource, err = new(arena).resource(p.key, p.key.Append(nil), p.resource)
	if err != nil {
		return backend.Event{}, err
	}
	if !p.bound {
		e.Before.Bound = e.Resource.Bound()
	}
	return e, nil
}

// entryHead decodes the size and the time of a log entry.
func entryHead(rev backend.Revision, b []byte) (size int64, at time.Time, err error) {
	p, err := readEntry(rev, b)
	if err != nil {
		return 0, time.Time{}, err
	}
	return p.size, p.event.Time, nil
}

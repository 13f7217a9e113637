package redis

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The stored form of a resource, which the scripts also read (HEADER in record.lua):
//
//	revision, updated, expires, deleting, spec revision, uid, created, finalizers,
//	size of the references, size of the bound references, length of the list of references,
//	declared, bindingVersion, ext: each ended by a newline
//	sum of the body, sum of the header: without a newline, see sum.go
//	list of references
//	body
//
// The spec revision is empty if it equals the revision. Times are milliseconds since 1970. expires has 15 digits, as in
// the index, and is empty for a resource that does not expire. deleting is "y" or empty. The first size is what the
// references add to [backend.Resource.Size], the second what the bound references add to [backend.Event.Size]. Each
// element of the list of references is its length in two bytes, followed by the tuple of the key and whether the
// reference is bound. ext is empty. A later release may use it, so every write keeps it.
const deletingFlag = "y"

// packed appends an element to a list, preceded by its length.
func packed(b, element []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(element))), element...)
}

// unpack returns the first element of a list and the rest.
func unpack(b []byte) (element, rest []byte, err error) {
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("list cut short: %w", backend.ErrUnreadable)
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:end:end], b[end:], nil
}

// expiry returns the stored form of an expiry, which must be between the years 1970 and 9999.
func expiry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%0*d", expiryDigits, max(at.UnixMilli(), 0))
}

const expiryDigits = 15

// escape encodes a string for a field that ends with a newline.
func escape(s string) string {
	if strings.ContainsAny(s, "\n%") {
		return url.QueryEscape(s)
	}
	return s
}

// envelope is the part of a header that a log entry also has, for the replaced record.
type envelope struct {
	revision         backend.Revision
	updated, expires time.Time
	deleting         bool
}

// header is a parsed record. The list of references and the body are not decoded.
type header struct {
	envelope
	spec           backend.Revision
	uid, declared  string
	created        time.Time
	finalizers     int
	bindingVersion uint32
	// fields has all fields before the sum of the header, as they are stored.
	fields, bodySum, sum string
	refs, body           string // refs is the list of references
}

func badRecord() error { return fmt.Errorf("record: %w", backend.ErrUnreadable) }

// fields parses a stored form, one field after the other. After the first error it returns zero values.
type fields struct {
	rest string // what follows the fields read so far
	bad  bool
}

// next returns the next field, which ends with a newline.
func (f *fields) next() string {
	field, rest, ok := strings.Cut(f.rest, "\n")
	f.rest = rest
	if !ok {
		f.bad = true
		return ""
	}
	return field
}

// empty reports whether the next field is empty. If so, it skips the field.
func (f *fields) empty() (yes bool) {
	f.rest, yes = strings.CutPrefix(f.rest, "\n")
	return yes
}

// take returns the next n bytes.
func (f *fields) take(n uint64) (s string) {
	if n > uint64(len(f.rest)) {
		f.bad, n = true, 0
	}
	s, f.rest = f.rest[:n], f.rest[n:]
	return s
}

func (f *fields) number(bits int) uint64 {
	n, err := strconv.ParseUint(f.next(), 10, bits)
	f.bad = f.bad || err != nil
	return n
}

func (f *fields) time() time.Time { return time.UnixMilli(int64(f.number(63))).UTC() }

// text returns the next field, which was encoded by [escape].
func (f *fields) text() string {
	s := f.next()
	if !strings.Contains(s, "%") {
		return s
	}
	s, err := url.QueryUnescape(s)
	f.bad = f.bad || err != nil
	return s
}

func (f *fields) revision() backend.Revision {
	r, err := backend.ParseRevision(f.next())
	f.bad = f.bad || err != nil
	return r
}

// envelope returns the first four fields of a header.
func (f *fields) envelope() (e envelope) {
	e.revision, e.updated = f.revision(), f.time()
	if !f.empty() {
		f.bad = f.bad || strings.IndexByte(f.rest, '\n') != expiryDigits
		e.expires = f.time()
	}
	deleting := f.next()
	e.deleting = deleting == deletingFlag
	f.bad = f.bad || !e.deleting && deleting != ""
	return e
}

func (f *fields) err() error {
	if f.bad {
		return badRecord()
	}
	return nil
}

func parseHeader(value string) (h header, err error) {
	f := fields{rest: value}
	h.envelope = f.envelope()
	h.spec = h.revision
	if !f.empty() {
		h.spec = f.revision()
	}
	h.uid, h.created = f.text(), f.time()
	finalizers := f.next()
	h.finalizers, err = strconv.Atoi(finalizers)
	f.bad = f.bad || err != nil || h.finalizers < 0 || h.finalizers > backend.MaxFinalizers ||
		strconv.Itoa(h.finalizers) != finalizers
	f.next() // the sizes of the references are for the scripts
	f.next()
	refs := f.number(31)
	h.declared, h.bindingVersion = f.text(), uint32(f.number(32))
	f.next() // ext
	h.bodySum = f.take(bodySumBytes)
	h.fields = value[:len(value)-len(f.rest)]
	h.sum = f.take(sumDigits)
	h.refs = f.take(refs)
	h.body = f.rest
	if f.bad || h.bindingVersion == 0 {
		return header{}, badRecord()
	}
	return h, nil
}

// headBytes is an upper bound for the size of the first four fields of a header.
const headBytes = 96

// recordHead decodes the part of a record that [backend.Range.KeysOnly] needs. It does not check the sums: callers only
// compare revisions, and read the resources whose revisions differ.
func recordHead(k backend.Key, value string) (*backend.Resource, error) {
	f := fields{rest: value}
	e := f.envelope()
	return &backend.Resource{Key: k, Envelope: backend.Envelope{Revision: e.revision, ExpiresAt: e.expires}}, f.err()
}

func decodeRecord(k backend.Key, value string) (*backend.Resource, error) {
	return decodeParts(k, value, "")
}

// decodeParts decodes a stored resource whose body, or the end of it, is given separately.
func decodeParts(k backend.Key, value, body string) (*backend.Resource, error) {
	h, err := parseHeader(value)
	if err != nil {
		return nil, err
	}
	r, err := h.checked(k, body)
	if err != nil {
		return nil, err
	}
	r.Refs, err = decodeRefs(h.refs)
	return r, err
}

// bareRecord decodes a stored resource without its references.
func bareRecord(k backend.Key, value string) (*backend.Resource, error) {
	h, err := parseHeader(value)
	if err != nil {
		return nil, err
	}
	return h.checked(k, "")
}

// checked returns the resource of a header without its references, if all sums match. body is the part of the body that
// was stored separately: it continues the part that follows the header.
func (h *header) checked(k backend.Key, body string) (*backend.Resource, error) {
	if err := h.check(k); err != nil {
		return nil, err
	}
	whole := []byte(h.body + body)
	if err := h.checkBody(whole); err != nil {
		return nil, err
	}
	return h.resource(k, whole), nil
}

// resource returns the resource of a header without its references. Strings are copied, because a substring would keep
// the whole record in memory.
func (h *header) resource(k backend.Key, body []byte) *backend.Resource {
	return &backend.Resource{
		Key: k, Body: body,
		Envelope: backend.Envelope{
			UID:            strings.Clone(h.uid),
			Revision:       h.revision,
			SpecRevision:   h.spec,
			Deleting:       h.deleting,
			Finalizers:     h.finalizers,
			Declared:       strings.Clone(h.declared),
			BindingVersion: h.bindingVersion,
			ExpiresAt:      h.expires,
			CreatedAt:      h.created,
			UpdatedAt:      h.updated,
		},
	}
}

func decodeRefs(list string) (refs []backend.Ref, err error) {
	for b := []byte(list); len(b) > 0; {
		var element []byte
		if element, b, err = unpack(b); err != nil {
			return nil, err
		}
		last := len(element) - 1
		if last < 0 {
			return nil, fmt.Errorf("reference: %w", backend.ErrUnreadable)
		}
		key, err := backend.DecodeKey(element[:last])
		if err != nil {
			return nil, err
		}
		refs = append(refs, backend.Ref{Key: key, Bound: element[last] == backend.AppendBool(nil, true)[0]})
	}
	return refs, nil
}

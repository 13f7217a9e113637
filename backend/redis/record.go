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

// The stored form of a resource, which the scripts read too (HEADER in record.lua):
//
//	revision, updated, expires, deleting, spec revision, uid, created, finalizers,
//	size of the references, size of the bound ones, length of the list of them,
//	declared, passes, ext: each ended by a newline
//	list of references
//	body
//
// The spec revision is empty where it is the revision. Times are milliseconds since 1970;
// expires has 15 digits, as in the index, and is empty for never. deleting is "y" or empty.
// The sizes are what the references count in [backend.Resource.Size], and what the bound
// ones count in [backend.Event.Size]. Each reference in the list is the tuple of its key and
// whether it is bound, behind their length in two bytes. ext is empty; a newer release may
// use it, and every write keeps it.
const headerFields = 14

const deletingFlag = "y"

// packed appends an element of a list, behind its length.
func packed(b, element []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(element))), element...)
}

// unpack reads the first element of a list.
func unpack(b []byte) (element, rest []byte, err error) {
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("list cut short: %w", backend.ErrUnreadable)
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:end:end], b[end:], nil
}

// expiry is the stored form of an expiry. Those of the contract lie between 1970 and 9999.
func expiry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%0*d", expiryDigits, max(at.UnixMilli(), 0))
}

const expiryDigits = 15

// escape makes a string fit for a field that ends in a newline.
func escape(s string) string {
	if strings.ContainsAny(s, "\n%") {
		return url.QueryEscape(s)
	}
	return s
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	return url.QueryUnescape(s)
}

// envelope is the part of the header that a log entry keeps of what was replaced.
type envelope struct {
	revision         backend.Revision
	updated, expires time.Time
	deleting         bool
}

// header is what stands before the body.
type header struct {
	envelope
	spec          backend.Revision
	uid, declared string
	created       time.Time
	finalizers    int
	passes        uint32
	refs, body    string // refs is the list of references
}

func badRecord() error { return fmt.Errorf("record: %w", backend.ErrUnreadable) }

// cut reads fields that each end with a newline, and returns what follows them.
func cut(s string, field []string) (rest string, err error) {
	for i := range field {
		var ok bool
		if field[i], s, ok = strings.Cut(s, "\n"); !ok {
			return "", badRecord()
		}
	}
	return s, nil
}

func parseHeader(value string) (h header, err error) {
	var field [headerFields]string
	rest, err := cut(value, field[:])
	if err != nil {
		return header{}, err
	}
	var errs [8]error
	h.envelope, errs[0] = parseEnvelope(field[:4])
	if h.spec = h.revision; field[4] != "" {
		h.spec, errs[1] = parseRevision(field[4])
	}
	h.uid, errs[2] = unescape(field[5])
	h.created, errs[3] = parseMillis(field[6])
	h.finalizers, errs[4] = parseFinalizers(field[7])
	n, err := strconv.ParseUint(field[10], 10, 31)
	errs[5] = err
	h.declared, errs[6] = unescape(field[11])
	passes, err := strconv.ParseUint(field[12], 10, 32)
	errs[7] = err
	for _, err := range errs {
		if err != nil {
			return header{}, badRecord()
		}
	}
	if n > uint64(len(rest)) || passes == 0 {
		return header{}, badRecord()
	}
	h.passes, h.refs, h.body = uint32(passes), rest[:n], rest[n:]
	return h, nil
}

// headBytes is at least what the first four fields of a header take.
const headBytes = 96

// recordHead reads what [backend.Range.KeysOnly] leaves of a stored resource.
func recordHead(k backend.Key, value string) (*backend.Resource, error) {
	var field [4]string
	if _, err := cut(value, field[:]); err != nil {
		return nil, err
	}
	e, err := parseEnvelope(field[:])
	return &backend.Resource{Key: k, Envelope: backend.Envelope{Revision: e.revision, ExpiresAt: e.expires}}, err
}

// parseEnvelope reads the first four fields of a header.
func parseEnvelope(field []string) (e envelope, err error) {
	if e.revision, err = parseRevision(field[0]); err != nil {
		return e, err
	}
	if e.updated, err = parseMillis(field[1]); err != nil {
		return e, err
	}
	if field[2] != "" {
		if e.expires, err = parseMillis(field[2]); err != nil || len(field[2]) != expiryDigits {
			return e, badRecord()
		}
	}
	if e.deleting = field[3] != ""; e.deleting && field[3] != deletingFlag {
		return e, badRecord()
	}
	return e, nil
}

// parseRevision is [backend.ParseRevision] without an allocation: every record has two.
func parseRevision(s string) (backend.Revision, error) {
	epoch, seq, _ := strings.Cut(s, "-")
	e, err1 := strconv.ParseUint(epoch, 10, 64)
	q, err2 := strconv.ParseUint(seq, 10, 64)
	if err1 != nil || err2 != nil || epoch[0] == '0' && len(epoch) > 1 || seq[0] == '0' && len(seq) > 1 {
		return backend.Revision{}, badRecord()
	}
	r := backend.Revision{Epoch: e, Seq: q}
	if r.IsZero() {
		return r, badRecord()
	}
	return r, nil
}

func parseFinalizers(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n > backend.MaxFinalizers || strconv.Itoa(int(n)) != s {
		return 0, badRecord()
	}
	return int(n), nil
}

func parseMillis(s string) (time.Time, error) {
	ms, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return time.Time{}, badRecord()
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// decodeRecord reads a stored resource.
func decodeRecord(k backend.Key, value string) (*backend.Resource, error) {
	return names(nil).record(k, value)
}

// record reads a stored resource.
func (n names) record(k backend.Key, value string) (*backend.Resource, error) {
	h, err := parseHeader(value)
	if err != nil {
		return nil, err
	}
	r := h.resource(k, []byte(h.body))
	r.Refs, err = n.references(h.refs)
	return r, err
}

// bareRecord reads a stored resource without its references.
func bareRecord(k backend.Key, value string) (*backend.Resource, error) {
	h, err := parseHeader(value)
	if err != nil {
		return nil, err
	}
	return h.resource(k, []byte(h.body)), nil
}

// resource is what the header says of one, without its references. Its UID is a copy: a
// part of the value would keep the whole value in memory, beside the body.
func (h *header) resource(k backend.Key, body []byte) *backend.Resource {
	return &backend.Resource{
		Key: k, Body: body,
		Envelope: backend.Envelope{
			UID: strings.Clone(h.uid), Revision: h.revision, SpecRevision: h.spec, Deleting: h.deleting, Finalizers: h.finalizers,
			Declared: strings.Clone(h.declared), Passes: h.passes, ExpiresAt: h.expires, CreatedAt: h.created, UpdatedAt: h.updated,
		},
	}
}

// references decodes a list of references.
func (n names) references(list string) (refs []backend.Ref, err error) {
	for b := []byte(list); len(b) > 0; {
		var element []byte
		if element, b, err = unpack(b); err != nil {
			return nil, err
		}
		last := len(element) - 1
		if last < 0 {
			return nil, fmt.Errorf("reference: %w", backend.ErrUnreadable)
		}
		key, err := n.key(element[:last])
		if err != nil {
			return nil, err
		}
		refs = append(refs, backend.Ref{Key: key, Bound: element[last] == backend.AppendBool(nil, true)[0]})
	}
	return refs, nil
}

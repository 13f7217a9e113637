package redis

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The stored form of a resource, which the scripts read too (HEADER in batch.lua):
//
//	revision, spec revision, uid, created, updated, finalizers, expires, deleting,
//	size, size of the rows, length of the entries, size of the references, length of
//	their entries, declared, passes, ext: each ended by a newline
//	entries
//	entries of references
//	body
//
// Times are milliseconds since 1970; expires is empty for never, and deleting is
// "y" or empty. Entries stand for the members of the index that lead to the
// resource. Each has a type, its length in two bytes, and that many bytes: a row
// (index and value), the expiry, or a reference (target and bound, as in
// [backend.Resource.RefEntries]). Those of references stand apart, so that a put that
// leaves them as they are need not look at them. ext is empty; a newer release may
// use it, and every write keeps it.
const headerFields = 16

// The types of entries and of the members that they stand for. Every resource also
// has a member of the type memberName, for which there is no entry.
const (
	entryRow    byte = 'i'
	entryRef    byte = 'r'
	entryExpiry byte = 'x'
	memberName  byte = 'n'
)

const deletingFlag = "y"

// Bytes of an entry of a row beside its index and value: its type and length, and what
// ends the name of the index.
const (
	entryHead     = 3
	entryOverhead = entryHead + 2
)

// appendEntries appends the entries of the resource, except those of its references.
func appendEntries(b []byte, r *backend.Resource) []byte {
	rows := r.IndexRows()
	b = slices.Grow(b, rowsSize(rows)+entryOverhead*len(rows))
	for _, row := range rows {
		at := len(b)
		b = append(b, entryRow, 0, 0)
		b = append(backend.AppendString(b, row.Index), row.Value...)
		binary.BigEndian.PutUint16(b[at+1:], uint16(len(b)-at-entryHead))
	}
	if !r.ExpiresAt.IsZero() {
		b = appendEntry(b, entryExpiry, backend.AppendInt(nil, r.ExpiresAt.UnixMilli()))
	}
	return b
}

// refEntries are the entries of the references of the resource.
func refEntries(r *backend.Resource) (b []byte) {
	for _, ref := range r.RefEntries() {
		b = appendEntry(b, entryRef, backend.AppendBool(ref.Key.Append(nil), ref.Bound))
	}
	return b
}

func appendEntry(b []byte, kind byte, middle []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(b, kind), uint16(len(middle))), middle...)
}

// takeEntry reads the first entry.
func takeEntry(b []byte) (kind byte, middle, rest []byte, err error) {
	if len(b) < 3 || len(b)-3 < int(binary.BigEndian.Uint16(b[1:])) {
		return 0, nil, nil, fmt.Errorf("entry cut short: %w", backend.ErrUnreadable)
	}
	end := 3 + int(binary.BigEndian.Uint16(b[1:]))
	return b[0], b[3:end:end], b[end:], nil
}

func rowsSize(rows []backend.Row) int {
	n := 0
	for _, row := range rows {
		n += len(row.Index) + len(row.Value)
	}
	return n
}

func millis(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

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

// header is what stands before the entries.
type header struct {
	revision, spec            backend.Revision
	uid                       string
	created, updated, expires time.Time
	finalizers                int
	deleting                  bool
	size, rowsSize            int
	declared                  string
	passes                    uint32
	entries, refs, rest       string // refs are the entries of references, rest is the body
}

func badRecord() error { return fmt.Errorf("record: %w", backend.ErrUnreadable) }

func parseHeader(value string) (h header, err error) {
	var field [headerFields]string
	rest := value
	for i := range field {
		var ok bool
		if field[i], rest, ok = strings.Cut(rest, "\n"); !ok {
			return header{}, badRecord()
		}
	}
	if h.revision, err = parseRevision(field[0]); err != nil {
		return header{}, badRecord()
	}
	if h.spec, err = parseRevision(field[1]); err != nil {
		return header{}, badRecord()
	}
	if h.uid, err = unescape(field[2]); err != nil {
		return header{}, badRecord()
	}
	for i, at := range []*time.Time{&h.created, &h.updated} {
		if *at, err = parseMillis(field[3+i]); err != nil || at.IsZero() {
			return header{}, badRecord()
		}
	}
	if h.expires, err = parseMillis(field[6]); err != nil {
		return header{}, badRecord()
	}
	if h.finalizers, err = parseFinalizers(field[5]); err != nil {
		return header{}, badRecord()
	}
	h.deleting = field[7] != ""
	size, err1 := strconv.ParseUint(field[8], 10, 31)
	rowsSize, err2 := strconv.ParseUint(field[9], 10, 31)
	n, err3 := strconv.ParseUint(field[10], 10, 31)
	if err1 != nil || err2 != nil || err3 != nil || n > uint64(len(rest)) || h.deleting && field[7] != deletingFlag {
		return header{}, badRecord()
	}
	refs, err1 := strconv.ParseUint(field[12], 10, 31)
	passes, err2 := strconv.ParseUint(field[14], 10, 32)
	if h.declared, err = unescape(field[13]); err != nil || err1 != nil || err2 != nil || refs > uint64(len(rest))-n || passes == 0 {
		return header{}, badRecord()
	}
	h.size, h.rowsSize, h.passes = int(size), int(rowsSize), uint32(passes)
	h.entries, h.refs, h.rest = rest[:n], rest[n:n+refs], rest[n+refs:]
	return h, nil
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
	if s == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	return time.UnixMilli(ms).UTC(), err
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
	own := []byte(value[len(value)-len(h.entries)-len(h.refs)-len(h.rest):]) // one copy of all
	at := len(h.entries)
	end := at + len(h.refs)
	r := h.resource(k, own[end:])
	if r.Fingerprint, r.Rows, err = n.entries(own[:at:at]); err == nil {
		r.Refs, err = n.references(own[at:end:end])
	}
	return r, err
}

// bareRecord reads a stored resource without its entries.
func bareRecord(k backend.Key, value string) (*backend.Resource, error) {
	h, err := parseHeader(value)
	if err != nil {
		return nil, err
	}
	return h.resource(k, []byte(h.rest)), nil
}

// resource is what the header says of one. Its UID is a copy: a part of the value
// would keep the whole value in memory, beside the body.
func (h *header) resource(k backend.Key, body []byte) *backend.Resource {
	return &backend.Resource{
		Key: k, Body: body,
		Envelope: backend.Envelope{
			UID: strings.Clone(h.uid), Revision: h.revision, SpecRevision: h.spec, Deleting: h.deleting, Finalizers: h.finalizers,
			Declared: strings.Clone(h.declared), Passes: h.passes, ExpiresAt: h.expires, CreatedAt: h.created, UpdatedAt: h.updated,
		},
	}
}

// entries decodes the entries of a resource. The row of the reserved definition
// index is the fingerprint, and that of the deleting index is left out: it follows
// from the header. The result shares the memory of b.
func (n names) entries(b []byte) (fingerprint string, rows []backend.Row, err error) {
	for len(b) > 0 {
		var kind byte
		var middle []byte
		if kind, middle, b, err = takeEntry(b); err != nil {
			return "", nil, err
		}
		if kind != entryRow {
			continue
		}
		var index string
		var value []byte
		if index, value, err = n.take(middle); err != nil {
			return "", nil, err
		}
		switch index {
		case backend.DefinitionIndex:
			if fingerprint, _, err = n.take(value); err != nil {
				return "", nil, err
			}
		case backend.DeletingIndex:
		default:
			if rows == nil {
				rows = make([]backend.Row, 0, 4)
			}
			rows = append(rows, backend.Row{Index: index, Value: value[:len(value):len(value)]})
		}
	}
	return fingerprint, rows, nil
}

// references decodes the entries of references.
func (n names) references(b []byte) (refs []backend.Ref, err error) {
	for len(b) > 0 {
		var kind byte
		var middle []byte
		if kind, middle, b, err = takeEntry(b); err != nil {
			return nil, err
		}
		if kind != entryRef || len(middle) == 0 {
			return nil, fmt.Errorf("reference: %w", backend.ErrUnreadable)
		}
		target, bound := middle[:len(middle)-1], middle[len(middle)-1] == backend.AppendBool(nil, true)[0]
		key, err := n.key(target)
		if err != nil {
			return nil, err
		}
		if n := len(refs) - 1; bound && n >= 0 && refs[n].Key == key {
			refs[n].Bound = true
		} else {
			refs = append(refs, backend.Ref{Key: key, Bound: bound})
		}
	}
	return refs, nil
}

// timeLength is the length of a time in a tuple.
const timeLength = 9

// takeTime reads milliseconds that [backend.AppendInt] wrote.
func takeTime(b []byte) (time.Time, error) {
	if len(b) != timeLength {
		return time.Time{}, fmt.Errorf("time: %w", backend.ErrUnreadable)
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[1:]) ^ 1<<63)).UTC(), nil
}

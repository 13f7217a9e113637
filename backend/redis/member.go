package redis

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// member is the member of the index for an entry.
func member(kind byte, middle []byte, k backend.Key) []byte {
	b := []byte{kind}
	if kind == entryRow || kind == entryExpiry {
		return append(append(backend.AppendString(b, k.Kind), middle...), backend.OrderTuple(k.Namespace, k.Name)...)
	}
	return k.Append(append(b, middle...))
}

// membersOf are all members that lead to a resource.
func membersOf(r *backend.Resource) [][]byte {
	out := [][]byte{member(memberName, nil, r.Key)}
	for b := append(appendEntries(nil, r), refEntries(r)...); len(b) > 0; {
		var kind byte
		var middle []byte
		kind, middle, b, _ = takeEntry(b)
		out = append(out, member(kind, middle, r.Key))
	}
	return out
}

// unknownMembers are the members for entries of types that only a newer release
// knows, of a record that decodes.
func unknownMembers(k backend.Key, record string) (out [][]byte) {
	h, _ := parseHeader(record)
	for b := []byte(h.entries); len(b) > 0; {
		var kind byte
		var middle []byte
		kind, middle, b, _ = takeEntry(b)
		switch kind {
		case entryRow, entryExpiry:
		default:
			out = append(out, member(kind, middle, k))
		}
	}
	return out
}

// found is a member of the index and the key that it leads to.
type found struct {
	text string
	key  backend.Key
	// middle is the content of the entry that the member stands for.
	middle string
	err    error // why the member leads to no key
}

// find reads a member of a range.
func (n names) find(r *backend.Range, m string) (f found) {
	f.text = m
	b := []byte(m[1:])
	switch {
	case r.Referenced != nil:
		prefix := min(len(r.Prefix()), len(b))
		f.middle = m[1 : 1+prefix]
		f.key, f.err = n.key(b[prefix:])
	case r.Index != "":
		var own int
		f.key, own, f.err = n.rowKey(b)
		if f.err == nil {
			kind := len(backend.AppendString(nil, f.key.Kind))
			f.middle = m[1+kind : len(m)-own]
		}
	default:
		f.key, f.err = n.key(b)
	}
	return f
}

// leads says whether a record still has the entry that the member stands for.
func (f *found) leads(record string) bool {
	if f.text[0] == memberName {
		return true
	}
	h, err := parseHeader(record)
	if err != nil {
		return false
	}
	entries := h.entries
	if f.text[0] == entryRef {
		entries = h.refs
	}
	for b := []byte(entries); len(b) > 0; {
		var kind byte
		var middle []byte
		if kind, middle, b, err = takeEntry(b); err != nil {
			return false
		}
		if kind == f.text[0] && string(middle) == f.middle {
			return true
		}
	}
	return false
}

// rowKey is the key of a row's resource, which is its kind and its last two
// elements, and the length of these two.
func (n names) rowKey(b []byte) (k backend.Key, length int, err error) {
	kind, rest, err := n.take(b)
	if err != nil {
		return backend.Key{}, 0, err
	}
	var last, before []byte
	for len(rest) > 0 {
		before, last = last, rest
		if rest, err = backend.SkipElement(rest); err != nil {
			return backend.Key{}, 0, err
		}
	}
	k, err = n.inKind(kind, before)
	return k, len(before), err
}

// expiryMember is the key that a member of the expiries leads to. Between its kind
// and the rest is the time, which is one element.
func expiryMember(m string) (k backend.Key, err error) {
	kind, b, err := backend.TakeString([]byte(m[1:]))
	if err != nil {
		return backend.Key{}, err
	}
	rest, err := backend.SkipElement(b)
	if err != nil {
		return backend.Key{}, err
	}
	if _, err = takeTime(b[:len(b)-len(rest)]); err != nil {
		return backend.Key{}, err
	}
	return names(nil).inKind(kind, rest)
}

// dueOrder is a sort key that orders members of the expiries by time, then by
// resource. Malformed members come first.
func dueOrder(m string) string {
	_, rest, err := backend.TakeString([]byte(m[1:]))
	if err != nil || len(rest) < timeLength {
		return ""
	}
	kind := m[1 : len(m)-len(rest)]
	return string(rest[:timeLength]) + kind + string(rest[timeLength:])
}

// dueBounds are the bounds, for ZRANGE BYLEX, of the members that lead to the
// resources of a kind that are expired.
func dueBounds(kind string, now time.Time) (lo, hi string) {
	prefix := string(entryExpiry) + string(backend.AppendString(nil, kind))
	return "[" + prefix, "(" + prefix + string(dueEnd(now))
}

// dueEnd is the tuple of the first expiry that is in the future.
func dueEnd(now time.Time) []byte { return backend.AppendInt(nil, now.UnixMilli()+1) }

// targetOf is the key that a member of the index leads to, whatever its type.
func targetOf(m string) (k backend.Key, err error) {
	if m == "" {
		return k, fmt.Errorf("member: %w", backend.ErrUnreadable)
	}
	b := []byte(m[1:])
	switch m[0] {
	case entryRow:
		k, _, err = names(nil).rowKey(b)
		return k, err
	case entryExpiry:
		return expiryMember(m)
	case entryRef:
		// Before the key are the tuple of the target and whether it is bound.
		for range 4 {
			if b, err = backend.SkipElement(b); err != nil {
				return k, err
			}
		}
	}
	return backend.DecodeKey(b)
}

package redis

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// member is the place of an entry in the sorted set.
func member(kind byte, middle []byte, k backend.Key) []byte {
	b := []byte{kind}
	if kind == entryRow {
		return append(append(backend.AppendString(b, k.Kind), middle...), backend.OrderTuple(k.Namespace, k.Name)...)
	}
	return k.Append(append(b, middle...))
}

// membersOf are all members that lead to a resource.
func membersOf(r *backend.Resource) [][]byte {
	out := [][]byte{member(memberName, nil, r.Key)}
	for b := appendEntries(nil, r); len(b) > 0; {
		var kind byte
		var middle []byte
		kind, middle, b, _ = takeEntry(b)
		out = append(out, member(kind, middle, r.Key))
	}
	return out
}

// unknownMembers are those of a record that decodes, for entries that only a newer release knows.
func unknownMembers(k backend.Key, record string) (out [][]byte) {
	h, _ := parseHeader(record)
	for b := []byte(h.entries); len(b) > 0; {
		var kind byte
		var middle []byte
		kind, middle, b, _ = takeEntry(b)
		switch kind {
		case entryRow, entryRef, entryExpiry:
		default:
			out = append(out, member(kind, middle, k))
		}
	}
	return out
}

// found is a member of the index and where it leads.
type found struct {
	text string
	key  backend.Key
	// middle is the entry that the member stands for, without its type.
	middle string
	err    error // it leads nowhere
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
	for b := []byte(h.entries); len(b) > 0; {
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

// rowKey is the key at the end of a row, its kind and its last two elements, and
// the length of these two.
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

// expiryMember reads when a key expires. The time is one element.
func expiryMember(m string) (at time.Time, k backend.Key, err error) {
	b := []byte(m[1:])
	rest, err := backend.SkipElement(b)
	if err != nil {
		return time.Time{}, backend.Key{}, err
	}
	if at, err = takeTime(b[:len(b)-len(rest)]); err != nil {
		return time.Time{}, backend.Key{}, err
	}
	k, err = backend.DecodeKey(rest)
	return at, k, err
}

// targetOf is the key that any member of the index leads to.
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
		_, k, err = expiryMember(m)
		return k, err
	case entryRef:
		// The tuple of the target and whether it is bound come before.
		for range 4 {
			if b, err = backend.SkipElement(b); err != nil {
				return k, err
			}
		}
	}
	return backend.DecodeKey(b)
}

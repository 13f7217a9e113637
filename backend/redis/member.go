package redis

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// The types of members in the index, which are their first bytes. A resource has a member for its name, one if its
// deletion was requested, one if it expires, and one for each reference.
const (
	memberName     byte = 'n' // (kind, namespace, name)
	memberDeleting byte = 'd' // (kind, namespace, name)
	memberExpiry   byte = 'x' // (kind), the expiry as in a record, (namespace, name)
	memberRef      byte = 'r' // (kind, namespace, name, bound) of the target, (kind, namespace, name)
)

// found is a member of the index, with the key of its resource.
type found struct {
	// text is the whole member. order is the part after the prefix that all members of a run share. The run is
	// ordered by it.
	text  string
	order string
	key   backend.Key
	err   error // why the key does not decode
}

// find parses a member. prefix is the number of bytes before the tuple of the key.
func find(prefix int, m string) (f found) {
	f.text, f.order = m, m[min(prefix, len(m)):]
	f.key, f.err = backend.DecodeKey([]byte(f.order))
	return f
}

// matches reports whether a record has the property that the member represents.
func (f *found) matches(record string) bool {
	if f.text[0] == memberName {
		return true
	}
	h, err := parseHeader(record)
	if err != nil || f.text[0] == memberDeleting {
		return err == nil && h.deleting
	}
	target := f.text[1 : len(f.text)-len(f.order)]
	for b := []byte(h.refs); len(b) > 0; {
		var element []byte
		if element, b, err = unpack(b); err != nil {
			return false
		}
		if string(element) == target {
			return true
		}
	}
	return false
}

// cutExpiry splits an expiry member into the tuple of the kind, the expiry, and the tuple of namespace and name.
func cutExpiry(m string) (kind, at, name string, err error) {
	_, b, err := backend.TakeString([]byte(m[1:]))
	if err == nil && len(b) < expiryDigits {
		err = fmt.Errorf("expiry: %w", backend.ErrUnreadable)
	}
	if err != nil {
		return "", "", "", err
	}
	name = m[len(m)-len(b)+expiryDigits:]
	return m[1 : len(m)-len(b)], m[len(m)-len(b) : len(m)-len(name)], name, nil
}

// expiryMember returns the key of the resource to which an expiry member belongs.
func expiryMember(m string) (backend.Key, error) {
	kind, at, name, err := cutExpiry(m)
	if err != nil {
		return backend.Key{}, err
	}
	if _, err := strconv.ParseUint(at, 10, 63); err != nil {
		return backend.Key{}, fmt.Errorf("expiry: %w", backend.ErrUnreadable)
	}
	return backend.DecodeKey([]byte(kind + name))
}

// dueOrder returns a text by which expiry members are ordered by time and then by resource. Malformed members come
// first.
func dueOrder(m string) string {
	kind, at, name, _ := cutExpiry(m)
	return at + kind + name
}

// dueBounds returns the bounds, for ZRANGE BYLEX, of the expiry members of a kind whose time has come.
func dueBounds(kind string, now time.Time) (lo, hi string) {
	prefix := string(memberExpiry) + string(backend.AppendString(nil, kind))
	return "[" + prefix, "(" + prefix + dueEnd(now)
}

// dueEnd returns the first expiry that has not been reached.
func dueEnd(now time.Time) string { return expiry(now.Add(time.Millisecond)) }

// targetOf returns the key of the resource to which a member of any type belongs.
func targetOf(m string) (k backend.Key, err error) {
	if m == "" {
		return k, fmt.Errorf("member: %w", backend.ErrUnreadable)
	}
	b := []byte(m[1:])
	switch m[0] {
	case memberExpiry:
		return expiryMember(m)
	case memberRef:
		for range 4 { // the target, and whether it is bound
			if b, err = backend.SkipElement(b); err != nil {
				return k, err
			}
		}
	}
	return backend.DecodeKey(b)
}

// membersOf returns all members that the index should have for a resource.
func membersOf(r *backend.Resource) [][]byte {
	out := [][]byte{r.Key.Append([]byte{memberName})}
	if r.Deleting {
		out = append(out, r.Key.Append([]byte{memberDeleting}))
	}
	if !r.ExpiresAt.IsZero() {
		b := append(backend.AppendString([]byte{memberExpiry}, r.Kind), expiry(r.ExpiresAt)...)
		out = append(out, append(b, backend.OrderTuple(r.Namespace, r.Name)...))
	}
	for _, ref := range r.Refs {
		out = append(out, backend.AppendRefKey([]byte{memberRef}, ref, r.Key))
	}
	return out
}

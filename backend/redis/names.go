package redis

import (
	"bytes"

	"github.com/sluicegw/sluice/backend"
)

// names are strings that the records which one call reads have in common: kinds and
// namespaces. Each is kept in memory once. A nil names
// shares nothing.
type names map[string]string

// maxNames bounds the strings that one call shares.
const maxNames = 64

// stringElement is the tag of a string in a tuple. The scripts know it, too.
const stringElement = 2

// take is [backend.TakeString] of a string that may be shared.
func (n names) take(b []byte) (string, []byte, error) {
	if n == nil || len(b) == 0 || b[0] != stringElement {
		return backend.TakeString(b)
	}
	rest, err := backend.SkipElement(b)
	if err != nil {
		return "", nil, err
	}
	raw := b[1 : len(b)-len(rest)-1]
	if s, ok := n[string(raw)]; ok {
		return s, rest, nil
	}
	s, rest, err := backend.TakeString(b)
	if err == nil && len(n) < maxNames && bytes.IndexByte(raw, 0) < 0 {
		n[s] = s
	}
	return s, rest, err
}

// key is [backend.DecodeKey].
func (n names) key(b []byte) (k backend.Key, err error) {
	if k.Kind, b, err = n.take(b); err != nil {
		return backend.Key{}, err
	}
	return n.inKind(k.Kind, b)
}

// inKind reads a key without its kind.
func (n names) inKind(kind string, b []byte) (k backend.Key, err error) {
	k.Kind = kind
	if k.Namespace, b, err = n.take(b); err != nil {
		return backend.Key{}, err
	}
	if k.Name, b, err = backend.TakeString(b); err != nil {
		return backend.Key{}, err
	}
	if len(b) > 0 {
		return backend.Key{}, backend.ErrUnreadable
	}
	return k, nil
}

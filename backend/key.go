package backend

import (
	"fmt"
	"strings"
)

// Key identifies one resource in a store. Namespace is empty for GLOBAL kinds.
type Key struct{ Kind, Namespace, Name string }

// internalPrefix marks the reserved key range.
const internalPrefix = "_"

// Internal reports whether the key lies in the range reserved for the gateway's
// own records (leases, fingerprints, sensitive values). They are read and written like any
// resource, but the log has no entries of them, so no watch delivers them, they
// move no position, and signs of life do not push changes out of the log. Their
// revisions are counted apart. No list of kinds names them, and no
// catalogue can have kinds of that form.
func (k Key) Internal() bool { return strings.HasPrefix(k.Kind, internalPrefix) }

// Sensitive is the key of the record that holds the sensitive values of the
// resource under k: in the reserved range, all of them next to each other, apart
// from the resource and from the log.
func (k Key) Sensitive() Key {
	k.Kind = SensitiveKind(k.Kind)
	return k
}

// SensitiveKind is the kind of the records that hold the sensitive values of a kind.
func SensitiveKind(kind string) string { return internalPrefix + "sensitive." + kind }

// valid reports whether a resource can have the key.
func (k Key) valid() bool {
	return k.Kind != "" && k.Name != "" && len(k.Kind)+len(k.Namespace)+len(k.Name) <= MaxKeyBytes
}

func errKey() error {
	return fmt.Errorf("key with a kind and a name of at most %d bytes in all wanted: %w", MaxKeyBytes, ErrInvalid)
}

// String is for logs; it never reaches a client.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + "/" + k.Name
	}
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// Append appends the tuple (kind, namespace, name).
func (k Key) Append(dst []byte) []byte {
	return AppendString(AppendString(AppendString(dst, k.Kind), k.Namespace), k.Name)
}

// DecodeKey reads what [Key.Append] wrote.
func DecodeKey(b []byte) (k Key, err error) {
	if k.Kind, b, err = TakeString(b); err != nil {
		return Key{}, err
	}
	if k.Namespace, b, err = TakeString(b); err != nil {
		return Key{}, err
	}
	if k.Name, b, err = TakeString(b); err != nil {
		return Key{}, err
	}
	if len(b) > 0 {
		return Key{}, ErrUnreadable
	}
	return k, nil
}

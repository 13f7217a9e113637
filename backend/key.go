package backend

import (
	"fmt"
	"strings"
)

// Key identifies one resource in a store. Namespace is empty for GLOBAL kinds.
type Key struct{ Kind, Namespace, Name string }

// internalPrefix marks the reserved key range.
const internalPrefix = "_"

// Internal reports whether the key lies in the range reserved for the gateway's own
// records (leases, fingerprints, sensitive values). These are read and written like
// resources, but have no log entries: no watch delivers them, they move no position, and
// heartbeats do not push changes out of the log. Their revisions are counted separately.
// No catalogue can have kinds with such names.
func (k Key) Internal() bool { return strings.HasPrefix(k.Kind, internalPrefix) }

// Sensitive returns the key of the record with the sensitive values of the resource
// under k. Such records lie next to each other in the reserved range, apart from
// resources and the log.
func (k Key) Sensitive() Key {
	k.Kind = SensitiveKind(k.Kind)
	return k
}

// SensitiveKind returns the kind of the records with the sensitive values of a kind.
func SensitiveKind(kind string) string { return internalPrefix + "sensitive." + kind }

// valid reports whether a resource can have the key.
func (k Key) valid() bool {
	return k.Kind != "" && k.Name != "" && len(k.Kind)+len(k.Namespace)+len(k.Name) <= MaxKeyBytes
}

func errKey() error {
	return fmt.Errorf("key with a kind and a name of at most %d bytes in all wanted: %w", MaxKeyBytes, ErrInvalid)
}

// String returns the key for logs; it is never sent to a client.
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

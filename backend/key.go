package backend

import (
	"fmt"
	"strings"
)

// Key identifies one resource in a store. Namespace is empty for GLOBAL kinds.
type Key struct{ Kind, Namespace, Name string }

// internalPrefix is the first character of the reserved kinds, see [Key.Internal].
const internalPrefix = "_"

// Internal reports whether the key is reserved for the gateway's own records: leases, fingerprints and sensitive
// values. They are read and written like resources, but have no log entries. So no watch delivers them, they do not
// move a position, and heartbeats do not push changes out of the log. They have revisions of a separate sequence. No
// catalogue can have kinds with such names.
func (k Key) Internal() bool { return strings.HasPrefix(k.Kind, internalPrefix) }

// Sensitive returns the key of the internal record that has the sensitive values of the resource under k. These
// records lie next to each other, apart from resources and the log.
func (k Key) Sensitive() Key {
	k.Kind = SensitiveKind(k.Kind)
	return k
}

// SensitiveKind returns the internal kind of the records that have the sensitive values of a kind's resources:
// "_sensitive.Database" for the kind "Database".
func SensitiveKind(kind string) string { return internalPrefix + "sensitive." + kind }

// valid reports whether a resource can have the key.
func (k Key) valid() bool {
	return k.Kind != "" && k.Name != "" && len(k.Kind)+len(k.Namespace)+len(k.Name) <= MaxKeyBytes
}

func errKey() error {
	return fmt.Errorf("key with a kind and a name of at most %d bytes in all wanted: %w", MaxKeyBytes, ErrInvalid)
}

// String returns the key as "kind/namespace/name", or "kind/name" if the namespace is empty. It is for logs and is
// never sent to a client.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + "/" + k.Name
	}
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// Append appends the tuple (kind, namespace, name) to dst.
func (k Key) Append(dst []byte) []byte {
	return AppendString(AppendString(AppendString(dst, k.Kind), k.Namespace), k.Name)
}

// DecodeKey decodes the tuple that [Key.Append] appends.
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

package bolt

import (
	"encoding/binary"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// The encoded form of a resource consists of a version byte, a sum, the length of the envelope, the envelope and the
// body. The form of a log entry consists of a version byte, a sum of everything before the resource, the length of its
// head, the head, the change and the form of the resource.
//
// In envelope and head, integers are varints, times are milliseconds since 1970, and strings are preceded by their
// length. The envelope begins with flags and the expiry, so that expired resources can be skipped without decoding
// them. The flags show which optional fields follow: the expiry, and the number of finalizers.
const (
	resourceForm byte = 5
	entryForm    byte = 3
)

// formRoom is how many bytes a form usually has in addition to the size of its event or resource.
const formRoom = 256

const (
	flagDeleting byte = 1 << iota
	flagExpires
	flagFinalizers
	// flagBound means that the log entry has the list of references that were bound before the change. Without it, the
	// change did not affect them.
	flagBound
)

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendRevision(b []byte, r backend.Revision) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, r.Epoch), r.Seq)
}

func appendKey(b []byte, k backend.Key) []byte {
	return appendString(appendString(appendString(b, k.Kind), k.Namespace), k.Name)
}

func appendRefs(b []byte, refs []backend.Ref) []byte {
	b = binary.AppendUvarint(b, uint64(len(refs)))
	for _, ref := range refs {
		b = appendKey(b, ref.Key)
		if ref.Bound {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// framed appends a version byte, space for a sum, and what write appends, preceded by its length.
func framed(b []byte, version byte, write func([]byte) []byte) []byte {
	var space [512]byte
	part := write(space[:0])
	b = append(b, version, 0, 0, 0, 0)
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// appendResource appends the form of a resource, which does not include the key.
func appendResource(b []byte, r *backend.Resource) []byte {
	begin := len(b)
	b = framed(b, resourceForm, func(b []byte) []byte {
		var flags byte
		if r.Deleting {
			flags |= flagDeleting
		}
		if r.Finalizers > 0 {
			flags |= flagFinalizers
		}
		if !r.ExpiresAt.IsZero() {
			b = binary.AppendVarint(append(b, flags|flagExpires), r.ExpiresAt.UnixMilli())
		} else {
			b = append(b, flags)
		}
		if r.Finalizers > 0 {
			b = binary.AppendUvarint(b, uint64(r.Finalizers))
		}
		b = appendRevision(appendRevision(b, r.Revision), r.SpecRevision)
		b = binary.AppendVarint(binary.AppendVarint(b, r.CreatedAt.UnixMilli()), r.UpdatedAt.UnixMilli())
		b = binary.AppendUvarint(appendString(appendString(b, r.UID), r.Declared), uint64(r.BindingVersion))
		return appendRefs(b, r.Refs)
	})
	b = append(b, r.Body...)
	end := len(b)
	b = r.Key.Append(b) // only for the sum; a separate array would be allocated each time
	setSum(b[end:], b[begin:end])
	return b[:end]
}

// appendBefore appends the state before a change; r is the state after it.
func appendBefore(b []byte, before *backend.Before, r *backend.Resource) []byte {
	var flags byte
	if before.Deleting {
		flags |= flagDeleting
	}
	if !before.ExpiresAt.IsZero() {
		flags |= flagExpires
	}
	same := slices.Equal(before.Bound, r.Bound())
	if !same {
		flags |= flagBound
	}
	b = binary.AppendVarint(appendRevision(append(b, flags), before.Revision), before.UpdatedAt.UnixMilli())
	if !before.ExpiresAt.IsZero() {
		b = binary.AppendVarint(b, before.ExpiresAt.UnixMilli())
	}
	if !same {
		b = binary.AppendUvarint(b, uint64(len(before.Bound)))
		for _, k := range before.Bound {
			b = appendKey(b, k)
		}
	}
	return b
}

// appendEvent appends the form of a log entry. It also returns the form of the resource, which is the end of the entry.
func appendEvent(b []byte, e *backend.Event) (entry, resource []byte) {
	begin := len(b)
	b = framed(b, entryForm, func(b []byte) []byte {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(e.Size())), e.Time.UnixMilli())
		b = appendKey(append(b, byte(e.Type)), e.Resource.Key)
		b = appendString(appendString(b, e.RequestID), e.Actor)
		if e.Type == backend.Modified {
			b = binary.AppendUvarint(appendBefore(b, e.Before, e.Resource), uint64(len(e.Change)))
		}
		return b
	})
	b = append(b, e.Change...)
	n := len(b)
	b = appendEntryKey(b, e.Revision) // only for the sum, as in appendResource
	setSum(b[n:], b[begin:n])
	b = b[:n]
	b = appendResource(b, e.Resource)
	return b, b[n:]
}

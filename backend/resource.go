package backend

import (
	"fmt"
	"time"
)

// Resource is a stored resource as a store knows it. The resources that a store returns are shared and must not be
// changed.
type Resource struct {
	Key
	Envelope
	// Refs are the references of the resource, by which [Range.Referenced] finds it.
	Refs []Ref
	// Body is the content, which the store does not interpret; see [EncodeBody].
	Body []byte
}

// Envelope has the facts about a resource that a store needs to decide on a write.
type Envelope struct {
	// UID distinguishes a resource from an earlier one under the same key. It is set at
	// creation and never changes.
	UID string
	// Revision is the revision of the last change. The store sets it.
	Revision Revision
	// SpecRevision is the revision of the last put with [Put.Caller]. The store sets it.
	SpecRevision Revision
	// BindingVersion is 1 for a new resource. Each [OpRebind] adds one, and a put keeps it. The store sets it.
	BindingVersion uint32
	// Deleting reports whether deletion was requested.
	Deleting bool
	// Finalizers is the number of finalizers that hold the resource, which
	// [Condition.Unfinalized] checks. Their names are in the body.
	Finalizers int
	// Declared is the fingerprint of the declarations from which Refs were derived, at most MaxFingerprint bytes. It is
	// empty for a resource without references.
	Declared string
	// ExpiresAt is when the resource expires by the store's clock, in milliseconds; zero means never.
	ExpiresAt time.Time
	// CreatedAt and UpdatedAt are times in UTC, in milliseconds. They are from the store's clock, or from
	// [Put.CreatedAt] and [Put.UpdatedAt].
	CreatedAt, UpdatedAt time.Time
}

// ExpiredAt reports whether the resource is expired at the given time, and therefore invisible.
func (e *Envelope) ExpiredAt(now time.Time) bool {
	return !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(now)
}

// Size returns the number of bytes that count against limits and pages.
func (r *Resource) Size() int {
	n := len(r.Kind) + len(r.Namespace) + len(r.Name) + len(r.Body) + 128
	for _, ref := range r.Refs {
		n += len(ref.Key.Kind) + len(ref.Key.Namespace) + len(ref.Key.Name) + 1
	}
	return n
}

// The first byte of a stored body names the encoding of the rest.
const (
	// BodyJSON is followed by plain JSON.
	BodyJSON byte = 'j'
	// BodySealed is followed by encrypted data of package keyring.
	BodySealed byte = 's'
)

// EncodeBody returns the stored form of a JSON body.
func EncodeBody(json []byte) []byte {
	return append(append(make([]byte, 0, len(json)+1), BodyJSON), json...)
}

// DecodeBody returns the JSON of a stored body, or ErrUnreadable if the body is not in plain JSON. The result shares
// the memory of body.
func DecodeBody(body []byte) ([]byte, error) {
	if len(body) == 0 || body[0] != BodyJSON {
		return nil, fmt.Errorf("unknown body codec: %w", ErrUnreadable)
	}
	return body[1:], nil
}

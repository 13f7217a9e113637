package backend

import (
	"fmt"
	"time"
)

// Resource is one stored resource as a store sees it. What a store returns is
// shared and immutable: nobody changes it, its references or its body.
type Resource struct {
	Key
	Envelope
	// Refs are the resources it refers to; it is findable by [Range.Referenced].
	Refs []Ref
	// Body is opaque to the store; see [EncodeBody].
	Body []byte
}

// Envelope is what a store must know of a resource to judge a write.
type Envelope struct {
	// UID tells a re-created namesake apart. Set at creation, kept for life.
	UID string
	// Revision of the last change. Stamped by the store.
	Revision Revision
	// SpecRevision is the revision of the last put marked [Put.Caller]. Stamped by the store.
	SpecRevision Revision
	// BindingVersion is how often Refs were taken from the body as it is: 1, and one more for each
	// [OpRebind]. Stamped by the store.
	BindingVersion uint32
	// Deleting: deletion was requested and waits.
	Deleting bool
	// Finalizers is how many finalizers hold the resource. Their names lie in the
	// body; the count is what [Condition.Unfinalized] looks at.
	Finalizers int
	// Declared is the fingerprint of the reference declarations that Refs were taken by;
	// at most 64 bytes, empty for a resource without references.
	Declared string
	// ExpiresAt, by the store's clock, to the millisecond; zero means never.
	ExpiresAt time.Time
	// CreatedAt and UpdatedAt are stamped by the store's clock, in UTC to the millisecond, unless
	// [Put.CreatedAt] gives them.
	CreatedAt, UpdatedAt time.Time
}

// ExpiredAt reports whether the resource is expired, hence invisible, at the given instant.
func (e *Envelope) ExpiredAt(now time.Time) bool {
	return !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(now)
}

// Size is the number of bytes that count against limits and pages.
func (r *Resource) Size() int {
	n := len(r.Kind) + len(r.Namespace) + len(r.Name) + len(r.Body) + 128
	for _, ref := range r.Refs {
		n += len(ref.Key.Kind) + len(ref.Key.Namespace) + len(ref.Key.Name) + 1
	}
	return n
}

// Codec bytes, with which bodies begin.
const (
	// BodyJSON: what follows is plain JSON.
	BodyJSON byte = 'j'
	// BodySealed: what follows is encrypted, as package keyring has it.
	BodySealed byte = 's'
)

// EncodeBody returns the stored form of a JSON body.
func EncodeBody(json []byte) []byte {
	return append(append(make([]byte, 0, len(json)+1), BodyJSON), json...)
}

// DecodeBody returns the JSON of a stored body. The result shares its memory.
func DecodeBody(body []byte) ([]byte, error) {
	if len(body) == 0 || body[0] != BodyJSON {
		return nil, fmt.Errorf("unknown body codec: %w", ErrUnreadable)
	}
	return body[1:], nil
}

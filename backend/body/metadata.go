package body

import "time"

// Metadata is the part of the metadata that lives in the body.
type Metadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string
	Description string
	// UpdatedBy is who made the last change of what callers set; empty for an anonymous caller.
	UpdatedBy string
	// DeletionRequestedAt is when the deletion was requested that waits; zero for none.
	DeletionRequestedAt time.Time
	// Finalizers hold the resource while its deletion waits, no two equal.
	Finalizers []string
	// Finalizing says that the deletion waits for finalizers alone, and that the
	// conditions have said so.
	Finalizing bool
	// Waits are the resources that this one waits for before it relies on them, as
	// "Kind/name", in their order. It relies on all others that it refers to.
	Waits []string
	// Managers are the field managers that own labels or annotations, in the order of
	// their names.
	Managers []Manager
}

// Manager is a field manager with the keys that its last manifest had.
type Manager struct {
	Name string
	// Labels and Annotations are keys, in order.
	Labels, Annotations []string
}

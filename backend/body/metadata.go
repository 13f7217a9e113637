package body

import "time"

// Metadata is the part of the metadata that lives in the body, in the order in which it is stored.
type Metadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
	// UpdatedBy is who made the last change of what callers set; empty for an anonymous caller.
	UpdatedBy string `json:"updatedBy,omitempty"`
	// DeletionRequestedAt is when the deletion was requested that waits, in UTC; zero for none.
	DeletionRequestedAt time.Time `json:"deletionRequestedAt,omitzero"`
	// Finalizing reports whether the deletion waits for finalizers alone, and the conditions
	// have said so.
	Finalizing bool `json:"finalizing,omitempty"`
	// Finalizers hold the resource while its deletion waits, no two equal.
	Finalizers []string `json:"finalizers,omitempty"`
	// Waits are the resources that this one waits for before it relies on them, as
	// "Kind/name", in their order. It relies on all others that it refers to.
	Waits []string `json:"waits,omitempty"`
	// Managers are the field managers that own labels or annotations, in the order of
	// their names.
	Managers []Manager `json:"managers,omitempty"`
	// Owner is kept of a resource that a resource service owns; nil of others. It must not be changed.
	Owner *Owner `json:"owner,omitempty"`
}

// Manager is a field manager with the keys that its last manifest had.
type Manager struct {
	Name string `json:"name"`
	// Labels and Annotations are keys, in order.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// Owner is what is kept of a resource that a resource service owns.
type Owner struct {
	// Tag is the service's for this version; empty if it has none.
	Tag string `json:"tag,omitempty"`
	// UID reports whether the uid is the service's.
	UID bool `json:"uid,omitempty"`
	// Asking reports whether a caller's gateway is asking the service to delete the resource. Nobody else does before it
	// is known what the service says to that caller.
	Asking bool `json:"asking,omitempty"`
}

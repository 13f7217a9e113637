package body

import "time"

// Metadata is the part of the metadata that is stored in the body, in stored order.
type Metadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
	// UpdatedBy is the author of the last change of what callers set; empty for an anonymous
	// caller.
	UpdatedBy string `json:"updatedBy,omitempty"`
	// DeletionRequestedAt is the time, in UTC, of the request of a pending deletion; zero for
	// none.
	DeletionRequestedAt time.Time `json:"deletionRequestedAt,omitzero"`
	// Finalizing reports whether the deletion waits only for finalizers, and the conditions
	// say so.
	Finalizing bool `json:"finalizing,omitempty"`
	// Finalizers hold the resource while its deletion is pending. They are distinct.
	Finalizers []string `json:"finalizers,omitempty"`
	// Waits are the targets that this resource waits for, in the form "Kind/name", in
	// order. It relies on all its other targets.
	Waits []string `json:"waits,omitempty"`
	// Managers are the field managers that own labels or annotations, in the order of
	// their names.
	Managers []Manager `json:"managers,omitempty"`
	// Owner is set if a resource service owns the resource; nil otherwise. It must not be changed.
	Owner *Owner `json:"owner,omitempty"`
}

// Manager is a field manager with the keys that its last manifest had.
type Manager struct {
	Name string `json:"name"`
	// Labels and Annotations are keys, in order.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// Owner is what the gateway stores about a resource that a resource service owns.
type Owner struct {
	// Tag is the service's tag for this version; empty if it has none.
	Tag string `json:"tag,omitempty"`
	// UID reports whether the uid comes from the service.
	UID bool `json:"uid,omitempty"`
	// Asking reports whether a caller's gateway is asking the service to delete the resource. Until
	// the service has answered that caller, no other gateway asks.
	Asking bool `json:"asking,omitempty"`
}

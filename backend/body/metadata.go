package body

import "time"

// Metadata is the part of a resource's metadata that is stored in the body. The order of its fields is the order in the
// body.
type Metadata struct {
	// Generation is the number of changes of the spec, counted from 1.
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description string            `json:"description,omitempty"`
	// UpdatedBy is the author of the last change that a caller made; empty for an anonymous caller.
	UpdatedBy string `json:"updatedBy,omitempty"`
	// DeletionRequestedAt is the time, in UTC, at which deletion was requested; zero if it was not.
	DeletionRequestedAt time.Time `json:"deletionRequestedAt,omitzero"`
	// Finalizing reports whether the deletion waits only for finalizers, and the conditions of the status are up to
	// date with that.
	Finalizing bool `json:"finalizing,omitempty"`
	// Finalizers hold the resource while its deletion is pending. They are distinct.
	Finalizers []string `json:"finalizers,omitempty"`
	// Waits are the targets for which this resource waits, in the form "Kind/name" and in order. It relies on all its
	// other targets.
	Waits []string `json:"waits,omitempty"`
	// Managers are the field managers that own labels or annotations, in the order of
	// their names.
	Managers []Manager `json:"managers,omitempty"`
	// Owner is set if a resource service owns the resource; nil otherwise. It must not be changed.
	Owner *Owner `json:"owner,omitempty"`
}

// Manager is a field manager. It owns the keys that were in its last manifest.
type Manager struct {
	Name string `json:"name"`
	// Labels and Annotations are keys, in alphabetical order.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// Owner describes a resource that a resource service owns.
type Owner struct {
	// Tag is the tag that the service has given to this version; empty if there is none.
	Tag string `json:"tag,omitempty"`
	// UID reports whether the uid comes from the service.
	UID bool `json:"uid,omitempty"`
	// Asking is set while a caller's gateway asks the service to delete the resource. Until the service has answered,
	// no other gateway asks.
	Asking bool `json:"asking,omitempty"`
}

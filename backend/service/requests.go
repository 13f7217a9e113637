package service

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// Identity names a resource as a caller does: a nil namespace is the default
// one for NAMESPACED kinds, and the only one accepted for GLOBAL kinds.
type Identity struct {
	Kind      string
	Namespace *string
	Name      string
}

// CreateRequest asks for a new resource. Spec is anything whose JSON is the
// spec in stored form.
type CreateRequest struct {
	Identity
	Metadata
	// SubKind is one of those the kind names; empty for none.
	SubKind string
	Spec    any
}

// UpdateRequest replaces the whole spec of an existing resource.
type UpdateRequest struct {
	Identity
	Metadata
	ExpectedRevision string
	Spec             any
}

// PatchRequest changes parts of a spec by a JSON merge patch (RFC 7386): objects
// merge, lists replace, null clears.
type PatchRequest struct {
	Identity
	Metadata
	ExpectedRevision string
	// Patch is anything whose JSON is the patch; nil leaves the spec as it is.
	Patch any
}

// UpsertRequest creates a resource or replaces its spec, whatever it is.
type UpsertRequest struct {
	Identity
	Metadata
	// SubKind of a resource that is created; an existing one keeps its own and must have this one, if it is given.
	SubKind string
	Spec    any
}

// StatusRequest replaces the status and leaves everything else. The revision
// must be the current one.
type StatusRequest struct {
	Identity
	ExpectedRevision string
	// Status is anything whose JSON is the status; it is not validated.
	Status any
}

// DeleteRequest removes a resource; a nil revision removes it whatever it is.
type DeleteRequest struct {
	Identity
	ExpectedRevision *string
}

// ApplyRequest creates or replaces what one manifest document says.
type ApplyRequest struct {
	// Manifest is one YAML or JSON document of at most 1 MiB.
	Manifest string
	// Namespace is used where the manifest names none.
	Namespace *string
	// ExpectedRevision goes before the manifest's metadata.revision.
	ExpectedRevision *string
	// CreateOnly answers ALREADY_EXISTS for a resource that is there.
	CreateOnly bool
	// DryRun says what would happen and writes nothing.
	DryRun bool
}

// Outcome of an apply.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "CREATED"
	Updated   Outcome = "UPDATED"
	Unchanged Outcome = "UNCHANGED"
)

// Written is the answer to a write.
type Written struct {
	// Resource as stored; for a delete its last state. With DryRun of a create it is nil.
	Resource *Resource
	// Outcome of the write; empty for a delete.
	Outcome  Outcome
	Warnings []string
}

// ListRequest asks for a page of a connection by the Relay specification.
type ListRequest struct {
	Kind string
	// Namespace nil means all.
	Namespace     *string
	First, Last   *int
	After, Before *string
	// Filter is anything whose JSON is the filter in stored form: the members
	// and, or, not, name, namespace, labels, conditions, createdAt, updatedAt,
	// spec and status, the last two shaped like the kind. Nil keeps everything.
	Filter any
	// OrderBy goes before the order of (namespace, name); at most MaxOrders.
	OrderBy []Order
	// Parent leaves only what refers to a resource; the zero value leaves everything.
	Parent Parent
	// Names, if not nil, leaves only the resources of these names in Namespace, or
	// of a GLOBAL kind: at most MaxFilterValues. They are read by their keys.
	Names []string
	// ChangeCursor asks for [Page.ChangeCursor], taken before the first read.
	ChangeCursor bool
	// Ahead looks, while the page is read, whether there is more in its direction.
	// Without it [PageInfo.HasNextPage] and [PageInfo.HasPreviousPage] read for themselves.
	Ahead bool
}

// Order is one criterion of an order. Nulls come first, and last if descending.
type Order struct {
	// Field is "name", "namespace", "createdAt", "updatedAt" or the path of a sortable index.
	Field      string
	Descending bool
}

// Parent is the resource that the resources of an inverse connection refer to.
type Parent struct {
	// Reference is the path of the reference by which they do.
	Reference string
	Key       backend.Key
}

// ChangesRequest asks for a stream of changes.
type ChangesRequest struct {
	// Kinds; none means all of the catalogue.
	Kinds []string
	// Namespace and Name narrow the stream; nil means all.
	Namespace, Name *string
	// After is the cursor last seen; nil means from now on.
	After *string
	// Filter is as of ListRequest, for streams of one kind.
	Filter any
	// Snapshot sends the state first, between RESET and IN_SYNC, unless After can
	// be continued from, and again after RESET where the stream cannot go on.
	Snapshot bool
}

// ChangeType is the type of an event in a stream of changes.
type ChangeType string

// The types of events. RESET, IN_SYNC and BOOKMARK are marks. IN_SYNC comes
// once, when the stream is live; BOOKMARK when it was silent for a while, and
// at the end of a snapshot that begins after IN_SYNC.
const (
	ChangeReset    ChangeType = "RESET"
	ChangeSnapshot ChangeType = "SNAPSHOT"
	ChangeInSync   ChangeType = "IN_SYNC"
	ChangeAdded    ChangeType = "ADDED"
	ChangeModified ChangeType = "MODIFIED"
	ChangeDeleted  ChangeType = "DELETED"
	ChangeBookmark ChangeType = "BOOKMARK"
)

// ManifestFormat is how a manifest is written.
type ManifestFormat string

// The formats.
const (
	YAML ManifestFormat = "YAML"
	JSON ManifestFormat = "JSON"
)

// Change is one event of a stream.
type Change struct {
	Type ChangeType
	// Cursor resumes the stream after this event; empty from RESET to the end of a snapshot.
	Cursor string
	// Revision of the change; empty for a mark.
	Revision string
	// Stored is the resource at that revision, for DELETED its last state; nil for a mark.
	Stored *backend.Resource

	service *Service
	body    *body.Body // if it was read already
}

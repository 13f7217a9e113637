package service

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// CreateRequest asks for a new resource. Spec is any value that marshals to the JSON of a spec with stored names.
type CreateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be
	// stored.
	DryRun bool
	// SubKind is one of the kind's subKinds; empty for none.
	SubKind string
	Spec    any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// UpdateRequest replaces the whole spec of an existing resource.
type UpdateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// SubKind must be the subKind of the resource; empty accepts any.
	SubKind string
	Spec    any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// PatchRequest changes parts of a spec by a JSON merge patch (RFC 7386): objects
// merge, lists replace, null clears.
type PatchRequest struct {
	kind.Identity
	MetadataPatch
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// Patch is any value that marshals to the JSON of the patch; nil leaves the spec as it is.
	Patch any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// finalizersAlone reports whether the patch only changes finalizers.
func (r *PatchRequest) finalizersAlone() bool {
	return r.Patch == nil && !r.Labels.Set && !r.Annotations.Set && !r.Description.Set && !r.ExpiresAt.Set
}

// UpsertRequest creates a resource, or replaces its spec at any revision. An existing resource
// keeps its subKind; if one is given, it must be the same.
type UpsertRequest CreateRequest

// StatusRequest replaces the status and nothing else. The revision must be the current
// one.
type StatusRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// Status is any value that marshals to the JSON of a status. It is checked against the maxima of the kind, and
	// against its types if Untyped is set.
	Status any
	// Untyped is set if the caller has not checked the types of the status.
	Untyped bool
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// StatusPatchRequest changes parts of a status by a JSON merge patch (RFC 7386). Conditions are merged by type: a
// condition of the patch replaces the stored condition of the same type, and the others are kept.
type StatusPatchRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
	// ExpectedRevision is the required revision; nil allows any.
	ExpectedRevision *string
	// Patch is any value that marshals to the JSON of the patch.
	Patch any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// DeleteRequest deletes a resource.
type DeleteRequest struct {
	kind.Identity
	// DryRun checks everything and deletes nothing. The answer has the stored resource, and the state that the deletion
	// would have.
	DryRun bool
	// ExpectedRevision is the required revision; nil allows any.
	ExpectedRevision *string
}

// ApplyRequest creates or replaces the resource of a manifest.
type ApplyRequest struct {
	// Manifest is one YAML or JSON document of at most 4 MiB.
	Manifest string
	// Namespace is used if the manifest names none.
	Namespace *string
	// ExpectedRevision takes precedence over the manifest's metadata.revision.
	ExpectedRevision *string
	// IgnoreRevision ignores the manifest's metadata.revision, and nothing else. It
	// excludes ExpectedRevision.
	IgnoreRevision bool
	// FieldManager becomes the owner of the labels and annotations in the manifest; at most 64 characters. nil means
	// [DefaultFieldManager]. With "" the keys get no owner, and the manifest's labels and annotations replace all
	// stored ones, as in an update.
	FieldManager *string
	// CreateOnly returns ALREADY_EXISTS if the resource exists.
	CreateOnly bool
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
}

// Outcome is the outcome of a write other than a delete.
type Outcome string

// The outcomes.
const (
	Created Outcome = "CREATED"
	Updated Outcome = "UPDATED"
	// Unchanged: nothing was written, except possibly which field managers own labels and annotations.
	Unchanged Outcome = "UNCHANGED"
)

// Written is the answer to a write.
type Written struct {
	// Resource is the stored resource. For a delete it is the last state; for a dry run it is the resource that would
	// be stored, without uid and revision if it would be new. It is nil in two cases: the caller may create the
	// resource but not read it (Warnings says so), and the dry run of a delete whose record cannot be read.
	Resource *query.Resource
	// Outcome is the outcome of the write; empty for a delete.
	Outcome Outcome
	// Deletion is the progress of a deletion; empty for other writes.
	Deletion Deletion
	Warnings []failure.Warning
	// DryRun reports whether nothing was written.
	DryRun bool
}

// Deletion is the progress of a deletion.
type Deletion string

// The states of a deletion.
const (
	// Deleted: the resource is gone.
	Deleted Deletion = "DELETED"
	// Pending: others rely on the resource. It is deleted once none does.
	Pending Deletion = "PENDING"
	// Finalizing: no other resource relies on it. It is deleted once its finalizers are
	// removed.
	Finalizing Deletion = "FINALIZING"
)

// ManifestFormat is the format of a manifest.
type ManifestFormat string

// The formats.
const (
	YAML ManifestFormat = "YAML"
	JSON ManifestFormat = "JSON"
)

package service

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// CreateRequest is a request to create a resource. Spec is any value that marshals to the JSON of a spec with stored
// names.
type CreateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be
	// stored.
	DryRun bool
	// SubKind is one of the kind's subKinds. It is empty for a resource without subKind.
	SubKind string
	Spec    any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// UpdateRequest is a request to replace the whole spec of an existing resource.
type UpdateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// SubKind must be the subKind of the resource. If it is empty, the resource may have any subKind.
	SubKind string
	Spec    any
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// PatchRequest is a request to change parts of a spec by a JSON merge patch (RFC 7386): objects are merged, lists are
// replaced, and null clears a field.
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

// UpsertRequest is a request to create a resource or to replace its spec at any revision. An existing resource keeps
// its subKind. If the request has a subKind, it must be the same.
type UpsertRequest CreateRequest

// StatusRequest is a request to replace the status and nothing else. ExpectedRevision must be the current revision.
type StatusRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// Status is any value that marshals to the JSON of a status. It is checked against the maximum sizes that the kind
	// declares. If Untyped is set, it is also checked against the types.
	Status any
	// Untyped is set if the caller has not checked the types of the status.
	Untyped bool
	// FieldNames selects the names by which the caller knows fields, for paths and messages.
	FieldNames failure.FieldNames
}

// StatusPatchRequest is a request to change parts of a status by a JSON merge patch (RFC 7386). Conditions are merged
// by type: a condition of the patch replaces the stored condition of the same type, and the others are kept.
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

// DeleteRequest is a request to delete a resource.
type DeleteRequest struct {
	kind.Identity
	// DryRun checks everything and deletes nothing. The answer has the stored resource, and the progress that the
	// deletion would have.
	DryRun bool
	// ExpectedRevision is the required revision; nil allows any.
	ExpectedRevision *string
}

// ApplyRequest is a request to create or replace the resource of a manifest.
type ApplyRequest struct {
	// Manifest is one YAML or JSON document of at most 4 MiB.
	Manifest string
	// Namespace is used if the manifest names none.
	Namespace *string
	// ExpectedRevision takes precedence over the manifest's metadata.revision.
	ExpectedRevision *string
	// IgnoreRevision makes Apply ignore the manifest's metadata.revision, and nothing else. It cannot be combined with
	// ExpectedRevision.
	IgnoreRevision bool
	// FieldManager becomes the owner of the labels and annotations in the manifest. It has at most 64 characters. nil
	// means [DefaultFieldManager]. With "" the keys get no owner, and the manifest's labels and annotations replace all
	// stored ones, as in an update.
	FieldManager *string
	// CreateOnly makes Apply return ALREADY_EXISTS if the resource exists.
	CreateOnly bool
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
}

// Outcome is the outcome of a write other than a delete.
type Outcome string

// The outcomes of a write.
const (
	Created Outcome = "CREATED"
	Updated Outcome = "UPDATED"
	// Unchanged: nothing was written, except possibly which field managers own labels and annotations.
	Unchanged Outcome = "UNCHANGED"
)

// Written is the answer to a write.
type Written struct {
	// Resource is the stored resource. For a delete it is the last state. For a dry run it is the resource that would
	// be stored, without uid and revision if it would be new. Resource is nil if the caller may create but not read the
	// resource; then there is a warning. It is also nil in the dry run of a delete whose record cannot be read.
	Resource *query.Resource
	// Outcome is the outcome of the write; empty for a delete.
	Outcome Outcome
	// Deletion is the progress of a deletion. It is empty for other writes.
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
	// Finalizing: no other resource relies on the resource. It is deleted once its finalizers are removed.
	Finalizing Deletion = "FINALIZING"
)

// ManifestFormat is the format of a manifest.
type ManifestFormat string

// The formats of a manifest.
const (
	YAML ManifestFormat = "YAML"
	JSON ManifestFormat = "JSON"
)

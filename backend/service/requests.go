package service

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// CreateRequest asks for a new resource. Spec is anything whose JSON is the
// spec in stored form.
type CreateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
	// SubKind is one of those the kind names; empty for none.
	SubKind string
	Spec    any
	// FieldNames are those by which the caller knows the fields: paths and messages have them.
	FieldNames failure.FieldNames
}

// UpdateRequest replaces the whole spec of an existing resource.
type UpdateRequest struct {
	kind.Identity
	Metadata
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	Spec             any
	// FieldNames are those by which the caller knows the fields: paths and messages have them.
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
	// Patch is anything whose JSON is the patch; nil leaves the spec as it is.
	Patch any
	// FieldNames are those by which the caller knows the fields: paths and messages have them.
	FieldNames failure.FieldNames
}

// finalizersAlone reports whether the patch changes nothing but finalizers.
func (r *PatchRequest) finalizersAlone() bool {
	return r.Patch == nil && !r.Labels.Set && !r.Annotations.Set && !r.Description.Set && !r.ExpiresAt.Set
}

// UpsertRequest creates a resource or replaces its spec without regard to its revision. An existing resource
// keeps its subKind and must have the one that is given, if any.
type UpsertRequest CreateRequest

// StatusRequest replaces the status and leaves everything else. The revision
// must be the current one.
type StatusRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision string
	// Status is anything whose JSON is the status. Its maxima are checked, and nothing else, unless
	// it is Untyped.
	Status any
	// Untyped is set if the types of the status were not checked yet.
	Untyped bool
	// FieldNames are those by which the caller knows the fields: paths and messages have them.
	FieldNames failure.FieldNames
}

// StatusPatchRequest changes parts of a status by a JSON merge patch (RFC 7386), but for the
// conditions: a condition of the patch replaces the stored one of its type, and the others stay.
type StatusPatchRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
	// ExpectedRevision nil changes the status at any revision.
	ExpectedRevision *string
	// Patch is anything whose JSON is the patch.
	Patch any
	// FieldNames are those by which the caller knows the fields: paths and messages have them.
	FieldNames failure.FieldNames
}

// DeleteRequest removes a resource; a nil revision removes it at any revision.
type DeleteRequest struct {
	kind.Identity
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun           bool
	ExpectedRevision *string
}

// ApplyRequest creates or replaces what one manifest document says.
type ApplyRequest struct {
	// Manifest is one YAML or JSON document of at most 4 MiB.
	Manifest string
	// Namespace is used where the manifest names none.
	Namespace *string
	// ExpectedRevision goes before the manifest's metadata.revision.
	ExpectedRevision *string
	// IgnoreRevision passes over the manifest's metadata.revision, and over nothing
	// else of it. It excludes ExpectedRevision.
	IgnoreRevision bool
	// FieldManager owns the labels and annotations that the manifest has: at most 64
	// characters; nil is [DefaultFieldManager]. With "" nobody owns them, and those that
	// the manifest has replace all, as in an update.
	FieldManager *string
	// CreateOnly answers ALREADY_EXISTS for a resource that is there.
	CreateOnly bool
	// DryRun checks everything and writes nothing. The answer has the resource that would be stored.
	DryRun bool
}

// Outcome of a write, but for a delete.
type Outcome string

// The outcomes.
const (
	Created Outcome = "CREATED"
	Updated Outcome = "UPDATED"
	// Unchanged: nothing was written, or only which labels and annotations a field manager owns.
	Unchanged Outcome = "UNCHANGED"
)

// Written is the answer to a write.
type Written struct {
	// Resource as stored; for a delete its last state. For a dry run it is the resource that would be stored:
	// a new one has neither uid nor revision. It is nil if the caller may create the resource and not read it, which a
	// warning says, and for the dry run of deleting a record that cannot be read.
	Resource *query.Resource
	// Outcome of the write; empty for a delete.
	Outcome Outcome
	// Deletion is how far a deletion has come; empty for other writes.
	Deletion Deletion
	Warnings []failure.Warning
	// DryRun reports whether nothing was written.
	DryRun bool
}

// Deletion is how far a deletion has come.
type Deletion string

// How far a deletion has come.
const (
	// Deleted: the resource is gone.
	Deleted Deletion = "DELETED"
	// Pending: others rely on the resource. It goes once none does.
	Pending Deletion = "PENDING"
	// Finalizing: nobody relies on the resource. It goes once its finalizers are removed.
	Finalizing Deletion = "FINALIZING"
)

// ManifestFormat is how a manifest is written.
type ManifestFormat string

// The formats.
const (
	YAML ManifestFormat = "YAML"
	JSON ManifestFormat = "JSON"
)

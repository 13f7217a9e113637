// Package owner is the interface to the resource services of other teams. Such a service owns the resources of some
// kinds: their data, their rules and their side effects. The gateway keeps a copy of each resource in a mirror, and
// forwards the writes of its callers to the service.
//
// The contract with services is schema/service/v1/resource.proto. This package expresses the contract with the
// gateway's types, so that clients for other protocols can implement the same interface.
package owner

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// MaxKeys is the maximum number of keys in one call of Get.
const MaxKeys = 100

// Service is a resource service. Its methods are safe for concurrent use. The context has the caller and the id of the
// request. It has no caller if the gateway calls on its own behalf.
//
// An error means that the service has not decided anything, or that its decision is unknown. [ErrNotSent] means that
// the service was not called, and [ErrUnimplemented] that it does not have the call. After any other error the answer
// was lost, and a write may have been applied. The decision of a service is the outcome of an [Answer].
type Service interface {
	// Describe returns the kinds of the service, with the service's capabilities for each kind.
	Describe(ctx context.Context) (Description, error)
	// List returns a page of the resources of a kind. The order of the resources does not change between pages. token
	// is empty for the first page. List may return older states than Get. But it has all changes up to each position
	// that Changes had returned when List was called.
	List(ctx context.Context, kind, token string, size int) (Page, error)
	// Get returns the resources with at most MaxKeys keys, in the order of the keys. The result has all acknowledged
	// writes.
	Get(ctx context.Context, keys []backend.Key) ([]Got, error)
	// Changes waits until something has changed after a position, but at most for the duration wait. If the position is
	// empty, it returns the current position immediately.
	Changes(ctx context.Context, position string, wait time.Duration) (Changes, error)
	// Write creates a resource, or replaces the parts of it that callers set.
	Write(ctx context.Context, w Write) (Answer, error)
	// Delete deletes a resource, or marks it for deletion.
	Delete(ctx context.Context, d Delete) (Answer, error)
}

// The errors of calls.
var (
	// ErrNotSent means that the service was not called. It cannot be reached, or too many calls have failed or are
	// waiting.
	ErrNotSent = errors.New("the service was not asked")
	// ErrUnimplemented means that the service does not have the call.
	ErrUnimplemented = errors.New("the service does not have this call")
)

// Resource is a resource as its owner returns it.
type Resource struct {
	backend.Key
	// Tag identifies a version of the resource. Versions with different spec, metadata or status have different tags.
	// An unchanged resource keeps its tag. Tag is empty if the service does not support conditional writes.
	Tag string
	// UID distinguishes resources that had the same key at different times. If it is empty, the gateway assigns a UID.
	UID string
	// WriteID is the id of the write that has made this version. It is empty if the service does not store such ids.
	WriteID     string
	Labels      map[string]string
	Annotations map[string]string
	Description string
	// CreatedAt is when the resource was created; zero if the service does not know the time.
	CreatedAt time.Time
	// DeletionRequestedAt is when the deletion was requested; zero if it was not requested.
	DeletionRequestedAt time.Time
	// Spec and Status are JSON objects with stored names. Status is empty if there is no status.
	Spec, Status []byte
	// Generation is the number of changes of the spec. If it is 0, the gateway counts them.
	Generation int64
}

// Description is what a service says about itself.
type Description struct {
	// Service is the name of the service for errors and metrics.
	Service string
	Kinds   []Kind
	// SDL has the annotated types of the kinds. `sluice service pull` uses it.
	SDL string
}

// Kind is a kind of a service, with the service's capabilities for the kind.
type Kind struct {
	Name string
	// Changes reports whether [Service.Changes] returns changes of the kind.
	Changes bool
	// Writes reports whether the kind can be written and deleted.
	Writes bool
	// Conditional reports whether the service checks the tag of a write atomically with the write.
	Conditional bool
	DryRun      bool
	// NoCreate reports whether resources cannot be created. They can still be replaced and deleted.
	NoCreate bool
	// Partial reports whether the service shows this gateway only the fields of its SDL. A write does not have the
	// other fields and leaves them as they are.
	Partial bool
	// NoLabels, NoAnnotations and NoDescription report whether resources of the kind cannot have labels, annotations or
	// a description. The outcome of a write that has them is Invalid.
	NoLabels      bool
	NoAnnotations bool
	NoDescription bool
}

// Page is a page of [Service.List].
type Page struct {
	Resources []Resource
	// Unreadable lists the resources that exist but cannot be returned.
	Unreadable []Unreadable
	// Next is the token of the next page. It is empty on the last page.
	Next string
}

// Unreadable is a resource that exists but that the service cannot return.
type Unreadable struct {
	backend.Key
	Message string
}

// Got is the result of Get for one key. The zero value means that there is no resource.
type Got struct {
	Resource *Resource
	// Unreadable is the reason why an existing resource cannot be returned; empty otherwise.
	Unreadable string
}

// Changes has the keys that have changed after a position, in any order and possibly with duplicates. Several changes
// of a key may be reported as one. A change is reported after each position that was returned before the change.
type Changes struct {
	Keys []backend.Key
	// Position is the position for the next call.
	Position string
	// Expired reports whether the position was unknown, too old, or from another history. The gateway then compares all
	// resources with their records.
	Expired bool
}

// Write is a request to create or replace a resource. If the service supports conditions, exactly one of IfAbsent and
// IfTag is set.
type Write struct {
	// Resource has only the parts that callers set: key, labels, annotations, description and spec. It also has the id
	// of the write.
	Resource Resource
	// IfAbsent requires that the resource does not exist. IfTag and IfUID require that it exists and has this tag and
	// this UID. An empty value requires nothing.
	IfAbsent bool
	IfTag    string
	IfUID    string
	// DryRun checks the write without applying it.
	DryRun bool
	// Resent reports whether the write was sent before and its answer was lost.
	Resent bool
}

// Delete is a request to delete a resource.
type Delete struct {
	backend.Key
	IfTag  string
	IfUID  string
	DryRun bool
	// ID identifies the delete. It is the same if the delete is sent again. Resent reports whether the delete was sent
	// before and its answer was lost.
	ID     string
	Resent bool
}

// Answer is the decision of a service about a write or a delete.
type Answer struct {
	Outcome Outcome
	// Resource is the resource after the call. After a deletion it is the last state of the resource. After Conflict
	// and Exists it is the resource that the service has found. It is nil if the service does not return it.
	Resource *Resource
	// Message explains the outcome to the caller.
	Message    string
	Violations []Violation
	Warnings   []Violation
}

// Violation is an error in a field, or a warning about a field.
type Violation struct {
	// Path is the path of the field, such as "spec.email".
	Path, Rule, Message string
}

// Outcome is the outcome of a write or a delete. The zero value is not an outcome.
type Outcome int

// The outcomes of writes and deletes.
const (
	_ Outcome = iota
	// Done means that the change was applied.
	Done
	// Waits means that the resource will be deleted later. No other call is needed.
	Waits
	// Conflict means that the tag or the uid does not match.
	Conflict
	// Exists means that the resource to create already exists.
	Exists
	// Absent means that the resource to replace or delete does not exist.
	Absent
	// Invalid means that the service refuses the change because of Violations.
	Invalid
	// Forbidden means that the caller may not make the change.
	Forbidden
	// Refused means that the service refuses the change for another reason, which is in Message.
	Refused
)

var outcomes = [...]string{"none", "DONE", "WAITS", "CONFLICT", "EXISTS", "ABSENT", "INVALID", "FORBIDDEN", "REFUSED"}

// String returns the name that the outcome has in the contract.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return outcomes[0]
	}
	return outcomes[o]
}

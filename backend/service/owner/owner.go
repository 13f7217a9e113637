// Package owner describes the resource services of other teams. Such a service owns the resources
// of some kinds: their data, their rules and their side effects. The gateway keeps a copy of each
// resource in a mirror, and forwards the writes of its callers.
//
// The contract is schema/service/v1/resource.proto. This package has it in the gateway's own types,
// so that other protocols can implement the same interface.
package owner

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// MaxKeys is the maximum number of keys in one call of Get.
const MaxKeys = 100

// Service is a resource service. Its methods are safe for concurrent use. The context carries the
// caller and the id of the request; it has no caller if the gateway calls on its own behalf.
//
// An error means that the service made no decision: [ErrNotSent] if it was not called,
// [ErrUnimplemented] if it does not have the call. Any other error means that the answer was lost,
// so a write may have been applied. A decision of the service is the outcome of an [Answer].
type Service interface {
	// Describe returns the kinds of the service, and what it can do with them.
	Describe(ctx context.Context) (Description, error)
	// List returns a page of the resources of a kind, in an order that does not change between
	// pages. It may be older than Get. token is empty for the first page.
	List(ctx context.Context, kind, token string, size int) (Page, error)
	// Get returns up to MaxKeys resources, parallel to the keys. It sees every write that was
	// acknowledged.
	Get(ctx context.Context, keys []backend.Key) ([]Got, error)
	// Changes waits until something has changed after a position, or wait is over. For the empty
	// position it returns the current position at once.
	Changes(ctx context.Context, position string, wait time.Duration) (Changes, error)
	// Write creates a resource, or replaces the parts that callers set.
	Write(ctx context.Context, w Write) (Answer, error)
	// Delete removes a resource, or marks it for deletion.
	Delete(ctx context.Context, d Delete) (Answer, error)
}

// Errors of calls.
var (
	// ErrNotSent means that the service was not called: it cannot be reached, or too many calls
	// have failed or are waiting.
	ErrNotSent = errors.New("the service was not asked")
	// ErrUnimplemented means that the service does not have the call.
	ErrUnimplemented = errors.New("the service does not have this call")
)

// Resource is a resource in its owner's state.
type Resource struct {
	backend.Key
	// Tag identifies this version of the resource; empty if the service cannot write conditionally.
	// Versions that differ in spec, metadata or status have different tags. A resource that has not
	// changed keeps its tag.
	Tag string
	// UID differs between resources that have had the same key. If it is empty, the gateway
	// makes one.
	UID string
	// WriteID is the id of the write that has made this version; empty if the service does not
	// store it.
	WriteID     string
	Labels      map[string]string
	Annotations map[string]string
	Description string
	// CreatedAt is zero if the service does not know it.
	CreatedAt time.Time
	// DeletionRequestedAt is not zero if the resource is being deleted.
	DeletionRequestedAt time.Time
	// Spec and Status are JSON objects in the stored form of the SDL; Status is empty if there is
	// none.
	Spec, Status []byte
	// Generation of the spec; 0 if the gateway is to count.
	Generation int64
}

// Description is a service's description of itself.
type Description struct {
	// Service is the service's name in errors and metrics.
	Service string
	Kinds   []Kind
	// SDL has the annotated types of the kinds, for `sluice service pull`.
	SDL string
}

// Kind is a kind of a service, with the service's capabilities for it.
type Kind struct {
	Name string
	// Changes reports whether [Service.Changes] announces changes of this kind.
	Changes bool
	// Writes reports whether the kind can be written and deleted.
	Writes bool
	// Conditional reports whether the service checks the tag of a write atomically with the write.
	Conditional bool
	DryRun      bool
	// NoCreate reports whether its resources can be written and deleted, and not created.
	NoCreate bool
	// NoLabels, NoAnnotations and NoDescription report what its resources cannot have: a write that has it is Invalid.
	NoLabels      bool
	NoAnnotations bool
	NoDescription bool
}

// Page is a page of [Service.List].
type Page struct {
	Resources []Resource
	// Unreadable are resources that exist but cannot be shown.
	Unreadable []Unreadable
	// Next is the token of the next page; empty at the end.
	Next string
}

// Unreadable is a resource that its owner has but cannot show.
type Unreadable struct {
	backend.Key
	Message string
}

// Got is the resource of a key. The zero value means that there is none.
type Got struct {
	Resource *Resource
	// Unreadable is the reason why an existing resource cannot be shown.
	Unreadable string
}

// Changes are the keys that have changed after a position. A key may be repeated, and the order is
// arbitrary. Several changes of a key may be reported as one. A change is reported after every
// position that was returned before the change.
type Changes struct {
	Keys []backend.Key
	// Position is the position to continue from.
	Position string
	// Expired reports that the position is unknown, too old, or of another history. All resources
	// are compared then.
	Expired bool
}

// Write is a request to create or replace a resource. If the service takes conditions, exactly one
// of IfAbsent and IfTag is set.
type Write struct {
	// Resource has the parts that callers set: key, labels, annotations, description and spec. It
	// also has the id of the write.
	Resource Resource
	IfAbsent bool
	IfTag    string
	IfUID    string
	// DryRun validates the write without applying it.
	DryRun bool
}

// Delete is a request to remove a resource.
type Delete struct {
	backend.Key
	IfTag  string
	IfUID  string
	DryRun bool
}

// Answer is a service's decision about a write or a delete.
type Answer struct {
	Outcome Outcome
	// Resource is the resource after the call; nil if the service does not show it. After a
	// deletion it is the last state. After Conflict and Exists it is the resource that was found
	// instead.
	Resource *Resource
	// Message is text for the caller.
	Message    string
	Violations []Violation
	Warnings   []Violation
}

// Violation is an error of a field, or a warning about it.
type Violation struct {
	// Path of the field, such as "spec.email".
	Path, Rule, Message string
}

// Outcome is the outcome of a write or a delete. The zero value is no outcome.
type Outcome int

// The outcomes.
const (
	_ Outcome = iota
	// Done means that the change was applied.
	Done
	// Waits means that the resource will be deleted later, without another call.
	Waits
	// Conflict means that the tag or the uid does not match.
	Conflict
	// Exists means that the resource that the write was to create exists already.
	Exists
	// Absent means that there is no resource to replace or delete.
	Absent
	// Invalid means that the service refuses the change because of the violations.
	Invalid
	// Forbidden means that the caller has no right to the change.
	Forbidden
	// Refused means that the service refuses the change for the reason in the message.
	Refused
)

var outcomes = [...]string{"none", "DONE", "WAITS", "CONFLICT", "EXISTS", "ABSENT", "INVALID", "FORBIDDEN", "REFUSED"}

// String returns the name of the outcome in the contract.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return outcomes[0]
	}
	return outcomes[o]
}

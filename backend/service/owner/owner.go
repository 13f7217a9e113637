// Package owner describes the resource services of other teams. Such a service owns the resources of some kinds: their
// data, their rules and their side effects. The gateway keeps a copy of each, its mirror, and sends the service what
// callers write.
//
// The contract is schema/service/v1/resource.proto; this package has it in the gateway's own types, so that other
// protocols can stand behind the same interface.
package owner

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// MaxKeys is the most keys of one call of Get.
const MaxKeys = 100

// Service is a resource service. Its methods are safe for concurrent use. The context has the caller who asks, and the
// id of the request; the gateway itself asks without a caller.
//
// An error means that the service did not decide: [ErrNotSent] that it was not asked, [ErrUnimplemented] that it does
// not have the call, any other that the answer was lost, so that a write may have been made. What a service decides is
// the outcome of an [Answer].
type Service interface {
	// Describe returns what the service has.
	Describe(ctx context.Context) (Description, error)
	// List returns a page of the resources of a kind, in any order that does not change while pages are read. It may be
	// older than Get. token is empty for the first page.
	List(ctx context.Context, kind, token string, size int) (Page, error)
	// Get returns up to MaxKeys resources, parallel to the keys. It reads every write that was acknowledged.
	Get(ctx context.Context, keys []backend.Key) ([]Got, error)
	// Changes waits, at most for wait, until something has changed after a position. At the empty position it returns
	// the present one at once.
	Changes(ctx context.Context, position string, wait time.Duration) (Changes, error)
	// Write creates or replaces what callers set of one resource.
	Write(ctx context.Context, w Write) (Answer, error)
	// Delete removes one resource, or notes that it is to go.
	Delete(ctx context.Context, d Delete) (Answer, error)
}

// Errors of calls.
var (
	// ErrNotSent means that the service was not asked: it cannot be reached, or too many of its calls failed or wait.
	ErrNotSent = errors.New("the service was not asked")
	// ErrUnimplemented means that the service does not have the call.
	ErrUnimplemented = errors.New("the service does not have this call")
)

// Resource is a resource as its owner has it.
type Resource struct {
	backend.Key
	// Tag names this version of the resource; empty if the service cannot write conditionally. Versions that differ in
	// spec, metadata or status have different tags, and a resource that has not changed keeps its tag.
	Tag string
	// UID is another one for another resource under the same key. Empty: the gateway makes one.
	UID string
	// WriteID is that of the write which made this version; empty if the service does not keep it.
	WriteID     string
	Labels      map[string]string
	Annotations map[string]string
	Description string
	// CreatedAt is zero if the service does not tell.
	CreatedAt time.Time
	// DeletionRequestedAt is not zero if the resource is on its way out.
	DeletionRequestedAt time.Time
	// Spec and Status are JSON objects in the stored form of the SDL; Status is empty if there is none.
	Spec, Status []byte
	// Generation is that of the spec; 0: the gateway counts.
	Generation int64
}

// Description is what a service has.
type Description struct {
	// Service is its name for errors and metrics.
	Service string
	Kinds   []Kind
	// SDL has the annotated types of the kinds, for `sluice service pull`.
	SDL string
}

// Kind is a kind that a service owns, and what it can do with it.
type Kind struct {
	Name string
	// Changes reports whether [Service.Changes] tells of this kind.
	Changes bool
	// Writes reports whether the kind can be written and deleted.
	Writes bool
	// Conditional reports whether the tag of a write is judged in the same atomic step as the write is made.
	Conditional bool
	DryRun      bool
}

// Page is a page of [Service.List].
type Page struct {
	Resources []Resource
	// Unreadable are there, but cannot be shown.
	Unreadable []Unreadable
	// Next is the token of the next page; empty at the end.
	Next string
}

// Unreadable is a resource that its owner has but cannot show.
type Unreadable struct {
	backend.Key
	Message string
}

// Got is what a service has under a key. The zero value: nothing.
type Got struct {
	Resource *Resource
	// Unreadable says why a resource that is there cannot be shown.
	Unreadable string
}

// Changes are the keys that have changed after a position. Keys may come too often, in any order and together; the key
// of a change comes after each position that was told before the change.
type Changes struct {
	Keys []backend.Key
	// Position is the one to go on from.
	Position string
	// Expired reports that the position is of another history, too old or unknown, so that everything is compared.
	Expired bool
}

// Write is a request to create or replace a resource. Exactly one of IfAbsent and IfTag is set if the service takes
// conditions.
type Write struct {
	// Resource has what callers set: key, labels, annotations, description and spec, and the id of the write.
	Resource Resource
	IfAbsent bool
	IfTag    string
	IfUID    string
	// DryRun only judges.
	DryRun bool
}

// Delete is a request to remove a resource.
type Delete struct {
	backend.Key
	IfTag  string
	IfUID  string
	DryRun bool
}

// Answer is what a service has decided about a write or a delete.
type Answer struct {
	Outcome Outcome
	// Resource is the resource as it is now: after Done as it was written, of a delete as it was or as it waits; after
	// Conflict and Exists as it is instead. nil: the service does not show it.
	Resource *Resource
	// Message is for the caller.
	Message    string
	Violations []Violation
	Warnings   []Violation
}

// Violation is a field that a service does not accept, or warns about.
type Violation struct {
	// Path is that of the field, such as "spec.email".
	Path, Rule, Message string
}

// Outcome is what became of a write or a delete. The zero value is no outcome.
type Outcome int

// The outcomes.
const (
	_ Outcome = iota
	// Done: it was made.
	Done
	// Waits: the resource will be deleted later, without another call.
	Waits
	// Conflict: the tag or the uid does not hold.
	Conflict
	// Exists: the resource was to be absent.
	Exists
	// Absent: there is nothing to replace or delete.
	Absent
	// Invalid: the violations say why.
	Invalid
	// Forbidden: the caller may not.
	Forbidden
	// Refused: the message says why.
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

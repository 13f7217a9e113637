package backend

import (
	"fmt"
	"slices"
	"time"
)

// Limits of a [Batch] and of one resource. MaxWrites and MaxChecks are numbers of actions, MaxRefs and MaxFinalizers
// are numbers per resource. The other limits are in bytes.
const (
	MaxWrites        = 64
	MaxChecks        = 256
	MaxBatchBytes    = 4 << 20
	MaxResourceBytes = 1 << 20
	// MaxStoredBytes is the maximum size of one stored resource: MaxResourceBytes from
	// callers, plus the conditions and the deletion request that the gateway adds.
	MaxStoredBytes = MaxResourceBytes + 256<<10
	MaxRequestID   = 64
	MaxFingerprint = 64
	MaxKeyBytes    = 1003
	MaxRefs        = 1024
	MaxFinalizers  = 64
	// MaxChange is the maximum size of a [Put.Change] in bytes.
	MaxChange = 64 << 10
	// MaxActor is the maximum size of a [Batch.Actor] in bytes.
	MaxActor = 1024
)

// Batch is a set of changes in one shard. A store applies all of them or none. All its writes have the same namespace.
// Its checks may also name keys of GLOBAL kinds in the same shard.
type Batch struct {
	// RequestID identifies the batch in the log: 1 to MaxRequestID bytes. Each attempt to apply a batch needs a new
	// one.
	RequestID string
	// Deadline is a time of the store's clock, after which the store refuses the batch. Once it has passed, the log
	// shows conclusively whether the batch was applied.
	Deadline time.Time
	// Actor names the author of the changes, for the log. It has at most MaxActor bytes, which the store does not
	// interpret.
	Actor string
	// Actions name each key at most once.
	Actions []Action
}

// Action checks a condition of one key, and then applies an operation to the key.
type Action struct {
	Key Key
	If  Condition
	Op  Op
	// Put has the values that an OpPut stores. An OpRebind uses only Put.Declared and Put.Refs.
	Put Put
}

// Op is what an action does once all conditions of the batch hold.
type Op uint8

const (
	// OpCheck changes nothing.
	OpCheck Op = iota
	// OpPut stores Action.Put, whether or not the key exists.
	OpPut
	// OpDelete removes the key. If the key is absent, it fails with ErrNotFound, even if the condition does not require
	// the key to be present. It also removes a resource that cannot be decoded, if its condition is about presence
	// only. The last state in the result then has only the key.
	OpDelete
	// OpRebind replaces the references of a resource, and the fingerprint of the declarations from which they were
	// derived. It is used after declarations have changed, while the resource has not.
	//
	// It adds one to [Envelope.BindingVersion]. It makes no revision, log entry or event, and keeps UpdatedAt, so the
	// log does not show whether it was applied.
	//
	// Its condition must name the revision from which the references were derived, and the binding version. A second
	// rebind of the same state therefore fails.
	OpRebind
)

// Result is the result of an applied batch.
type Result struct {
	// Resources are parallel to the actions. An element is the stored resource for a put or a rebind, and the last
	// state for a delete. For a check it is the checked state, which is nil if the key is absent.
	Resources []*Resource
	// Revisions are parallel to the actions: the revision of each put and delete, zero for others.
	Revisions []Revision
	// Position is the position of the batch on its shard. Its other shards are zero.
	Position Position
}

// Validate returns ErrInvalid or ErrTooLarge for a malformed batch. shards is nil
// for a store that has one shard.
func (b Batch) Validate(shards Sharder) error {
	if b.RequestID == "" || len(b.RequestID) > MaxRequestID {
		return fmt.Errorf("batch: request id of 1 to %d bytes wanted: %w", MaxRequestID, ErrInvalid)
	}
	if b.Deadline.IsZero() {
		return fmt.Errorf("batch: no deadline: %w", ErrInvalid)
	}
	if len(b.Actor) > MaxActor {
		return fmt.Errorf("batch: actor of %d bytes, at most %d: %w", len(b.Actor), MaxActor, ErrInvalid)
	}
	if len(b.Actions) > MaxWrites+MaxChecks {
		return fmt.Errorf("batch: %d actions, at most %d: %w", len(b.Actions), MaxWrites+MaxChecks, ErrInvalid)
	}
	writes, namespace := 0, b.Namespace()
	for i, a := range b.Actions {
		if err := a.validate(shards); err != nil {
			return fmt.Errorf("batch action %d: %w", i, err)
		}
		switch to := a.Key.Namespace; {
		case to == namespace:
		case to != "" || a.Op != OpCheck:
			return fmt.Errorf("batch: namespaces %q and %q in one batch: %w", namespace, to, ErrInvalid)
		case !sameShard(shards, to, namespace):
			return fmt.Errorf("batch: a check of %s, which lies in another shard than namespace %q: %w", a.Key, namespace, ErrInvalid)
		}
		if slices.ContainsFunc(b.Actions[:i], func(o Action) bool { return o.Key == a.Key }) {
			return fmt.Errorf("batch: %s twice: %w", a.Key, ErrInvalid)
		}
		if a.Op != OpCheck {
			writes++
		}
	}
	switch checks, size := len(b.Actions)-writes, b.Size(); {
	case writes == 0:
		return fmt.Errorf("batch: no write: %w", ErrInvalid)
	case writes > MaxWrites:
		return fmt.Errorf("batch: %d writes, at most %d: %w", writes, MaxWrites, ErrInvalid)
	case checks > MaxChecks:
		return fmt.Errorf("batch: %d checks, at most %d: %w", checks, MaxChecks, ErrInvalid)
	case size > MaxBatchBytes:
		return fmt.Errorf("batch: %d bytes, at most %d: %w", size, MaxBatchBytes, ErrTooLarge)
	}
	return nil
}

// Namespace returns the namespace that a valid batch writes to.
func (b Batch) Namespace() string {
	for i := range b.Actions {
		if b.Actions[i].Op != OpCheck {
			return b.Actions[i].Key.Namespace
		}
	}
	return ""
}

// Size returns the number of bytes that the writes count against MaxBatchBytes.
func (b Batch) Size() int {
	n := 0
	for i := range b.Actions {
		if b.Actions[i].Op != OpCheck {
			n += b.Actions[i].size() + len(b.Actions[i].Put.Change)
		}
	}
	return n
}

func (a Action) size() int {
	r := Resource{Key: a.Key, Refs: a.Put.Refs, Body: a.Put.Body}
	return r.Size()
}

func (a Action) validate(shards Sharder) error {
	if !a.Key.valid() {
		return errKey()
	}
	if a.If.Presence > Present || a.If.Presence == Absent && a.If != (Condition{Presence: Absent}) {
		return fmt.Errorf("%s: a condition cannot ask more of an absent key: %w", a.Key, ErrInvalid)
	}
	if a.If.Deleting && a.If.NotDeleting {
		return fmt.Errorf("%s: deleting and not deleting: %w", a.Key, ErrInvalid)
	}
	switch a.Op {
	case OpCheck:
		if a.If == (Condition{}) {
			return fmt.Errorf("%s: a check without a condition: %w", a.Key, ErrInvalid)
		}
		return nil
	case OpDelete:
		if a.If.Presence == Absent {
			return fmt.Errorf("%s: delete of an absent key: %w", a.Key, ErrInvalid)
		}
		return nil
	case OpPut:
		return a.Put.validate(a, shards)
	case OpRebind:
		return a.Put.validateRebind(a, shards)
	}
	return fmt.Errorf("%s: unknown operation %d: %w", a.Key, a.Op, ErrInvalid)
}

package dependency

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// State is the state of a target from the view of a resource that refers to it.
type State string

// The states of a target.
const (
	// Missing: the target does not exist.
	Missing State = "MISSING"
	// NotReady: the target exists, but its condition Available is not True.
	NotReady State = "NOT_READY"
	// Deleting: the deletion of the target was requested.
	Deleting State = "DELETING"
	// Bound: the target was ready at some time, and the referrer has relied on the target since then.
	Bound State = "BOUND"
	// Unreadable: the state is unknown, because the referrer cannot be read.
	Unreadable State = "UNREADABLE"
)

// Reading selects how a write reads targets. The first attempt uses FromIndex. If the store refuses the write because
// of a target, the next attempt uses the next value.
type Reading int

// The ways of reading.
const (
	// FromIndex reads a target from the index if possible. The index may be older than the
	// store, which then refuses the write.
	FromIndex Reading = iota
	// FromStore reads all targets from the store in one call, in which a damaged resource
	// appears to be missing.
	FromStore
	// OneByOne reads each target in a separate call, so that a damaged resource does not
	// appear to be missing.
	OneByOne
)

// Target is the target of a reference. Stored is nil if the target does not exist.
type Target struct {
	Kind   *kind.Kind
	Stored *backend.Resource
	// Damaged reports whether the stored record cannot be read.
	Damaged bool
	// MayBeStale reports whether Stored may be older than the target in the store. If it may be, the check also
	// requires the revision of Stored.
	MayBeStale bool
}

// state returns the state of a target on which the resource does not rely yet. Here Bound means that the target is
// ready.
func (t Target) state() State {
	switch {
	case t.Damaged:
		return NotReady
	case t.Stored == nil:
		return Missing
	case t.Stored.Deleting:
		return Deleting
	case !Ready(t.Kind, t.Stored):
		return NotReady
	}
	return Bound
}

// check returns an action that makes a batch fail unless the target still has the state that t shows.
func (t Target) check(key backend.Key) backend.Action {
	a := backend.Action{Key: key, Op: backend.OpCheck}
	switch t.state() {
	case Missing:
		a.If = backend.Condition{Presence: backend.Absent}
	case Deleting:
		a.If = backend.Condition{Presence: backend.Present, UID: t.Stored.UID, Deleting: true}
	case NotReady: // a damaged one is never checked
		a.If = backend.Condition{Presence: backend.Present, Revision: t.Stored.Revision}
	case Bound:
		a.If = backend.Condition{Presence: backend.Present, UID: t.Stored.UID, NotDeleting: true}
		if t.MayBeStale {
			a.If.Revision = t.Stored.Revision
		}
	}
	return a
}

// StateOf returns the state of a target for a stored referrer. target is nil if it does not exist. waited reports
// whether the referrer waits for the target.
func StateOf(waited bool, target *backend.Resource) State {
	switch {
	case target == nil:
		return Missing
	case !waited:
		return Bound
	case target.Deleting:
		return Deleting
	}
	return NotReady
}

// Wait is a target that a resource waits for.
type Wait struct {
	Key backend.Key
	// For is the present state of the target. The resource waits for this state to end.
	For State
	// Path is the path of the reference in the spec.
	Path string
}

// String returns a line such as "Waiting for Network/net-a to be created".
func (w Wait) String() string {
	what := "ready"
	switch w.For {
	case Missing:
		what = "created"
	case Deleting:
		what = "deleted"
	}
	return "Waiting for " + Name(w.Key) + " to be " + what
}

func (w Wait) compare(o Wait) int {
	return cmp.Or(cmp.Compare(w.Key.Kind, o.Key.Kind), cmp.Compare(w.Key.Name, o.Key.Name))
}

// maxLines is the maximum number of waits listed in a message.
const maxLines = 64

// message returns the message of a condition about waits, with one line for each wait.
func message(waits []Wait) string {
	lines := make([]string, 0, min(len(waits), maxLines+1))
	for i, w := range waits {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("and for %d others", len(waits)-maxLines))
			break
		}
		lines = append(lines, w.String())
	}
	return strings.Join(lines, "\n")
}

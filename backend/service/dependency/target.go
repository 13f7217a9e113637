package dependency

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// State is the state of a target from the point of view of a resource that refers to it.
type State string

// The states.
const (
	// Missing: there is no such resource.
	Missing State = "MISSING"
	// NotReady: it is there and its condition Available is not True.
	NotReady State = "NOT_READY"
	// Deleting: its deletion was requested.
	Deleting State = "DELETING"
	// Bound: the referrer found it ready and has relied on it since.
	Bound State = "BOUND"
	// Unreadable: unknown, because the referrer cannot be read.
	Unreadable State = "UNREADABLE"
)

// Reading selects how targets are read. A write begins with FromIndex; after each refusal it uses
// the next one.
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

// Target is the target of a reference; Stored is nil if it does not exist.
type Target struct {
	Kind   *kind.Kind
	Stored *backend.Resource
	// Damaged reports whether the stored record cannot be read.
	Damaged bool
	// MayBeStale reports that Stored may be older than the store. Then a check also requires its
	// revision.
	MayBeStale bool
}

// state returns the state of a target that the resource does not rely on yet; Bound if
// it is ready.
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

// check returns the action that fails unless the target is still in this state.
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

// StateOf returns the state of a target for a stored referrer. target is nil if it does not exist;
// waited reports whether the referrer waits for it.
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
	// For is the state of the target that has to change.
	For State
	// Path of the reference.
	Path string
}

// String returns the line about the wait: "Waiting for Network/net-a to be created".
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

// maxLines is the most waits that a message lists.
const maxLines = 64

// message returns the text about waits, one on each line.
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

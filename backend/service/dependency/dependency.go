// Package dependency judges what a resource refers to: what it relies on, what it
// waits for, and what its conditions say of that.
package dependency

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
)

// State is how far a resource is that another refers to.
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
)

// Ready says whether a resource can be relied on: its condition Available is True, or
// its kind has no conditions. nil is not ready.
func Ready(k *kind.Kind, r *backend.Resource) bool {
	if r == nil {
		return false
	}
	available := row.Pair(Available, True)
	return k.Conditions == nil || slices.ContainsFunc(r.Rows, func(o backend.Row) bool {
		return o.Index == row.ConditionIndex && string(o.Value) == string(available)
	})
}

// Target is a resource that is referred to: what is stored of it, nil for nothing.
type Target struct {
	Kind   *kind.Kind
	Stored *backend.Resource
	// Damaged says that what is stored cannot be read.
	Damaged bool
}

// state of a target that nobody relies on yet; Bound if it is ready to be relied on.
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

// check is what must hold of a target for its state to be true.
func (t Target) check(key backend.Key) backend.Action {
	a := backend.Action{Key: key, Op: backend.OpCheck}
	switch t.state() {
	case Missing:
		a.If = backend.Condition{Presence: backend.Absent}
	case Deleting:
		a.If = backend.Condition{Presence: backend.Present, UID: t.Stored.UID, Deleting: true}
	case NotReady:
		a.If = backend.Condition{Presence: backend.Present, Revision: t.Stored.Revision}
	case Bound:
		a.If = backend.Condition{Presence: backend.Present, UID: t.Stored.UID, NotDeleting: true}
	}
	return a
}

// Relation is what a resource refers to.
type Relation struct {
	// Refs are those of its spec.
	Refs []row.Ref
	// open are those that the resource does not rely on yet.
	open map[backend.Key]bool
}

// Of is the relation of a resource with these references. before are those that it
// had until now, of which it waits for some, as "Kind/name".
func Of(key backend.Key, refs, before []row.Ref, waits []string) Relation {
	rel := Relation{Refs: refs, open: map[backend.Key]bool{}}
	for _, ref := range refs {
		if ref.Key == key { // a resource does not wait for itself
			continue
		}
		held := slices.ContainsFunc(before, func(o row.Ref) bool { return o.Key == ref.Key })
		if !held || slices.Contains(waits, name(ref.Key)) {
			rel.open[ref.Key] = true
		}
	}
	return rel
}

// name is how a wait is stored.
func name(key backend.Key) string { return key.Kind + "/" + key.Name }

// Stored are the references of a resource as they are stored, where it waits for some
// as before and nothing is judged anew.
func Stored(key backend.Key, refs []row.Ref, waits []string) []backend.Ref {
	return Of(key, refs, refs, waits).judge(func(backend.Key) State { return Missing }).Refs
}

// WaitsFor says whether the resources that are not relied on yet are just these, as
// "Kind/name".
func (r Relation) WaitsFor(waits []string) bool {
	if len(r.open) != len(waits) {
		return false
	}
	for key := range r.open {
		if !slices.Contains(waits, name(key)) {
			return false
		}
	}
	return true
}

// Open are the resources that are not relied on yet, in the order of the references.
func (r Relation) Open() (out []backend.Key) {
	for _, ref := range r.Refs {
		if r.open[ref.Key] {
			out = append(out, ref.Key)
		}
	}
	return out
}

// Judgement is what follows from a relation.
type Judgement struct {
	// Refs of the resource as they are stored.
	Refs []backend.Ref
	// Waits are what it waits for, ordered by kind and name.
	Waits []Wait
	// Checks are what must hold for the judgement to be true.
	Checks []backend.Action
	// Overruled says that conditions of a status that was reported were not taken over.
	Overruled bool
	// Transition says that the status may have changed by more than what is said of
	// conditions whose statuses are the same.
	Transition bool
}

// Judge judges a relation by the targets that are open. No more than
// [backend.MaxChecks] of them can be checked at once: the others are waited for.
func (r Relation) Judge(targets map[backend.Key]Target) Judgement {
	var checks []backend.Action
	j := r.judge(func(key backend.Key) State {
		t := targets[key]
		state := t.state()
		switch {
		case t.Damaged: // of which no store judges a condition
		case len(checks) < backend.MaxChecks:
			checks = append(checks, t.check(key))
		case state == Bound:
			state = NotReady
		}
		return state
	})
	j.Checks = checks
	return j
}

// judge judges a relation by the states of the targets that are open.
func (r Relation) judge(stateOf func(backend.Key) State) Judgement {
	var j Judgement
	for _, ref := range r.Refs {
		state := Bound
		if r.open[ref.Key] {
			state = stateOf(ref.Key)
		}
		if state != Bound {
			j.Waits = append(j.Waits, Wait{Key: ref.Key, For: state, Path: ref.Path})
		}
		j.Refs = append(j.Refs, backend.Ref{Key: ref.Key, Bound: ref.Guard && state == Bound})
	}
	slices.SortFunc(j.Waits, Wait.compare)
	return j
}

// Stored are the waits as they are stored.
func (j Judgement) Stored() []string {
	var out []string
	for _, w := range j.Waits {
		out = append(out, name(w.Key))
	}
	return out
}

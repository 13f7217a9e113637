package dependency

import (
	"iter"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Ready reports whether other resources can rely on r. They can if the condition Available of r is True, or if the kind
// has no conditions. A nil r is not ready.
func Ready(k *kind.Kind, r *backend.Resource) bool {
	if r == nil {
		return false
	}
	if k.Conditions == nil {
		return true
	}
	b, err := k.Body.Read(r)
	if err != nil {
		return false
	}
	return available(k.Rows.Conditions(b))
}

// available reports whether a list has exactly one condition Available, and the status of this condition is True.
// conditions yields the type and the status of each condition.
func available(conditions iter.Seq2[string, string]) bool {
	yes, some := 0, 0
	for typ, status := range conditions {
		if typ == Available {
			if some++; status == True {
				yes++
			}
		}
	}
	return yes == 1 && some == 1
}

// IsAvailable reports whether the condition Available of a stored status is True.
func IsAvailable(status string) bool {
	return available(func(yield func(typ, status string) bool) {
		gjson.Get(status, "conditions").ForEach(func(_, condition gjson.Result) bool {
			return yield(condition.Get("type").Str, condition.Get("status").Str)
		})
	})
}

// References are the references of a resource.
type References struct {
	// Refs are the references of its spec.
	Refs []kind.ResourceRef
	// open is the set of targets on which the resource does not rely yet.
	open map[backend.Key]bool
}

// Before describes the references that a resource had before a write.
type Before struct {
	// Refs are the references. The resource relied on the targets of all of them except those in Waits.
	Refs []kind.ResourceRef
	// Waits are the targets that the resource waited for, in the form "Kind/name".
	Waits []string
}

// Mixed is the stored fingerprint of references that were derived partly from the declarations of this catalogue and
// partly from those of another. It differs from every Kind.Declared.
const Mixed = "-"

// BeforeOf returns the references of a stored resource. If they were derived from the declarations of k, they are
// computed from the spec. Otherwise the stored references are used.
func BeforeOf(k *kind.Kind, stored *backend.Resource, st *kind.State) Before {
	if stored.Declared == k.Declared {
		return Before{Refs: k.Rows.Refs(stored.Namespace, st.Spec), Waits: st.Meta.Waits}
	}
	before := Before{Waits: st.Meta.Waits}
	for _, ref := range stored.Refs {
		before.Refs = append(before.Refs, kind.ResourceRef{Key: ref.Key, Guarded: ref.Bound})
	}
	return before
}

// NewReferences returns the references of a resource. The resource still relies on each target on which it relied
// before, unless the reference was not guarded before and now is.
func NewReferences(key backend.Key, refs []kind.ResourceRef, before Before) References {
	rel := References{Refs: refs, open: map[backend.Key]bool{}}
	for _, ref := range refs {
		if ref.Key == key { // a resource does not wait for itself
			continue
		}
		held := slices.ContainsFunc(
			before.Refs, func(o kind.ResourceRef) bool { return o.Key == ref.Key && (o.Guarded || !ref.Guarded) },
		)
		if !held || slices.Contains(before.Waits, Name(ref.Key)) {
			rel.open[ref.Key] = true
		}
	}
	return rel
}

// Name returns the form in which waits store a resource: "Kind/name".
func Name(key backend.Key) string { return key.Kind + "/" + key.Name }

// Kept returns the decision that leaves the bindings of the resource as they are. The resource waits for each open
// target.
func (r References) Kept() Decision {
	return r.decide(func(backend.Key) State { return Missing })
}

// WaitsFor reports whether the open targets are exactly the given ones, which have the form "Kind/name".
func (r References) WaitsFor(waits []string) bool {
	other := func(key backend.Key) bool { return !slices.Contains(waits, Name(key)) }
	return len(r.open) == len(waits) && !slices.ContainsFunc(r.Open(), other)
}

// Reopen makes the resource wait again for the targets that have vanished.
func (r References) Reopen(vanished map[backend.Key]bool) {
	for _, ref := range r.Refs {
		if vanished[ref.Key] {
			r.open[ref.Key] = true
		}
	}
}

// Open returns the targets on which the resource does not rely yet, in the order of the references.
func (r References) Open() (out []backend.Key) {
	for _, ref := range r.Refs {
		if r.open[ref.Key] {
			out = append(out, ref.Key)
		}
	}
	return out
}

// Decision is the result of [References.Decide].
type Decision struct {
	// Refs are the references to store. Declared is the fingerprint of the declarations from which they were derived.
	// Both are empty if the stored references are kept.
	Refs     []backend.Ref
	Declared string
	// Waits are the targets that the resource waits for, ordered by kind and name.
	Waits []Wait
	// Checks are the conditions under which the decision is correct. They belong into the batch that stores the
	// decision.
	Checks []backend.Action
	// Overruled reports whether the gateway has replaced conditions that a status report has set.
	Overruled bool
}

// Decide decides for each open target whether the resource now relies on the target or waits. A batch can check at most
// [backend.MaxChecks] targets. The resource waits for the others. apart reports whether a target is stored in another
// shard than the resource; nil means that there is only one shard. A target in another shard is not checked. This is
// safe because targets of guarded references are always in the same shard.
func (r References) Decide(targets map[backend.Key]Target, apart func(backend.Key) bool) Decision {
	var checks []backend.Action
	d := r.decide(func(key backend.Key) State {
		t := targets[key]
		state := t.state()
		switch {
		case t.Damaged: // no store can check a record that it cannot read
		case apart != nil && apart(key):
		case len(checks) < backend.MaxChecks:
			checks = append(checks, t.check(key))
		case state == Bound:
			state = NotReady
		}
		return state
	})
	d.Checks = checks
	return d
}

// decide makes the decision for the open targets from their states.
func (r References) decide(stateOf func(backend.Key) State) Decision {
	var d Decision
	for _, ref := range r.Refs {
		state := Bound
		if r.open[ref.Key] {
			state = stateOf(ref.Key)
		}
		if state != Bound {
			d.Waits = append(d.Waits, Wait{Key: ref.Key, For: state, Path: ref.Path})
		}
		d.Refs = append(d.Refs, backend.Ref{Key: ref.Key, Bound: ref.Guarded && state == Bound})
	}
	slices.SortFunc(d.Waits, Wait.compare)
	return d
}

// Keeping returns the references to store on a gateway whose catalogue is not the newest. It returns the references of
// the decision and some of the stored references: those that are bound, and those that are not in named. named are the
// references that this gateway's catalogue has found before the write.
func (d Decision) Keeping(stored []backend.Ref, named []kind.ResourceRef) []backend.Ref {
	out := slices.Clone(d.Refs)
	for _, old := range stored {
		at := slices.IndexFunc(out, func(ref backend.Ref) bool { return ref.Key == old.Key })
		switch {
		case at >= 0:
			out[at].Bound = out[at].Bound || old.Bound
		case len(out) < backend.MaxRefs &&
			(old.Bound || !slices.ContainsFunc(named, func(ref kind.ResourceRef) bool { return ref.Key == old.Key })):
			out = append(out, old)
		}
	}
	return out
}

// Stored returns the waits in their stored form, "Kind/name".
func (d Decision) Stored() []string {
	var out []string
	for _, w := range d.Waits {
		out = append(out, Name(w.Key))
	}
	return out
}

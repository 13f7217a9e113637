package backend

// Ref is a reference of a resource to another one, which need not exist. The target has the same namespace, or none if
// its kind is GLOBAL.
type Ref struct {
	Key Key
	// Bound reports whether the resource relies on the target, see [Condition.Unreferenced]. Both must be in one shard,
	// where the store can then decide whether the target is in use.
	Bound bool
}

// Bound returns the targets of the resource's bound references.
func (r *Resource) Bound() (out []Key) {
	for _, ref := range r.Refs {
		if ref.Bound {
			out = append(out, ref.Key)
		}
	}
	return out
}

// RefEntries returns the entries of the resource in the inverse index. A bound reference has two: one among all
// references to its target, and one among the bound references to it.
func (r *Resource) RefEntries() []Ref {
	if len(r.Refs) == 0 {
		return nil
	}
	out := make([]Ref, 0, 2*len(r.Refs))
	for _, ref := range r.Refs {
		out = append(out, Ref{Key: ref.Key})
		if ref.Bound {
			out = append(out, ref)
		}
	}
	return out
}

// AppendRefKey appends the sort key of an entry of the inverse index: (kind, namespace,
// name, bound) of the target, then (kind, namespace, name) of the referrer.
func AppendRefKey(dst []byte, entry Ref, referrer Key) []byte {
	return referrer.Append(AppendBool(entry.Key.Append(dst), entry.Bound))
}

package backend

// Ref is a reference of one resource to another, whether that exists or not. The other
// one has the same namespace or none: it may be of a GLOBAL kind.
type Ref struct {
	Key Key
	// Bound: the resource relies on the other one, see [Condition.Unreferenced]. Both lie in
	// one shard, so that a store can judge in one place whether a resource is in use.
	Bound bool
}

// Bound returns the resources to which r has a bound reference.
func (r *Resource) Bound() (out []Key) {
	for _, ref := range r.Refs {
		if ref.Bound {
			out = append(out, ref.Key)
		}
	}
	return out
}

// RefEntries are the entries of the resource in the inverse index, in which a
// bound reference has two: one among all references to the key, and one among
// the bound.
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

// AppendRefKey appends the key of an entry of the inverse index as drivers
// order it: (kind, namespace, name, bound) of what is referred to, then (kind,
// namespace, name) of the referrer.
func AppendRefKey(dst []byte, entry Ref, referrer Key) []byte {
	return referrer.Append(AppendBool(entry.Key.Append(dst), entry.Bound))
}

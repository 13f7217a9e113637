package row

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Ref is a resource that another refers to.
type Ref struct {
	Key backend.Key
	// Guard says that one of the references to it is guarded.
	Guard bool
	// Path of the first of the references: see [descriptor.Reference.Path].
	Path string
}

// Refs are what a resource refers to, each once, by its spec, where alone
// references stand.
func (d *Definition) Refs(namespace string, spec map[string]any) []Ref {
	if len(d.references) == 0 {
		return nil
	}
	var out []Ref
	var seen map[backend.Key]int // once they are many
	for _, r := range d.references {
		d.Index(r.Path).walk(spec, 1, func(v any) {
			name, _ := v.(string)
			key := backend.Key{Kind: r.Kind, Namespace: namespace, Name: name}
			at, ok := seen[key]
			if seen == nil {
				at = slices.IndexFunc(out, func(o Ref) bool { return o.Key == key })
				ok = at >= 0
			}
			switch {
			case ok:
				out[at].Guard = out[at].Guard || r.Guard
				return
			case name == "" || len(name) > maxIndexBytes/2 || len(out) == backend.MaxRefs:
				return
			}
			out = append(out, Ref{Key: key, Guard: r.Guard, Path: r.Path})
			if seen != nil {
				seen[key] = len(out) - 1
			} else if len(out) == fewRows {
				seen = make(map[backend.Key]int, 2*fewRows)
				for i, o := range out {
					seen[o.Key] = i
				}
			}
		})
	}
	return out
}

// SameReferences reports whether a change left all that references name, by the rows of
// both states.
func (d *Definition) SameReferences(before, after []backend.Row) bool {
	for _, r := range d.references {
		if !slices.EqualFunc(appendIndex(nil, before, r.Path), appendIndex(nil, after, r.Path), backend.Row.Equal) {
			return false
		}
	}
	return true
}

// Dropped are the resources that guarded references named before a change, by the
// rows of both states, and do not name after it.
func (d *Definition) Dropped(namespace string, before, after []backend.Row) (out []backend.Key) {
	for _, r := range d.references {
		if !r.Guard {
			continue
		}
		for _, old := range before {
			if old.Index != r.Path || slices.ContainsFunc(after, old.Equal) {
				continue
			}
			if name, rest, err := backend.TakeString(old.Value); err == nil && len(rest) == 0 {
				out = append(out, backend.Key{Kind: r.Kind, Namespace: namespace, Name: name})
			}
		}
	}
	return out
}

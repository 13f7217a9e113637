package kind

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// ResourceRef is a reference to another resource.
type ResourceRef struct {
	Key backend.Key
	// Guarded reports whether any reference to Key is guarded.
	Guarded bool
	// Path is the path of the first reference to Key; see [descriptor.Reference.Path].
	Path string
}

// referenceIndex is a declared reference. global reports whether the kind of its targets is GLOBAL.
type referenceIndex struct {
	descriptor.Reference
	global bool
}

// Refs returns the references in a spec. If several fields refer to the same resource, it occurs once. namespace is the
// namespace of the referring resource.
func (d *Rows) Refs(namespace string, spec map[string]any) []ResourceRef {
	if len(d.references) == 0 {
		return nil
	}
	var out []ResourceRef
	seen := map[backend.Key]int{} // indexes in out
	for _, r := range d.references {
		d.Index(r.Path).walk(spec, 1, func(v any) {
			name, _ := v.(string)
			key := backend.Key{Kind: r.Kind, Namespace: namespace, Name: name}
			if r.global {
				key.Namespace = ""
			}
			at, known := seen[key]
			switch {
			case known:
				out[at].Guarded = out[at].Guarded || r.Guarded
			case name != "" && len(name) <= maxIndexBytes/2 && len(out) < backend.MaxRefs:
				seen[key] = len(out)
				out = append(out, ResourceRef{Key: key, Guarded: r.Guarded, Path: r.Path})
			}
		})
	}
	return out
}

// walk visits all values of the field in a tree, starting at a step of the field's path. For an object without the
// field, it visits the effective default.
func (i *indexed) walk(v any, step int, visit func(any)) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			i.walk(e, step, visit)
		}
		return
	}
	if step == len(i.steps) {
		visit(v)
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	next, ok := m[i.steps[step]]
	switch {
	case ok:
		i.walk(next, step+1, visit)
	case step == len(i.steps)-1 && i.Field.Default != nil:
		i.walk(i.Field.Default, step+1, visit)
	}
}

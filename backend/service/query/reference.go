package query

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Reference is one place in a resource that names another.
type Reference struct {
	// Reference is the declared one.
	descriptor.Reference
	// Key of the target, which may not exist.
	Key backend.Key
}

// References are those that a resource has by the declarations of its kind, in the
// order of the declarations and of the names, no two equal.
func (r *Reader) References(res *Resource) (out []Reference) {
	rel := relation{key: res.Stored.Key, body: res.Body, declared: r.declared[res.Stored.Kind]}
	for _, d := range rel.dependencies() {
		out = append(out, Reference{rel.declared[d.declared].Reference, d.Key})
	}
	return out
}

// declared is a reference that a kind declares.
type declared struct {
	descriptor.Reference
	// apiPath is the path in the names of the API.
	apiPath string
	steps   []string
	// to is the kind that is referred to, nil if it is not known.
	to *kind.Kind
	// otherwise is the effective value where the field is absent; empty for none.
	otherwise string
}

// declaredOf are the references of all kinds, by their names.
func declaredOf(kinds kind.Catalogue) map[string][]declared {
	out := map[string][]declared{}
	for _, k := range kinds.All() {
		for _, ref := range k.References {
			d := declared{Reference: ref, apiPath: k.APIPath(ref.Path), steps: strings.Split(ref.Path, ".")}
			d.to, _ = kinds.Find(ref.Kind)
			d.otherwise, _ = k.Rows.Index(ref.Path).Field.Default.(string)
			out[k.Name] = append(out[k.Name], d)
		}
	}
	return out
}

// target returns the key that a name means in a resource of a namespace.
func (d *declared) target(namespace, name string) backend.Key {
	if d.to != nil {
		namespace = d.to.NamespaceFrom(namespace)
	}
	return backend.Key{Kind: d.Kind, Namespace: namespace, Name: name}
}

// eachName visits the names that a reference has in a body.
func (d *declared) eachName(b *body.Body, visit func(name string)) {
	d.below(b, b.Shape, body.Root, func(name string) {
		if name != "" {
			visit(name)
		}
	}, d.steps)
}

// below visits those in an object, of which steps lead on.
func (d *declared) below(b *body.Body, shape *body.Shape, at body.Table, visit func(string), steps []string) {
	slot, ok := shape.Slot(steps[0])
	if !ok {
		return
	}
	f, span := &shape.Fields[slot], b.At(at, slot)
	switch last := len(steps) == 1; {
	case span.IsZero() && last:
		visit(d.otherwise)
	case span.IsZero():
	case last && f.List:
		for raw := range b.Scalars(span) {
			visit(body.Text(raw))
		}
	case last:
		visit(b.Text(span))
	case f.List:
		for _, e := range b.Objects(span) {
			d.below(b, f.Shape, e, visit, steps[1:])
		}
	default:
		d.below(b, f.Shape, b.Object(span), visit, steps[1:])
	}
}

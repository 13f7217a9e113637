package query

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Reference is one reference of a resource, with its target.
type Reference struct {
	// Reference is the declaration.
	descriptor.Reference
	// Key of the target, which may not exist.
	Key backend.Key
}

// References returns the references of a resource that its kind declares, in the order of
// the declarations and of the names, without duplicates.
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
	// apiPath is the path as the API names it.
	apiPath string
	// eachName calls visit with each target name that a body has for the reference.
	eachName func(b *body.Body, visit func(name string))
	// to is the kind that is referred to, nil if the catalogue does not have it.
	to *kind.Kind
}

// declaredOf returns the references of all kinds, by the kinds' names.
func declaredOf(kinds kind.Catalogue) map[string][]declared {
	out := map[string][]declared{}
	for _, k := range kinds.All() {
		for _, ref := range k.References {
			d := declared{Reference: ref, apiPath: k.APIPath(ref.Path), eachName: k.Rows.Index(ref.Path).Names}
			d.to, _ = kinds.Find(ref.Kind)
			out[k.Name] = append(out[k.Name], d)
		}
	}
	return out
}

// target returns the key of the target with a name, for a resource of a namespace.
func (d *declared) target(namespace, name string) backend.Key {
	if d.to != nil {
		namespace = d.to.NamespaceFrom(namespace)
	}
	return backend.Key{Kind: d.Kind, Namespace: namespace, Name: name}
}

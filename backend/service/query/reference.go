package query

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Reference is a reference from a resource to its target.
type Reference struct {
	// Reference is the declaration of the reference.
	descriptor.Reference
	// Key is the key of the target, which may not exist.
	Key backend.Key
}

// References returns the declared references of a resource, ordered by declaration and then by name, without
// duplicates.
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
	// apiPath is the path of the reference with the API names of its fields.
	apiPath string
	// eachName calls visit with the name of each target of the reference in a body.
	eachName func(b *body.Body, visit func(name string))
	// to is the kind of the targets; nil if the catalogue does not have it.
	to *kind.Kind
}

// declaredOf returns the declared references of all kinds, by the name of the kind.
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

// target returns the key of the target called name. namespace is the namespace of the referring resource.
func (d *declared) target(namespace, name string) backend.Key {
	if d.to != nil {
		namespace = d.to.NamespaceFrom(namespace)
	}
	return backend.Key{Kind: d.Kind, Namespace: namespace, Name: name}
}

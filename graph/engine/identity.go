package engine

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// naming are the arguments that identify a resource: id, or namespace and name.
type naming struct {
	values map[string]any
	// namespaced reports whether the caller has sent the namespace, so that it is not a default.
	namespaced bool
	// at is the path of the input object that contains the values; nil if the values are arguments.
	at *failure.Path
}

// refuse returns BAD_USER_INPUT for the value with a name, or for all of them if name is empty.
func (n naming) refuse(name, format string, args ...any) error {
	at := n.at
	if name != "" {
		at = at.Name(name)
	}
	return refuseAt(at, failure.BadInput("", format, args...))
}

// identity returns the identity of the resource that the arguments of a field select. The inputs of create and upsert
// have no id.
func (r *run) identity(f *field, n naming) (kind.Identity, error) {
	id := kind.Identity{
		Kind:      value[string](n.values, "kind"),
		Namespace: optional[string](n.values, "namespace"),
		Name:      value[string](n.values, "name"),
	}
	if f.kind != nil {
		id.Kind = f.kind.Name
	}
	switch {
	case n.values["id"] == nil && n.values["name"] != nil:
		return id, nil
	case n.values["id"] == nil:
		return id, n.refuse("", "no resource is named: give id, or name")
	}
	if err := n.idAlone(); err != nil {
		return id, err
	}
	if f.kind == nil {
		k, err := r.engine.svc.Kind(id.Kind)
		if err != nil {
			return id, err
		}
		id.Kind = k.Name
	}
	key, err := r.key(n, id.Kind)
	if err != nil {
		return id, err
	}
	id.Namespace, id.Name = namespaceOf(key), key.Name
	return id, nil
}

// idAlone returns an error if the caller has sent a name or a namespace in addition to the id.
func (n naming) idAlone() error {
	switch {
	case n.values["name"] != nil:
		return n.refuse("", "id and name exclude each other; give one of them")
	case n.namespaced:
		return n.refuse("namespace", "the id says which namespace it is; leave namespace out")
	}
	return nil
}

// key returns the key in the id. If kindName is not empty, the key must have that kind.
func (r *run) key(n naming, kindName string) (backend.Key, error) {
	key, err := r.engine.svc.KeyOf(value[string](n.values, "id"))
	switch {
	case err != nil:
		return key, n.refuse("id", "%s", err)
	case kindName != "" && key.Kind != kindName:
		return key, n.refuse(
			"id",
			"the id is that of a resource of kind %s, not of kind %s",
			failure.Shorten(key.Kind),
			kindName,
		)
	}
	return key, nil
}

func namespaceOf(key backend.Key) *string {
	if key.Namespace == "" {
		return nil
	}
	return &key.Namespace
}

// followed restricts a stream to the resource with the id in the arguments. It returns an error if the arguments have a
// name, a namespace or kinds as well.
func (r *run) followed(f *field, args map[string]any, req *change.Request) error {
	n, of := naming{values: args, namespaced: req.Namespace != nil}, ""
	switch {
	case f.kind != nil:
		of = f.kind.Name
	case len(req.Kinds) > 0:
		return n.refuse("kinds", "the id says which kind it is; leave kinds out")
	}
	if err := n.idAlone(); err != nil {
		return err
	}
	key, err := r.key(n, of)
	if err != nil {
		return err
	}
	req.Kinds = []string{key.Kind}
	req.Namespace = namespaceOf(key)
	req.Name = &key.Name
	return nil
}

// given reports whether the caller has sent a value other than null for an argument.
func (r *run) given(f *field, name string) bool {
	a := f.node.Arguments.ForName(name)
	if a == nil {
		return false
	}
	if a.Value.Kind == ast.Variable {
		return r.oc.Variables[a.Value.Raw] != nil
	}
	return a.Value.Kind != ast.NullValue
}

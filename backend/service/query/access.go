package query

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// AccessTarget is a target of access rights. If all fields are set, it is a resource. Without Name it is any resource
// of a namespace, without Name and Namespace any resource of a kind. If no field is set, it is no particular kind.
type AccessTarget struct{ Kind, Namespace, Name *string }

// target resolves a target. The kind is nil if the target has none. The key has only the parts that the target has.
func (r *Reader) target(t AccessTarget) (*kind.Kind, backend.Key, error) {
	switch {
	case t.Kind == nil && t.Namespace != nil:
		return nil, backend.Key{}, failure.BadInput("namespace", "namespace goes with kind; give both, or neither")
	case t.Kind == nil && t.Name != nil:
		return nil, backend.Key{}, failure.BadInput("name", "name goes with kind; give both, or neither")
	case t.Kind == nil:
		return nil, backend.Key{}, nil
	case t.Name != nil:
		return r.kinds.Resolve(kind.Identity{Kind: *t.Kind, Namespace: t.Namespace, Name: *t.Name})
	}
	k, err := r.kinds.Find(*t.Kind)
	if err != nil {
		return nil, backend.Key{}, err
	}
	key := backend.Key{Kind: k.Name}
	if t.Namespace == nil {
		return k, key, nil
	}
	if k.Scope == descriptor.Global {
		return nil, key, failure.BadInput(
			"metadata.namespace", "kind %s is GLOBAL: its resources have no namespace", k.Name,
		).At(key)
	}
	var v kind.Violations
	v.Namespace(failure.At("metadata").Name("namespace"), *t.Namespace)
	key.Namespace = *t.Namespace
	return k, key, v.Err(key)
}

// Allowed returns the verbs that the caller may use on a target, in the order of [access.Verbs]. The result depends
// only on the policy and not on whether the resource exists.
func (r *Reader) Allowed(ctx context.Context, t AccessTarget) ([]descriptor.Verb, error) {
	k, key, err := r.target(t)
	if err != nil {
		return nil, err
	}
	rights, err := r.Rights(ctx)
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		return slices.DeleteFunc(access.OfNoKind(), func(v descriptor.Verb) bool { return !rights.May(v) }), nil
	case key.Name != "":
		return rights.Verbs(k.Kind, key), nil
	case key.Namespace != "":
		return rights.VerbsIn(k.Kind, key.Namespace), nil
	}
	return rights.UsableVerbs(k.Kind), nil
}

// Grant is an [access.Grant] without the parts that the caller may not see.
type Grant struct {
	access.Grant
	// RuleHidden is set if the caller may not see the role. Rule is then 0.
	RuleHidden bool
}

// Grants returns the rules by which users and groups have a verb on a target. It considers only bindings that the
// caller may GET. A caller who may do everything also gets the administrators of the configuration. The result is empty
// if access control is off.
func (r *Reader) Grants(ctx context.Context, v descriptor.Verb, t AccessTarget) ([]Grant, error) {
	k, key, err := r.target(t)
	if err != nil {
		return nil, err
	}
	ofNone := slices.Contains(access.OfNoKind(), v)
	switch {
	case k == nil && !ofNone:
		return nil, failure.BadInput("kind", "%s is used on resources; give a kind", v)
	case k != nil && ofNone:
		return nil, failure.BadInput("kind", "%s is of no kind; leave kind out", v)
	}
	rights, err := r.Rights(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := r.Policy(ctx)
	if err != nil || policy == nil {
		return nil, err
	}
	var of *descriptor.Kind
	if k != nil {
		of = k.Kind
		if err := access.Offers(of, v); err != nil {
			return nil, failure.About(err, "verb")
		}
	}
	roles, err := r.kinds.Find(access.RoleKind)
	if err != nil {
		return nil, err
	}
	bindings, err := r.kinds.Find(access.BindingKind)
	if err != nil {
		return nil, err
	}
	shown := policy.Bindings(rights.Scope(bindings.Kind, descriptor.VerbGet))
	if err := budget.From(ctx).Spend(budget.Steps, budget.Scan+budget.Binding*len(shown)); err != nil {
		return nil, err
	}
	grants := policy.Grants(shown, v, of, key.Namespace, key.Name)
	if rights.All() {
		grants = append(policy.Administrators(), grants...)
	}
	var out []Grant
	for _, g := range grants {
		_, builtIn := access.BuiltIn(nil)[g.Role]
		out = append(out, Grant{g, !builtIn && !rights.Sees(roles.Kind, backend.Key{Kind: roles.Name, Name: g.Role})})
	}
	return out, nil
}

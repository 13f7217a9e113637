package resolvers

import (
	"context"
	"errors"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/core"
)

// Reveal resolves Query.reveal. It always reads the values from the service. No loader, index or
// cache has them.
func (r queryResolver) Reveal(
	ctx context.Context, kindName string, id, namespace, name *string,
) (*core.RevealedValues, error) {
	at := kind.Identity{Kind: kindName, Namespace: namespace}
	switch {
	case id == nil && name == nil:
		return nil, failure.BadInput("", "no resource is named: give id, or name")
	case id != nil && name != nil:
		return nil, failure.BadInput("", "id and name exclude each other; give one of them")
	case id != nil && namespace != nil:
		return nil, failure.BadInput("namespace", "the id says which namespace it is; leave namespace out")
	case name != nil:
		at.Name = *name
	default:
		if err := r.locate(&at, *id); err != nil {
			return nil, err
		}
	}
	revealed, err := r.service.Reveal(ctx, at)
	if err != nil || revealed == nil {
		return nil, each(ctx, err)
	}
	key := revealed.Resource.Key
	out := &core.RevealedValues{
		ResourceID: kind.GlobalID(key), Kind: key.Kind, Namespace: nonempty(key.Namespace), Name: key.Name,
		UID: revealed.Resource.UID, Revision: revealed.Resource.Revision.String(),
	}
	out.Values = make([]*core.RevealedValue, len(revealed.Values))
	for i, v := range revealed.Values {
		e := &core.RevealedValue{
			Path: v.Path.Text(failure.APINames), Key: v.Key, Value: v.Value, Encoding: core.RevealedEncodingPlain,
		}
		if v.Base64 {
			e.Encoding = core.RevealedEncodingBase64
		}
		if text, ok := v.Text(); ok {
			e.Text = &text
		}
		out.Values[i] = e
	}
	return out, nil
}

// each adds to the answer all errors that are joined in err, except the last one, which it returns.
func each(ctx context.Context, err error) error {
	var e *failure.Error
	if !errors.As(err, &e) {
		return err
	}
	parts := e.Split()
	last := len(parts) - 1
	for i, e := range parts {
		e.Path = strings.TrimPrefix(e.Path, "metadata.")
		if i < last {
			graphql.AddError(ctx, e)
		}
	}
	return parts[last]
}

// locate sets the namespace and the name from an id. It returns an error unless the id belongs to a
// resource of the kind.
func (r queryResolver) locate(at *kind.Identity, id string) error {
	key, err := r.service.KeyOf(id)
	if err != nil {
		return err
	}
	if k, err := r.service.Kind(at.Kind); err == nil && k.Name != key.Kind { // the service refuses an unknown kind
		return failure.BadInput("id", "the id is that of a resource of kind %s, not of kind %s", key.Kind, k.Name)
	}
	at.Name = key.Name
	if key.Namespace != "" {
		at.Namespace = &key.Namespace
	}
	return nil
}

package resolvers

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/core"
)

// Access resolves Query.access.
func (r queryResolver) Access(ctx context.Context, kind, namespace, name *string) ([]descriptor.Verb, error) {
	verbs, err := r.service.Reader.Allowed(ctx, query.AccessTarget{Kind: kind, Namespace: namespace, Name: name})
	if err != nil {
		return nil, each(ctx, err)
	}
	return listed(verbs), nil
}

// Allowed resolves Kind.allowed.
func (r kindResolver) Allowed(ctx context.Context, k *descriptor.Kind) ([]descriptor.Verb, error) {
	rights, err := r.service.Reader.Rights(ctx)
	if err != nil {
		return nil, err
	}
	return listed(rights.UsableVerbs(k)), nil
}

// AccessGrants resolves Query.accessGrants.
func (r queryResolver) AccessGrants(
	ctx context.Context, verb descriptor.Verb, kind, namespace, name *string,
) ([]*core.AccessGrant, error) {
	grants, err := r.service.Reader.Grants(ctx, verb, query.AccessTarget{Kind: kind, Namespace: namespace, Name: name})
	if err != nil {
		return nil, each(ctx, err)
	}
	out := make([]*core.AccessGrant, len(grants))
	for i, g := range grants {
		out[i] = &core.AccessGrant{
			Binding: nonempty(g.Binding),
			Role:    nonempty(g.Role),
			Users:   listed(g.Users),
			Groups:  listed(g.Groups),
		}
		if g.Binding != "" && !g.RuleHidden {
			out[i].Rule = count(&g.Rule)
		}
	}
	return out, nil
}

// listed returns a copy of a list. It returns an empty list for nil, which would be null in the answer.
func listed[T any](list []T) []T { return append([]T{}, list...) }

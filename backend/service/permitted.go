package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// authorize returns the caller's rights if they allow a verb on a resource.
func (s *Service) authorize(ctx context.Context, k *kind.Kind, v descriptor.Verb, key backend.Key) (*access.Rights, error) {
	rights, err := s.RightsToWrite(ctx)
	if err == nil {
		err = rights.Authorize(k.Kind, v, key)
	}
	return rights, err
}

// permit refuses a state that its author may not store: roles and bindings that give rights which the author does
// not have, and new references to resources of sensitive kinds that the author may not see.
func (s *Service) permit(ctx context.Context, in *intent, w *stateWrite, next *kind.State) error {
	if !w.SpecChanged {
		return nil
	}
	if in.kind.Name == access.RoleKind || in.kind.Name == access.BindingKind {
		if err := s.permitRights(ctx, in, next); err != nil {
			return err
		}
	}
	if in.rights.All() {
		return nil
	}
	var before []kind.Ref
	for _, ref := range in.kind.Rows.Refs(in.key.Namespace, next.Spec) {
		to, err := s.kinds.Find(ref.Key.Kind)
		if err != nil || !to.Sensitive || in.rights.Sees(to.Kind, ref.Key) {
			continue
		}
		if before == nil && w.Was != nil {
			before = in.kind.Rows.Refs(in.key.Namespace, w.Was.Spec)
		}
		if slices.ContainsFunc(before, func(old kind.Ref) bool { return old.Key == ref.Key }) {
			continue
		}
		path := in.kind.APIPath(ref.Path)
		refused := &failure.Error{Code: failure.CodeForbidden, Message: fmt.Sprintf("%s: kind %s is sensitive, and a new reference to %q needs the verb GET on it", path, to.Name, failure.Shorten(ref.Key.Name))}
		refused = refused.At(in.key)
		refused.Path = path
		return refused
	}
	return nil
}

// permitRights refuses a role or a binding that gives more than its author has.
func (s *Service) permitRights(ctx context.Context, in *intent, next *kind.State) error {
	policy, err := s.Policy(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"spec": next.Spec})
	if err != nil {
		return failure.Of(err, in.key)
	}
	return policy.MayStore(in.rights, in.kind.Kind, in.key.Name, body)
}

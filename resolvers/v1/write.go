package resolvers

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/loader"
	"github.com/sluicegw/sluice/graph/v1/model"
)

func (r *Resolver) create(ctx context.Context, mutationID *string, req service.CreateRequest) (*service.Written, error) {
	return write(ctx, mutationID, req, r.service.Create)
}

func (r *Resolver) update(ctx context.Context, mutationID *string, req service.UpdateRequest) (*service.Written, error) {
	return write(ctx, mutationID, req, r.service.Update)
}

// patch refuses a spec that is null: what is left out stays as it is, and a
// spec cannot be cleared.
func (r *Resolver) patch(ctx context.Context, mutationID *string, null bool, req service.PatchRequest) (*service.Written, error) {
	if null {
		return nil, &service.Error{Code: service.CodeBadUserInput, Path: "spec", Kind: req.Kind, Message: "spec: null clears nothing; leave it out, or name what changes"}
	}
	return write(ctx, mutationID, req, r.service.Patch)
}

func (r *Resolver) upsert(ctx context.Context, mutationID *string, req service.UpsertRequest) (*service.Written, error) {
	return write(ctx, mutationID, req, r.service.Upsert)
}

func (r *Resolver) updateStatus(ctx context.Context, mutationID *string, req service.StatusRequest) (*service.Written, error) {
	return write(ctx, mutationID, req, r.service.UpdateStatus)
}

func (r *Resolver) delete(ctx context.Context, mutationID *string, req service.DeleteRequest) (*service.Written, error) {
	return write(ctx, mutationID, req, r.service.Delete)
}

func (r *Resolver) apply(ctx context.Context, input model.ApplyManifestInput) (*model.ApplyManifestPayload, error) {
	w, err := write(ctx, input.ClientMutationID, service.ApplyRequest{
		Manifest: input.Manifest, Namespace: input.Namespace, ExpectedRevision: input.ExpectedRevision,
		CreateOnly: input.CreateOnly != nil && *input.CreateOnly,
		DryRun:     input.DryRun != nil && *input.DryRun,
	}, r.service.Apply)
	if err != nil {
		return nil, err
	}
	return &model.ApplyManifestPayload{
		ClientMutationID: input.ClientMutationID, Resource: written[backend.Object](w), Outcome: w.Outcome, Warnings: warnings(w),
	}, nil
}

// write does one mutation.
func write[Request any](
	ctx context.Context, mutationID *string, req Request,
	do func(context.Context, service.Caller, Request) (*service.Written, error),
) (*service.Written, error) {
	if err := checkMutationID(mutationID); err != nil {
		return nil, err
	}
	defer loader.Clear(ctx) // what follows sees the write
	w, err := do(ctx, caller(ctx), req)
	if err != nil {
		return nil, fail(ctx, err)
	}
	return w, nil
}

// written is the resource that a mutation left behind, zero if there is none to show.
func written[T backend.Object](w *service.Written) T {
	if w.Resource == nil {
		var none T
		return none
	}
	return as[T](w.Resource.Object)
}

// deletedID is the global id of what a mutation removed.
func deletedID(w *service.Written) *string {
	if w.Resource == nil {
		return nil
	}
	return new(service.GlobalID(w.Resource.Stored.Key))
}

// warnings are never null.
func warnings(w *service.Written) []string {
	if w.Warnings == nil {
		return []string{}
	}
	return w.Warnings
}

// metadata tells what a caller left out from what it clears.
func metadata(
	labels graphql.Omittable[[]*backend.Label], annotations graphql.Omittable[[]*backend.Annotation], description graphql.Omittable[*string],
) service.Metadata {
	m := service.Metadata{
		Labels:      service.Optional[[]backend.Label]{Set: labels.IsSet(), Value: values(labels.Value())},
		Annotations: service.Optional[[]backend.Annotation]{Set: annotations.IsSet(), Value: values(annotations.Value())},
	}
	m.Description.Set = description.IsSet()
	if text := description.Value(); text != nil {
		m.Description.Value = *text
	}
	return m
}

// expiring adds when the resource goes away.
func expiring(m service.Metadata, at graphql.Omittable[*time.Time]) service.Metadata {
	m.ExpiresAt.Set = at.IsSet()
	if t := at.Value(); t != nil {
		m.ExpiresAt.Value = *t
	}
	return m
}

// text is a text that may be left out.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func values[T any](in []*T) []T {
	out := make([]T, len(in))
	for i, v := range in {
		out[i] = *v
	}
	return out
}

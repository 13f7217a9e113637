package resolvers

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/core"
)

// fieldsOf returns all fields of a kind. Each object is followed by its own fields.
func fieldsOf(k *descriptor.Kind) []*core.KindField {
	out := shapeFields(nil, k, "spec", k.Spec)
	return shapeFields(out, k, "status", k.Status)
}

func shapeFields(out []*core.KindField, k *descriptor.Kind, path string, s *descriptor.Shape) []*core.KindField {
	if s == nil {
		return out
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		at := path + "." + f.Name
		out = append(out, fieldOf(k, at, f))
		if mergeInto := s.Field(f.MergeInto); mergeInto != nil {
			out[len(out)-1].MergeInto = nonempty(mergeInto.InAPI())
		}
		out = shapeFields(out, k, at, f.Shape)
	}
	return out
}

// fieldOf returns the field f, whose path in stored names is path.
func fieldOf(k *descriptor.Kind, path string, f *descriptor.Field) *core.KindField {
	out := &core.KindField{
		Path:              k.APIPath(path),
		StoredPath:        path,
		Name:              f.InAPI(),
		Type:              string(f.Type),
		Description:       f.Description,
		Required:          f.Required,
		List:              f.List,
		Keys:              keysOf(f),
		Limits:            limitsOf(f),
		EnumValues:        []*core.KindEnumValue{},
		Immutable:         f.Immutable,
		WriteOnly:         f.WriteOnly,
		ManifestAt:        nonempty(f.ManifestAt),
		Default:           f.Default,
		DeprecationReason: nonempty(f.Deprecated),
	}
	if f.ListType != "" {
		out.ListType = &f.ListType
	}
	switch {
	case f.Type == descriptor.TypeMap:
		out.Type = "MapEntry"
	case f.Enum != nil:
		out.Type = f.Enum.Name
		for _, v := range f.Enum.Values {
			out.EnumValues = append(out.EnumValues, &core.KindEnumValue{
				Name:        v.Name,
				Stored:      v.Stored,
				Description: v.Description,
			})
		}
	case f.Shape != nil:
		out.Type = f.Shape.Name
	}
	return out
}

// keysOf returns the API names of the keys of a MAP's elements.
func keysOf(f *descriptor.Field) []string {
	out := make([]string, len(f.Keys))
	for i, key := range f.Keys {
		out[i] = f.Shape.Field(key).InAPI()
	}
	return out
}

func limitsOf(f *descriptor.Field) *core.KindFieldLimits {
	c := f.Constraint
	out := &core.KindFieldLimits{
		MinLength:    count(c.MinLength),
		MaxLength:    count(c.MaxLength),
		Pattern:      nonempty(c.Pattern),
		Format:       nonempty(string(c.Format)),
		Min:          c.Min,
		Max:          c.Max,
		In:           c.In,
		MinItems:     count(c.MinItems),
		MaxItems:     count(c.MaxItems),
		Unique:       c.Unique || f.ListType == descriptor.ListSet,
		KeyMinLength: count(c.KeyMinLength),
		KeyMaxLength: count(c.KeyMaxLength),
		KeyPattern:   nonempty(c.KeyPattern),
	}
	if s := f.Shape; s != nil {
		out.MinProperties, out.MaxProperties = positive(s.MinProperties), positive(s.MaxProperties)
	}
	return out
}

func count(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

func positive(n int) *int32 {
	if n == 0 {
		return nil
	}
	return count(&n)
}

// queryResolver and kindResolver resolve the fields of Query and Kind. gqlgen requires these names.
type (
	queryResolver struct{ *Resolver }
	kindResolver  struct{ *Resolver }
)

// Query implements [core.ResolverRoot].
func (r *Resolver) Query() core.QueryResolver { return queryResolver{r} }

// Kind implements [core.ResolverRoot].
func (r *Resolver) Kind() core.KindResolver { return kindResolver{r} }

// Kinds resolves Query.kinds.
func (r queryResolver) Kinds(context.Context) ([]*descriptor.Kind, error) {
	return r.service.Kinds(), nil
}

// Fields resolves Kind.fields.
func (r kindResolver) Fields(_ context.Context, k *descriptor.Kind) ([]*core.KindField, error) {
	return r.fields()[k.Name], nil
}

// FilterableFields resolves Kind.filterableFields.
func (r kindResolver) FilterableFields(_ context.Context, k *descriptor.Kind) ([]*descriptor.FilterableField, error) {
	out := make([]*descriptor.FilterableField, len(k.FilterableFields))
	for i, f := range k.FilterableFields {
		f.Path = k.APIPath(f.Path)
		out[i] = &f
	}
	return out, nil
}

// Columns resolves Kind.columns.
func (r kindResolver) Columns(_ context.Context, k *descriptor.Kind) ([]*descriptor.Column, error) {
	out := make([]*descriptor.Column, len(k.Columns))
	for i, c := range k.Columns {
		c.Path = k.APIPath(c.Path)
		out[i] = &c
	}
	return out, nil
}

// Controlled resolves Kind.controlled.
func (r kindResolver) Controlled(ctx context.Context, k *descriptor.Kind) (*bool, error) {
	yes, err := r.service.Controlled(ctx, k.Name)
	if err != nil {
		return nil, err
	}
	return &yes, nil
}

// Rebinding resolves Kind.rebinding.
func (r kindResolver) Rebinding(ctx context.Context, k *descriptor.Kind) (*bool, error) {
	yes, err := r.service.Rebinding(ctx, k.Name)
	if err != nil {
		return nil, err
	}
	return &yes, nil
}

// StoredBytes resolves Kind.storedBytes.
func (r kindResolver) StoredBytes(ctx context.Context, k *descriptor.Kind) (*int64, error) {
	bytes, known, err := r.service.Reader.StoredBytes(ctx, k.Name)
	if err != nil || !known {
		return nil, err
	}
	return &bytes, nil
}

// ReadOnly resolves Kind.readOnly.
func (r kindResolver) ReadOnly(context.Context, *descriptor.Kind) (bool, error) {
	return r.service.ReadOnly(), nil
}

// stateContradicted is the state of a kind whose SDL contradicts what the service says about the
// kind.
const stateContradicted = "CONTRADICTED"

// Service resolves Kind.service.
func (r kindResolver) Service(_ context.Context, k *descriptor.Kind) (*core.KindService, error) {
	if k.Service == "" {
		return nil, nil
	}
	for _, owner := range r.service.Owners() {
		for _, owned := range owner.Kinds {
			if owned.Name != k.Name {
				continue
			}
			out := &core.KindService{
				Name:       owner.Name,
				State:      string(owner.State),
				LagSeconds: owner.Lag.Seconds(),
				Followed:   owned.Followed,
			}
			if owned.Problem != "" {
				out.State = stateContradicted
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("kind %s: its service %q has no state", k.Name, k.Service)
}

// Review resolves Kind.review.
func (r kindResolver) Review(_ context.Context, k *descriptor.Kind) (*core.KindReview, error) {
	if k.Review == "" {
		return nil, nil
	}
	state := r.service.Reviewer(k.Review)
	return &core.KindReview{Name: state.Name, State: string(state.State)}, nil
}

// mutationResolver resolves the fields of Mutation. gqlgen requires this name.
type mutationResolver struct{ *Resolver }

// Mutation implements [core.ResolverRoot].
func (r *Resolver) Mutation() core.MutationResolver { return mutationResolver{r} }

// maxMutationID is the maximum length of clientMutationId, in characters.
const maxMutationID = 128

// UpdateKind resolves Mutation.updateKind.
func (r mutationResolver) UpdateKind(ctx context.Context, in core.UpdateKindInput) (*core.UpdateKindPayload, error) {
	if in.ClientMutationID != nil && utf8.RuneCountInString(*in.ClientMutationID) > maxMutationID {
		return nil, &failure.Error{
			Code: failure.CodeValidationFailed, Path: "input.clientMutationId", Rule: "maxLength", Limit: maxMutationID,
			Message: fmt.Sprintf("clientMutationId: must have at most %d characters", maxMutationID),
		}
	}
	err := r.service.Writer.SetControlled(ctx, in.Kind, in.Controlled)
	if err != nil {
		return nil, failure.Within(err, "input")
	}
	k, err := r.service.Kind(in.Kind)
	return &core.UpdateKindPayload{ClientMutationID: in.ClientMutationID, Kind: k}, err
}

// References resolves Kind.references.
func (kindResolver) References(_ context.Context, k *descriptor.Kind) ([]*core.KindReference, error) {
	out := make([]*core.KindReference, len(k.References))
	for i, r := range k.References {
		out[i] = &core.KindReference{
			Path:    k.APIPath(r.Path),
			Kind:    r.Kind,
			Field:   r.Field,
			Inverse: nonempty(r.Inverse),
			Guarded: r.Guarded,
		}
	}
	return out, nil
}

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/coercion"
)

// Ref is a resource that a hand-written resolver returns as the value of a kind, or of an interface of kinds. In the
// schema of the core such a type is a scalar; the engine reads the links of the resource and writes the selected
// fields.
type Ref struct {
	resource *query.Resource
	key      backend.Key
}

// RefTo returns a reference to a resource that the resolver has read.
func RefTo(r *query.Resource) *Ref {
	if r == nil {
		return nil
	}
	return &Ref{resource: r}
}

// RefByKey returns a reference to a resource that the engine will read, together with others of the answer. If the
// resource does not exist, the value is null.
func RefByKey(key backend.Key) *Ref { return &Ref{key: key} }

// PageRef is a page of resources that a hand-written resolver returns.
type PageRef struct{ page *query.Page }

// RefToPage returns a reference to a page that the resolver has read.
func RefToPage(p *query.Page) *PageRef {
	if p == nil {
		return nil
	}
	return &PageRef{page: p}
}

// Input is an argument of a hand-written resolver whose type is derived from a kind, such as a filter.
type Input struct {
	value any
	// path is the path of the value in the request, for use in errors.
	path ast.Path
}

// Coerce coerces the input to the type named typ, and returns it as the service takes it: as JSON with stored names.
// ctx must be the context of a resolver. A nil input stays nil.
func (in *Input) Coerce(ctx context.Context, typ string) (any, error) {
	m := placeholdersFrom(ctx)
	if m == nil {
		return nil, errors.New("engine: the context is not that of a resolver")
	}
	def := m.engine.schema.Types[typ]
	if def == nil || def.Kind != ast.InputObject && def.Kind != ast.Enum {
		return nil, fmt.Errorf("engine: type %s is no input and no enum of the API", typ)
	}
	if in == nil {
		return nil, nil
	}
	tree, err := jsonTree(in.value)
	if err != nil {
		return nil, err
	}
	t := ast.NamedType(typ, nil)
	coerced, refusal := coercion.Coercer{Schema: m.engine.schema}.Value(t, tree)
	if refusal != nil {
		refusal.Err = &coercion.InputError{Message: refusal.Message}
		refusal.Path = append(slices.Clip(in.path), refusal.Path...)
		return nil, refusal
	}
	out, err := m.engine.stored(t, coerced, nil)
	var refused *argumentError
	if errors.As(err, &refused) {
		return nil, &gqlerror.Error{
			Err:     refused.err,
			Message: refused.Error(),
			Path:    append(slices.Clip(in.path), coercion.ErrorPath(refused.path)...),
		}
	}
	return out, err
}

// jsonTree returns a value as a tree of JSON. The value can contain literals as gqlparser reads them.
func jsonTree(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&out)
	return out, err
}

// UnmarshalGQLContext implements [graphql.ContextUnmarshaler].
func (in *Input) UnmarshalGQLContext(ctx context.Context, v any) error {
	in.value, in.path = v, graphql.GetPath(ctx)
	return nil
}

// MarshalGQLContext implements [graphql.ContextMarshaler]. It returns an error: an input cannot be part of an answer.
func (Input) MarshalGQLContext(context.Context, io.Writer) error {
	return errors.New("engine: an input is no value of an answer")
}

// MarshalGQLContext implements [graphql.ContextMarshaler]. It writes a placeholder.
func (v Ref) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return writePlaceholder(ctx, w, placeholder{ref: &v})
}

// UnmarshalGQLContext implements [graphql.ContextUnmarshaler]. It returns an error: a resource cannot be an argument.
func (*Ref) UnmarshalGQLContext(context.Context, any) error {
	return errors.New("engine: a resource is no input")
}

// MarshalGQLContext implements [graphql.ContextMarshaler]. It writes a placeholder.
func (v PageRef) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return writePlaceholder(ctx, w, placeholder{page: v.page})
}

// UnmarshalGQLContext implements [graphql.ContextUnmarshaler]. It returns an error: a page cannot be an argument.
func (*PageRef) UnmarshalGQLContext(context.Context, any) error {
	return errors.New("engine: a page is no input")
}

// These types implement gqlgen's interfaces.
var (
	_ graphql.ContextMarshaler   = (*Ref)(nil)
	_ graphql.ContextUnmarshaler = (*Ref)(nil)
	_ graphql.ContextMarshaler   = (*PageRef)(nil)
	_ graphql.ContextUnmarshaler = (*PageRef)(nil)
	_ graphql.ContextMarshaler   = Input{}
	_ graphql.ContextUnmarshaler = (*Input)(nil)
)

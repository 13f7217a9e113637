package engine

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
)

// Ref is a resource that a resolver written by hand returns, as the value of a
// kind or of an interface of kinds. In the schema of the core such a type is a
// scalar: the resolver says which resource it is, and the engine reads its links
// and writes what is selected of it.
type Ref struct {
	resource *service.Resource
	key      backend.Key
}

// RefTo is a resource that was read.
func RefTo(r *service.Resource) *Ref {
	if r == nil {
		return nil
	}
	return &Ref{resource: r}
}

// RefByKey is a resource that the engine is to read, together with all others
// of the answer. If there is none, it is null.
func RefByKey(key backend.Key) *Ref { return &Ref{key: key} }

// PageRef is a page of a connection that a resolver written by hand returns.
type PageRef struct{ page *service.Page }

// RefToPage is a page that was read.
func RefToPage(p *service.Page) *PageRef {
	if p == nil {
		return nil
	}
	return &PageRef{page: p}
}

// Input is an argument of a resolver written by hand whose type is an input or
// an enum that is derived from a kind, such as a filter.
type Input struct{ value any }

// Coerce reads the input as its type says, into the tree of JSON that the
// service takes. It must be called with the context of a resolver.
func (in *Input) Coerce(ctx context.Context, typ string) (any, error) {
	m := marksFrom(ctx)
	if m == nil {
		return nil, errors.New("engine: the context is not that of a resolver")
	}
	if in == nil {
		return nil, nil
	}
	return m.engine.coerceNamed(typ, in.value, nil)
}

// UnmarshalGQLContext is part of gqlgen's contract.
func (in *Input) UnmarshalGQLContext(_ context.Context, v any) error {
	in.value = v
	return nil
}

// MarshalGQLContext is part of gqlgen's contract; an input is never written.
func (*Input) MarshalGQLContext(context.Context, io.Writer) error {
	return errors.New("engine: an input is no value of an answer")
}

type marksKey struct{}

func marksFrom(ctx context.Context) *marks {
	m, _ := ctx.Value(marksKey{}).(*marks)
	return m
}

// marks are the values of an operation that the core leaves to the engine.
type marks struct {
	engine *Engine
	mu     sync.Mutex // guards list
	list   []mark
}

type mark struct {
	ref  *Ref
	page *service.Page
	// item and made are what the run makes of them.
	item *item
	made *page
}

// markBegin begins a mark in the core's answer: {"$":3}. Nothing else there
// looks like it: in texts quotes are escaped, and no field is named $.
const markBegin = `{"$":`

// leave writes a mark in the place of a value.
func leave(ctx context.Context, w io.Writer, v mark) error {
	m := marksFrom(ctx)
	if m == nil {
		return errors.New("engine: a reference outside an operation of the engine")
	}
	m.mu.Lock()
	n := len(m.list)
	m.list = append(m.list, v)
	m.mu.Unlock()
	_, err := io.WriteString(w, markBegin+strconv.Itoa(n)+"}")
	return err
}

// MarshalGQLContext leaves a mark.
func (v Ref) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return leave(ctx, w, mark{ref: &v})
}

// UnmarshalGQLContext is part of gqlgen's contract; a resource is no input.
func (*Ref) UnmarshalGQLContext(context.Context, any) error {
	return errors.New("engine: a resource is no input")
}

// MarshalGQLContext leaves a mark.
func (v PageRef) MarshalGQLContext(ctx context.Context, w io.Writer) error {
	return leave(ctx, w, mark{page: v.page})
}

// UnmarshalGQLContext is part of gqlgen's contract; a page is no input.
func (*PageRef) UnmarshalGQLContext(context.Context, any) error {
	return errors.New("engine: a page is no input")
}

// The contracts of gqlgen that bind these types.
var (
	_ graphql.ContextMarshaler   = (*Ref)(nil)
	_ graphql.ContextUnmarshaler = (*Ref)(nil)
	_ graphql.ContextMarshaler   = (*PageRef)(nil)
	_ graphql.ContextUnmarshaler = (*PageRef)(nil)
	_ graphql.ContextUnmarshaler = (*Input)(nil)
)

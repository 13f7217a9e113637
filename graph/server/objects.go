package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service"
)

// objectLimit refuses an operation whose connections could return too many
// resources. A page within a page multiplies.
type objectLimit struct{ most int }

var _ interface {
	graphql.OperationContextMutator
	graphql.HandlerExtension
} = objectLimit{}

// ExtensionName is the name in gqlgen's errors.
func (objectLimit) ExtensionName() string { return "ObjectLimit" }

// Validate accepts every schema.
func (objectLimit) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext judges a valid operation with its variables.
func (l objectLimit) MutateOperationContext(_ context.Context, oc *graphql.OperationContext) *gqlerror.Error {
	if l.objects(oc, oc.Operation.SelectionSet) <= l.most {
		return nil
	}
	err := exceeded("resources in its pages", "limit-objects", l.most)
	err.Message += "; ask for smaller pages"
	return err
}

// objects is the most resources that a selection set returns, up to one more than the limit.
func (l objectLimit) objects(oc *graphql.OperationContext, set ast.SelectionSet) int {
	n := 0
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			inner := l.objects(oc, sel.SelectionSet)
			if page, ok := pageOf(sel, oc.Variables); ok {
				inner = min(page, l.most+1) * (1 + inner)
			}
			n += inner
		case *ast.InlineFragment:
			n += l.objects(oc, sel.SelectionSet)
		case *ast.FragmentSpread:
			n += l.objects(oc, sel.Definition.SelectionSet)
		}
		if n > l.most {
			return l.most + 1
		}
	}
	return n
}

// pageOf is how many resources a field returns, if it is a connection or a list of nodes.
func pageOf(f *ast.Field, variables map[string]any) (int, bool) {
	if f.Definition == nil || f.Definition.Type == nil {
		return 0, false
	}
	if f.Definition.Arguments.ForName("ids") != nil {
		ids, _ := argument(f, "ids", variables).([]any)
		return len(ids), true
	}
	if !strings.HasSuffix(f.Definition.Type.Name(), "Connection") || f.Definition.Arguments.ForName("first") == nil {
		return 0, false
	}
	for _, name := range []string{"first", "last"} {
		switch v := argument(f, name, variables).(type) {
		case json.Number:
			if n, err := v.Int64(); err == nil {
				return int(max(min(n, service.MaxPage), 0)), true
			}
		case int64:
			return int(max(min(v, service.MaxPage), 0)), true
		case int:
			return max(min(v, service.MaxPage), 0), true
		case float64:
			return int(max(min(v, service.MaxPage), 0)), true
		}
	}
	return service.DefaultPage, true
}

// argument is the value of an argument, nil if it is absent or cannot be read:
// the resolver will say so.
func argument(f *ast.Field, name string, variables map[string]any) any {
	a := f.Arguments.ForName(name)
	if a == nil || a.Value == nil {
		return nil
	}
	v, err := a.Value.Value(variables)
	if err != nil {
		return nil
	}
	return v
}

package identity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
)

// claims are the claims of a verified token.
type claims map[string]any

// selector takes a value from the claims of a token; nil if there is none.
type selector func(ctx context.Context, from claims) (any, error)

// selectPath returns a selector for the claim at a path: a name, or the names of nested objects
// separated by dots. If a claim has the whole path as its name, that claim is used, because such
// names are often URLs.
func selectPath(path string) selector {
	steps := strings.Split(path, ".")
	return func(_ context.Context, from claims) (any, error) {
		if v, ok := from[path]; ok {
			return v, nil
		}
		at := any(map[string]any(from))
		for _, step := range steps {
			object, ok := at.(map[string]any)
			if !ok {
				return nil, nil
			}
			at = object[step]
		}
		return at, nil
	}
}

// expressionCost limits the evaluation of an expression, in CEL's cost units.
const expressionCost = 100_000

// selectExpression returns a selector that evaluates a CEL expression with the variable
// claims.
func selectExpression(text string) (selector, error) {
	env, err := cel.NewEnv(cel.Variable("claims", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	program, err := env.Program(checked, cel.CostLimit(expressionCost), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, from claims) (any, error) {
		out, _, err := program.ContextEval(ctx, map[string]any{"claims": map[string]any(from)})
		if err != nil {
			return nil, err
		}
		if list, err := out.ConvertToNative(reflect.TypeFor[[]string]()); err == nil {
			return list, nil
		}
		return out.Value(), nil
	}, nil
}

// newSelector returns the selector of a path or an expression.
func newSelector(path, expression string) (selector, error) {
	if expression == "" {
		return selectPath(path), nil
	}
	return selectExpression(expression)
}

// text returns the user's name in the claims.
func (s selector) text(ctx context.Context, from claims) (string, error) {
	v, err := s(ctx, from)
	if err != nil {
		return "", invalid("the name of the user cannot be read from the claims of the token")
	}
	name, ok := v.(string)
	if !ok || name == "" {
		return "", invalid("the token has no claim with the name of the user, or it is no text")
	}
	return name, nil
}

// texts returns the groups in the claims, which are a list of texts or a single text.
func (s selector) texts(ctx context.Context, from claims) ([]string, error) {
	v, err := s(ctx, from)
	if err != nil {
		return nil, invalid("the groups of the user cannot be read from the claims of the token")
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		if len(v) > maxGroups { // newIdentity refuses it
			return make([]string, len(v)), nil
		}
		out := make([]string, len(v))
		for i, one := range v {
			group, ok := one.(string)
			if !ok {
				return nil, invalid(fmt.Sprintf("a group of the user is no text but of type %T", one))
			}
			out[i] = group
		}
		return out, nil
	}
	return nil, invalid("the claim with the groups of the user is no list of texts")
}

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

// selector selects a value from the claims of a token. It returns nil if the token has no such value.
type selector func(ctx context.Context, from claims) (any, error)

// selectPath returns a selector for the claim at a path: a name, or names of nested objects joined by dots. If the
// whole path is the name of a claim, that claim is used, because names of claims are often URLs.
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

// expressionCost is the maximum cost of evaluating an expression, in CEL's units.
const expressionCost = 100_000

// selectExpression returns a selector for a CEL expression, which can use the variable claims.
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

// newSelector returns a selector for the expression, or for the path if there is no expression.
func newSelector(path, expression string) (selector, error) {
	if expression == "" {
		return selectPath(path), nil
	}
	return selectExpression(expression)
}

// text returns the selected value as the name of the user.
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

// texts returns the selected value as the groups of the user. The value may be a list of strings or a single string.
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

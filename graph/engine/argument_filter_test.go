package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// operators calls visit for each object of operators in a filter type: what the
// filter has before and behind it, and its type.
func operators(schema *ast.Schema, filter *ast.Definition, before, behind string, visit func(before, behind string, t *ast.Definition)) {
	for _, f := range filter.Fields {
		t := schema.Types[f.Type.Name()]
		at, end := before+"{"+f.Name+": ", "}"+behind
		switch {
		case t == filter: // and, or, not
		case t.Fields.ForName("isNull") != nil, t.Name == "LabelFilter":
			if f.Type.Elem != nil {
				at, end = at+"[", "]"+end
			}
			visit(at, end, t)
		case strings.HasSuffix(t.Name, "Filter") && t.Name != "ConditionFilter":
			operators(schema, t, at, end, visit)
		}
	}
}

// An operator whose value is missing must not be a filter that keeps everything.
func TestAnOperatorWithoutAValueIsRefused(t *testing.T) {
	catalogue := shelves(t)
	g := newGateway(t, catalogue, nil)
	schema, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, field := range schema.Query.Fields {
		arg := field.Arguments.ForName("filter")
		if arg == nil || field.Arguments.ForName("kind") != nil {
			continue
		}
		operators(schema, schema.Types[arg.Type.Name()], "", "", func(before, behind string, operator *ast.Definition) {
			key := ""
			if operator.Name == "LabelFilter" {
				key = `key: "a"`
			}
			refused := func(says, operand, variable string, variables map[string]any) {
				t.Helper()
				query := fmt.Sprintf("query%s { %s(filter: %s{%s %s}%s) { __typename } }", variable, field.Name, before, key, operand, behind)
				got := g.do(query, variables)
				var e *failure.Error
				if len(got.Errors) != 1 || !errors.As(got.Errors[0], &e) || e.Code != failure.CodeBadUserInput || !strings.Contains(got.Errors[0].Message, says) {
					t.Errorf("%s, variables %v: data %s, errors %v", query, variables, got.Data, got.Errors)
				}
			}
			refused("has no operator", "", "", nil)
			for _, op := range operator.Fields {
				if op.Name == "key" {
					continue
				}
				seen[operator.Name+"."+op.Name] = true
				variable := fmt.Sprintf("($v: %s)", op.Type)
				refused("has no operator", op.Name+": $v", variable, nil)
				refused(op.Name+" is null", op.Name+": $v", variable, map[string]any{"v": nil})
				refused(op.Name+" is null", op.Name+": null", "", nil)
			}
		})
	}
	if len(seen) < 40 {
		t.Errorf("only %d operators were tried: %v", len(seen), seen)
	}
}

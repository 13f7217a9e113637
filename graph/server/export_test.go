package server

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// JoinSurrogates is for its fuzz test.
var JoinSurrogates = joinSurrogates

// Coerce is how the variables of an operation are judged and coerced.
func Coerce(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	return variables{schema}.values(op, given)
}

// CoerceByParser is the same by gqlparser alone, of values that were judged.
func CoerceByParser(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	if err := (variables{schema}).judge(op, given); err != nil {
		return nil, err
	}
	return validator.VariableValues(schema, op, given)
}

package server

import (
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// HasHalf reports whether a string of a document has the escape of half a surrogate pair.
func HasHalf(document string) bool { return scan(document, len(document)).half }

// NewCallers returns the counts of callers.
func NewCallers(limits, defaults CallerLimits, now func() time.Time) *callers {
	return newCallers(limits, defaults, now)
}

// Len returns the number of callers that are remembered.
func (c *callers) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) + c.idle.Len()
}

// Coerce coerces the variables of an operation.
func Coerce(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	return variables{schema}.coerce(op, given)
}

// CoerceByParser coerces by gqlparser alone.
func CoerceByParser(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	return validator.VariableValues(schema, op, given)
}

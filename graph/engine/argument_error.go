package engine

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/coercion"
)

// argumentError is an error of a value in an argument.
type argumentError struct {
	path ast.Path
	err  error
}

// refuseAt returns the error of the value at a path of an argument.
func refuseAt(at *coercion.Path, err error) error { return &argumentError{at.List(), err} }

func (e *argumentError) Error() string { return e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

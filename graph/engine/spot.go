package engine

import "github.com/vektah/gqlparser/v2/ast"

// argumentError is what is wrong with an argument, and where in it.
type argumentError struct {
	path ast.Path
	err  error
}

// spot is where a value stands in the arguments of a field. Its path is made where
// something is wrong with the value.
type spot struct {
	in    *spot
	name  string // of an argument or a field, empty for an element of a list
	index int
}

func (s *spot) path() ast.Path {
	if s == nil {
		return nil
	}
	if s.name == "" {
		return append(s.in.path(), ast.PathIndex(s.index))
	}
	return append(s.in.path(), ast.PathName(s.name))
}

// refuse says what is wrong with the value.
func (s *spot) refuse(err error) error { return &argumentError{s.path(), err} }

func (e *argumentError) Error() string { return e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

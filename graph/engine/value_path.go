package engine

import "github.com/vektah/gqlparser/v2/ast"

// argumentError is an error of a value in an argument.
type argumentError struct {
	path ast.Path
	err  error
}

// valuePath is the place of a value in the arguments of a field. Its path is made only for errors.
type valuePath struct {
	in    *valuePath
	name  string // of an argument or a field, empty for an element of a list
	index int
}

func (s *valuePath) path() ast.Path {
	if s == nil {
		return nil
	}
	if s.name == "" {
		return append(s.in.path(), ast.PathIndex(s.index))
	}
	return append(s.in.path(), ast.PathName(s.name))
}

// refuse returns the error of the value.
func (s *valuePath) refuse(err error) error { return &argumentError{s.path(), err} }

func (e *argumentError) Error() string { return e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

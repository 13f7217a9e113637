package engine

import "github.com/sluicegw/sluice/backend/service/failure"

// argumentError is the error of a value in an argument.
type argumentError struct {
	// path are the steps from the argument to the value, beginning with the name of the argument.
	path []any
	err  error
}

// refuseAt returns the error of the value at a path within the arguments.
func refuseAt(at *failure.Path, err error) error {
	return &argumentError{at.Steps(failure.APINames), err}
}

func (e *argumentError) Error() string { return e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

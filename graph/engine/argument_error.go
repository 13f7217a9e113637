package engine

import "github.com/sluicegw/sluice/backend/service/failure"

// argumentError is an error with the path of the value that caused it.
type argumentError struct {
	// path begins with the name of the argument. An example is "input", "spec", "mtu".
	path []any
	err  error
}

// refuseAt adds the path of a value in the arguments to an error about the value.
func refuseAt(at *failure.Path, err error) error {
	return &argumentError{at.Steps(failure.APINames), err}
}

func (e *argumentError) Error() string { return e.err.Error() }
func (e *argumentError) Unwrap() error { return e.err }

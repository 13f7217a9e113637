//go:build !linux && !darwin

package reload

import "errors"

// exchange returns an error, because this system cannot swap folders atomically.
func exchange(string, string) error { return errors.ErrUnsupported }

//go:build !linux && !darwin

package reload

import "errors"

// exchange returns an error: this system cannot swap folders in one step.
func exchange(string, string) error { return errors.ErrUnsupported }

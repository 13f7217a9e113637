//go:build !linux && !darwin

package reload

import "errors"

// exchange is not possible in one step.
func exchange(string, string) error { return errors.ErrUnsupported }

//go:build !linux && !darwin

package folder

import "errors"

// exchange is not possible in one step.
func exchange(string, string) error { return errors.ErrUnsupported }

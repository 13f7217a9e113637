// Package setting checks the numbers of configurations.
package setting

import (
	"errors"
	"fmt"
)

// Setting is a number of a configuration, by the name that its user knows.
type Setting struct {
	Name  string
	Value int64
}

// NotNegative names all settings that are below zero, joined; nil if none is.
func NotNegative(settings ...Setting) error {
	var errs []error
	for _, s := range settings {
		if s.Value < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative", s.Name))
		}
	}
	return errors.Join(errs...)
}

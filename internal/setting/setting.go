// Package setting checks numbers of configurations.
package setting

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// NotNegative returns an error that names all settings below zero, nil if there are none.
func NotNegative(settings map[string]int64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

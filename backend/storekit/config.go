package storekit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// NotNegative returns an error that names all fields of a configuration below zero, nil if
// there are none.
func NotNegative(fields map[string]int64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

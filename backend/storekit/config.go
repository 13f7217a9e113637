package storekit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Defaults of the bounds that the drivers' configurations have in common.
const (
	// DefaultLogEntries is the default of Config.LogEntries.
	DefaultLogEntries = 100_000
	// DefaultLogBytes is the default of Config.LogBytes.
	DefaultLogBytes = 256 << 20
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

package transport_test

import "testing"

// small reports whether tests have fewer clients and events: in short tests, and under the
// race detector, which makes everything many times slower.
func small() bool { return underRace || testing.Short() }

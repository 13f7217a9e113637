//go:build race

package bolt_test

import "testing"

// withoutRaceDetector skips a test of files that are damaged at random. bbolt then follows lengths of up to 4 GiB. In a
// plain build that is a fault of memory, from which the store recovers. The race detector reads its own memory for the
// same length, and its faults end the process.
func withoutRaceDetector(t *testing.T) { t.Skip("a fault of memory in the race detector ends the process") }

//go:build !race

package bolt_test

import "testing"

// withoutRaceDetector skips a test under the race detector.
func withoutRaceDetector(*testing.T) {}

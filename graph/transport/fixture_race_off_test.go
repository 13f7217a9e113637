//go:build !race

package transport_test

// underRace says that the race detector makes everything many times slower.
const underRace = false

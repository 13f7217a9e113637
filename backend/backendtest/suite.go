// Package backendtest tests drivers of [backend.Store]. [Run] is the conformance suite,
// [RunModel] compares random histories with the reference in backend/memory, and [Bench]
// runs benchmarks.
package backendtest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// Store has the methods of a driver that the suite needs.
type Store interface {
	backend.Store
	backend.Clock
	// Run purges and trims at intervals until ctx ends.
	Run(ctx context.Context) error
	// Purge removes a limited number of expired resources, and returns how many it has
	// removed.
	Purge(ctx context.Context) (int, error)
	Close() error
}

// Options configure a store for a test. A zero field means the driver's default.
type Options struct {
	Clock         func() time.Time
	Rand          *rand.Rand
	LogEntries    int
	LogAge        time.Duration
	LogBytes      int64
	PurgeInterval time.Duration
}

// Instance is the data of a store, empty at first.
type Instance struct {
	// Open opens the data. It may be called again after all stores on the data were
	// closed.
	Open func() (Store, error)
	// Handle returns a second store on the data that the given one has open.
	Handle func(Store) Store
	// Check, if not nil, looks for inconsistencies in the data of an open store.
	Check func(Store) error
}

// Opener makes a new instance that lasts as long as the test.
type Opener func(testing.TB, Options) Instance

// statement is one sentence of the contract, with its test.
type statement struct {
	says string
	run  func(*fixture)
}

// Run tests a driver against the contract.
func Run(t *testing.T, open Opener) {
	for _, group := range []struct {
		name       string
		statements []statement
	}{
		{"conditions", conditionStatements()},
		{"results", resultStatements()},
		{"limits", limitStatements()},
		{"revisions", revisionStatements()},
		{"expiry", expiryStatements()},
		{"get", getStatements()},
		{"range", rangeStatements()},
		{"deleting", deletingStatements()},
		{"ranges", rangesStatements()},
		{"bare reads", bareStatements()},
		{"references", referenceStatements()},
		{"references to GLOBAL kinds", globalStatements()},
		{"rebind", rebindStatements()},
		{"watch", watchStatements()},
		{"events", eventStatements()},
		{"resume", resumeStatements()},
		{"head", headStatements()},
		{"log", logStatements()},
		{"internal", internalStatements()},
		{"everything of a store, and another one", restoreStatements()},
		{"life cycle", lifeStatements()},
		{"concurrency", concurrencyStatements()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, s := range group.statements {
				t.Run(s.says, func(t *testing.T) {
					t.Parallel()
					s.run(&fixture{T: t, open: open, clock: newClock()})
				})
			}
		})
	}
}

// Package consistency has no code of its own. Its tests hold what several gateways on one
// store answer, with and without the index in memory, against what was acknowledged:
// histories of clients are linearizable, no read is older than a write that was
// acknowledged before it began, and every answer is that of one state of the store.
//
// The tests are short. SLUICE_TEST_HISTORIES, SLUICE_TEST_FRESHNESS and
// SLUICE_TEST_MOMENTS make them long: numbers of histories, of writes that are read
// back, and of rounds. SLUICE_TEST_SEED repeats what a run has printed.
package consistency

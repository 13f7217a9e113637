// Package mirror keeps records of resources that are owned by services of other teams. If a kind
// has a service, its resources are owned there and mirrored here: they are ordinary records of the
// store, which only this package writes.
//
//	the service's change ---> a key ---------.
//	a difference found by comparing all -----+--> look: 1. reads the record
//	a record added by another gateway -------'          2. asks the service
//	                                                    3. writes, if the record is still the one of 1.
//
//	a caller's write: 1. reads the record and checks the caller's rights by it
//	                  2. asks the service to write, on the condition of the tag in 1.
//	                  3. writes the answer, if the record is still the one of 1.; else looks
//
// The service is always asked after the record was read, so an older version never replaces a newer
// one. The versions of the service need no order, and gateways need no lease: any number of them
// may mirror one service. Only a new resource has no record to compare with, so it could have been
// deleted before its record is added. That is why each mirror looks again at every record that
// another one has added.
//
// The outcome of a write whose answer was lost is never guessed. The write is sent again with the
// same id. An equal resource proves nothing, because another caller may have written it.
//
// All resources are compared when a mirror starts, when the service cannot continue from a
// position, and at intervals. If more than half of many resources seem to have vanished, their
// records are kept for [holdTime], because that is what a service looks like that has lost its
// data.
package mirror

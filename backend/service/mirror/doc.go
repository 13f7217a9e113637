// Package mirror keeps records of resources that services of other teams own. If the SDL of a kind names a service,
// that service owns the kind's resources. The store has a record of each, an ordinary resource that only this package
// writes.
//
//	the service's change ---> a key ---------.
//	a difference found by comparing all -----+--> look: 1. reads the record
//	a record added by another gateway -------'          2. asks the service
//	                                                    3. writes, if the record has not changed since 1.
//
//	a caller's write: 1. reads the record and checks the caller's rights by it
//	                  2. asks the service to write, on the condition of the tag in 1.
//	                  3. writes the answer if the record has not changed since 1., else looks
//
// The service is always asked after the record was read, so an older version of a resource never replaces a newer one.
// The versions of the service need no order, and gateways need no lease: any number of them may mirror one service.
// Only a resource without a record has nothing to compare: it may be added and deleted between the read and the write.
// Therefore each mirror looks again at every record that another one has added.
//
// The outcome of a write whose answer was lost is never guessed. The write is sent again with the same id. An equal
// resource proves nothing, because another caller may have written it.
//
// The mapping of a service's standard methods may show a gateway only some fields of the resources. The gateway leaves
// the other fields in the records as they are, and does not send them: another gateway may be shown more.
//
// All resources are compared when a mirror starts, when the service cannot continue from a position, and at intervals.
// If more than half of many resources are suddenly absent, the service may have lost its data, so their records are
// kept for [holdTime].
package mirror

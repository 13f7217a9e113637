// Package mirror keeps the records of resources that other teams' services own. A kind with a service is owned there
// and mirrored here: its resources are ordinary records of the store, which this package alone writes.
//
//	the service's change ---> a key ---------.
//	a difference found by comparing all -----+--> look: 1. reads the record
//	a record that somebody else has added ---'          2. asks the service
//	                                                    3. writes, if 1. still stands
//
//	a caller's write: 1. reads the record, by which the caller is judged
//	                  2. asks the service to write, on the condition of the tag in 1.
//	                  3. writes the answer, if 1. still stands; else looks
//
// So an older version never replaces a newer one: the service is always asked after the record was read. The versions
// of the service need no order, and gateways need no lease: any number of them may mirror one service. Only a new
// resource has no record to compare with: it may have been deleted before its record is added. So each mirror looks
// once more at every record that another one has added.
//
// What became of a write whose answer was lost is never guessed. It is asked for again with the same id; an equal
// resource proves nothing, since somebody else may have written it.
//
// Everything is compared when a mirror begins, when the service cannot go on from a position, and now and then. If more
// than half of many resources seem to have vanished, they are kept for [holdTime]: that is what a service looks like
// whose data were lost.
package mirror

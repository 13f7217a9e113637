// Package backend is the contract between the service and the stores.
//
// A [Store] keeps resources that it does not understand: a key, an envelope of the facts
// that decide whether a write is allowed, references to other resources, by which it can
// find a resource, and an opaque body. [Store.Apply] is the only write: it changes one
// namespace atomically and leaves one log entry for each change. [Store.Watch] replays the
// log from a [Position] and follows it. Every driver passes the conformance suite in
// backendtest, which tests each sentence of this package.
//
// References are derived from the body by declarations that gateways may change. So every
// resource has the fingerprint of the declarations that were used, and an [OpRebind]
// replaces references that were derived by others.
//
// The parts that drivers share are in storekit. Kinds are described in descriptor: a store
// knows neither its kinds nor the contents of a body. The package imports nothing else of
// this module.
package backend

// Package backend is the contract between the resource service and the stores.
//
// A [Store] deals in resources it does not understand: a key, an envelope of
// facts it must know to judge a write, the references that make it findable by what
// it refers to and an opaque body. One write primitive, [Store.Apply], changes one namespace
// atomically and leaves exactly one log entry per change; [Store.Watch] replays
// that log from a [Position] and follows it. Every driver passes the
// conformance suite in backendtest, which holds each sentence of this package.
//
// The references follow from the body by declarations that gateways may change, so every
// resource carries the fingerprint of those that were used; an [OpRebind] replaces
// references that were taken by other declarations.
//
// The parts that drivers share are in storekit. Kinds are described in descriptor: a store
// knows neither its kinds nor the contents of a body.
//
// It imports nothing else of this module.
package backend

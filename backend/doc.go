// Package backend is the contract between the service and the stores.
//
// A [Store] keeps resources without understanding them. It knows four parts of a resource: its key; an envelope, with
// the facts that decide whether a write is allowed; references to other resources, by which the resource can be found;
// and an opaque body. [Store.Apply] is the only write. It changes one namespace atomically, and adds one entry to the
// log for each change. [Store.Watch] replays the log from a [Position] and then follows it. Every driver passes the
// conformance suite in backendtest.
//
// References are derived from the body by declarations, which gateways may change. Each resource therefore has the
// fingerprint of the declarations that were used. After a change of the declarations, an [OpRebind] replaces the
// references and the fingerprint.
//
// Package storekit has the parts that drivers share. Package descriptor describes kinds; a store does not use it. This
// package imports no other package of the module.
package backend

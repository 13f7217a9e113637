// Package storekit has the parts that drivers of stores share: checking the conditions of a batch and computing its
// writes, the state of a log, pages, and watches. See package [github.com/sluicegw/sluice/backend] for the contract of
// a store.
package storekit

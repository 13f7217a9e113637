// Package storekit has the parts that drivers of stores share: checking a batch against
// the state of its shard and computing its writes, the state of a log, pages and
// watches. The contract is package [github.com/sluicegw/sluice/backend].
package storekit

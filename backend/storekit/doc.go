// Package storekit is the kit that the drivers of stores are built with: a batch
// judged against the state of its shard, the writes that follow, what a log
// knows of itself, pages and watches. What they must do is the contract, package
// [github.com/sluicegw/sluice/backend].
package storekit

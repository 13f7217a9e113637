// Package answer keeps the answers to queries until what they were read from changes.
//
// An answer is kept with its basis: the versions of the kinds that were read, as the state that the query read
// recorded them ([query.Snapshot.Record]). It is the answer to an equal query as long as the basis holds in the state
// that this one would read, which is never older than what the store has acknowledged. So no kept answer is stale, and
// none has a time to live.
//
//	             there is one, and it holds
//	Find -----------------------------------------------> Kept
//	  |
//	  |  another request executes the query
//	  +---------------------------------------> wait ---> Kept, or Find once more; after half of the caller's time it
//	  |                                                   executes the query itself
//	  |
//	  |  no request does
//	  +---------------------------------------> Turn: the caller executes, then Turn.End
//
// An answer is copied once it was asked for twice in one state, or while others wait for it, or if its predecessor was
// used: what is asked once costs no memory. See [Cache] for what is never kept.
package answer

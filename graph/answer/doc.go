// Package answer keeps the answers to queries until something has changed from which they were computed.
//
// Each answer is kept with its basis: the versions of the kinds that were read ([query.Snapshot.Record]). When an equal
// query comes, the answer is used if its basis is still valid in the state that the query would read. That state always
// includes everything that the store has acknowledged. So no answer is outdated, and none needs a time to live.
//
//	             an answer is kept and valid
//	Find -----------------------------------------------> Kept
//	  |
//	  |  an equal query is being executed
//	  +---------------------------------------> wait ---> Kept, or Find again; after half of the caller's time it
//	  |                                                   executes the query itself
//	  |
//	  |  otherwise
//	  +---------------------------------------> Turn: the caller executes, then Turn.End
//
// To keep an answer, the cache copies it. It does so if the query is requested for the second time in one state, if
// equal queries wait, or if the outdated answer was used. So a query that is requested only once costs no memory. See
// [Cache] for answers that are never kept.
package answer

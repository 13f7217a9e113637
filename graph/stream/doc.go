// Package stream runs the subscriptions of clients, whatever transport they use.
//
// Subscriptions are equal if their documents, operations, coerced variables and extensions are,
// and the identity of their callers and what these may see ([Execution.Key]). Equal ones share
// one execution: a group executes each change once, and all of its followers are sent the same
// bytes. A subscription is in one of these states:
//
//	         it is about to read the state, or
//	         at rest; a group can be joined or begun
//	alone ----------------------------------------> behind
//	  ^                                             |  ^  |
//	  |  it is cut off, the group has ended, or     |  |  |  it has every event
//	  |  its catalogue was replaced                 |  |  |  of a live group
//	  +---------------------------------------------+  |  v
//	                                                 parked
//	        its queue is full, or the group has ended
//
// alone: its own execution is asked for each event. behind: its goroutine takes the events of the
// group at its own pace. parked: it has no goroutine, and the group puts events into its queue.
// A stopped subscription ends, in any state; a parked one is behind before that, for its goroutine.
//
// A follower is cut off if more events wait for it than are allowed, or if there is no memory for
// them. It goes on alone from where it is: it ends with LAGGED, or within the state reads on by
// itself. An answer with errors is not shared. Each follower executes that event itself, with a
// budget and a request id of its own, and stays in the group.
//
// A group is in one of these states:
//
//	begun before the state          begun at rest
//	          |                          |
//	          v     the state was told   v
//	       reading -------------------> live
//	          |                          |
//	          +-------> ended <----------+   its execution fails or is replaced, or nobody follows
//
// reading: the follower that is furthest makes the leader's execution go on. Others join until 1 MiB
// was told. live: a goroutine executes what happens, while there is anything. A group that has become
// live gives its followers to the live group of equal subscriptions, if there is one and no change lies between
// the two. When a group ends, its followers go on alone from where they are.
//
// An event goes through one [Queue] for each client, which is bounded in messages and bytes, and on
// through the client's [Wire]. The state that a group is told of is that of package change, as are
// the moments at which subscriptions can join.
package stream

// Package stream runs the subscriptions of clients, for all transports.
//
// Equal subscriptions share one execution. They are equal if document, operation, variables,
// extensions and the rights of the caller are ([Execution.Key]); each version of the API has [Groups] of its own. A
// group executes each change once and sends the same bytes to all its followers.
//
// # Subscriptions
//
// A subscription is in one of three states, until it ends:
//
//	        joins a group                    has every event of a live group
//	alone ----------------------> behind ------------------------------------> parked
//	  ^                           |    ^                                            |
//	  +---------------------------+    +--------------------------------------------+
//	   is cut off, or the group ended      its queue is full, or the group ended,
//	   or its rights have changed          or its rights have changed
//
// Each state is one method of [Subscription]. Alone (alone), it executes its events by itself. It joins a
// group, or begins one, when it is about to read the state, or when it is at rest: in sync, with
// everything sent (change.JoinPoint). Behind (behind), its goroutine takes the events of the group at its own
// pace. Parked, it has no goroutine: the group puts events into its queue (deliver).
//
// A follower is cut off if too many events wait for it, or if there is no memory for them. It goes on alone from
// where it is: within the state it reads on, after the state it ends with LAGGED. A group keeps the rights with which
// it began. If the policy has changed, it compares them with the rights of its followers before it publishes a change
// (group.checkRights). A follower with other rights leaves: it does not take the events that wait for it, goes on
// alone from its cursor, and may join the group of its new rights later. An answer with errors is not shared: each
// follower executes that change by itself, with its own budget and request id, and stays in the group.
//
// # Groups
//
// A group is in one of two states, until it ends:
//
//	begun before the state        begun at rest
//	          |                         |
//	          v   the state is sent     v
//	       reading ------------------> live
//
// Its leader is the execution. While it is reading (group.readState), a follower that has taken all events makes the
// leader execute the next part of the state; others join until 1 MiB of it is published. When it is live
// (group.publishChanges), a goroutine executes the changes, while there are any. A group that has become live hands
// its followers over to the live group of equal subscriptions, if there is one and no change lies between the two. It
// ends when its execution fails, when its catalogue is replaced, or with its last follower. Those that are left go on
// alone, if a stream can begin again after what ended it.
//
// # Goroutines and locks
//
// The transport runs Subscription.Run in a goroutine; a parked subscription that falls behind, is stopped or loses
// its group runs it in a new one. Group.work runs while Wake was called; it is called when something may have
// happened, by a timer, and when a group becomes live. A group ends with its last follower, so a transport that stops
// all its subscriptions stops all goroutines.
//
// The locks are taken in the order Groups.mu, group.mu, Queue.mu. Two groups are locked at once only under Groups.mu
// (Groups.unite). Nothing waits for a client or executes while it holds one of them, except that a group begins under
// the first two. The steps of a group need no lock: group.turn and group.wakes make sure that there is one at a time.
//
// # Bounds
//
//	messages and bytes in a queue             Queue.Messages, Queue.Bytes
//	events that wait for a follower           1,024 events after the state, 4 MiB
//	events of the state kept for others       1 MiB
//	memory of all queues and groups           Queue.Memory, Config.Memory; each has 8 KiB free
//	changes executed and published at once    64 changes, 64 KiB, 1 ms
//
// # Queues
//
// All messages to a client wait in one bounded [Queue]. A subscription that is alone or behind waits
// while the queue is full; a group never waits. The transport decides how messages look and how they are
// written: see [Wire].
package stream

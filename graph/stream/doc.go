// Package stream runs the subscriptions of clients, for all transports.
//
// Equal subscriptions share one execution. Two subscriptions are equal if they have the same document, operation,
// variables, extensions and rights ([Execution.Key]). Each version of the API has separate [Groups]. A group executes
// each change once and sends the same bytes to all its followers.
//
// # A change
//
// A change of a resource becomes an event for a client in two ways:
//
//	              taken by                    answered by         put into the queue by
//	alone         Loop.Next (Stream.Next)     Execution.Answer    Subscription.send
//	in a group    group.take (Stream.Poll)    group.step          group.publish, or send of a follower that is behind
//
// [Events] returns the [Answer] to each event of a subscription. A [Loop] implements Events for a subscription to
// changes: it takes the changes one by one, and its [Execution] answers each. [Responder] gives each answer a budget,
// errors and extensions. If the answer to a change cannot be shared, each follower of the group answers the change
// itself (Loop.answerShared).
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
// A subscription that is alone executes its events itself. When it is about to read the snapshot, or when it is at rest
// (in sync, with everything sent; see change.JoinPoint), it joins a group or begins one. While it is behind, its
// goroutine takes the events of the group at its own pace. While it is parked, it has no goroutine: the group puts
// events into its queue (deliver). Alone and behind are methods of [Subscription].
//
// A follower is cut off if too many events wait for it, or if there is no memory for them. It then leaves the group.
// During the snapshot it reads the rest itself; after the snapshot it ends with LAGGED.
//
// A group keeps the rights with which it began. If the policy has changed, it compares these with the rights of its
// followers before it publishes a change (group.checkRights). A follower with other rights leaves: it does not take the
// events that wait for it, goes on alone from its cursor, and may later join a group with its new rights.
//
// An answer with errors is not shared: each follower executes that change itself, with its own budget and request id,
// and stays in the group.
//
// # Groups
//
// A group is in one of two states, until it ends:
//
//	begun before the snapshot       begun at rest
//	          |                           |
//	          v   the snapshot is sent    v
//	       reading --------------------> live
//
// The leader of a group is its shared execution. While the group is reading (group.readState), a follower that has
// taken all events makes the leader execute the next part of the snapshot. Other subscriptions can join until 1 MiB of
// the snapshot is published. While the group is live (group.publishChanges), a goroutine executes the changes, as long
// as there are any. A group that becomes live hands its followers over to the live group of equal subscriptions, if
// there is one and both have received the same changes.
//
// A group ends when its execution fails, when its catalogue is replaced, or with its last follower. Its followers then
// go on alone, or end with the error if their streams cannot continue.
//
// # Goroutines and locks
//
// The transport runs Subscription.Run in a goroutine. If a parked subscription falls behind, is stopped or loses its
// group, it runs in a new goroutine. group.work runs until it has handled all calls of Wake: by the hub when there may
// be a change, by a timer, and when the group becomes live. A group ends with its last follower, so a transport that
// stops all its subscriptions stops all goroutines.
//
// The locks are taken in the order Groups.mu, group.mu, Queue.mu. Two groups are locked at once only under Groups.mu
// (Groups.unite). No lock is held while waiting for a client or executing a change, with one exception: newGroup begins
// its leader under Groups.mu and group.mu. The steps of a group need no lock, because group.turn and group.wakes make
// sure that only one runs at a time.
//
// # Bounds
//
//	messages and bytes in a queue             Queue.Messages, Queue.Bytes
//	events that wait for a follower           1,024 events after the snapshot, 4 MiB
//	events of the snapshot kept for others    1 MiB
//	memory of all queues and groups           Queue.Memory, Config.Memory; the first 8 KiB of each are not counted
//	changes executed and published at once    64 changes, 64 KiB, 1 ms
//
// # Queues
//
// All messages to a client wait in one bounded [Queue]. A subscription that is alone or behind waits while the queue is
// full; a group never waits. The transport decides what messages look like and how they are written: see [Wire].
package stream

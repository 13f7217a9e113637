// Package transport carries GraphQL operations between clients and executors: over
// HTTP by GET and POST, as server-sent events, and over WebSocket by
// graphql-transport-ws and the older graphql-ws. Package stream runs the subscriptions;
// a transport writes their events to its clients.
//
// # WebSocket connections
//
// A connection goes through these states:
//
//	            socket.initialise        socket.drain
//	waiting ----------------------> ready -----------> draining
//	   |                              |                    |
//	   | too many wait, or time-out   | error, time-out    | last answer sent
//	   v                              v                    v
//	   +--------------------------> ending (socket.close) <+
//	                                  |  queue written: socket.closeAfterFlush
//	                                  v
//	                              closed (socket.abort at once, without a close frame)
//
// # Operations on a connection
//
// An operation holds its id until its last message is queued:
//
//	socket.start      socket.launch                socketOperation.finish
//	prepared    ------------------> running  ------------------------------> finished
//	    |                              |                                        |
//	    | refused: socket.refuse       | the client stops it: socket.stop       |
//	    v                              v                                        v
//	  (none)                        stopped ----------------------------> socketOperation.Close
package transport

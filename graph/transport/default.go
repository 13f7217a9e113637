package transport

import "time"

// Defaults of the limits of connections. They are stated here alone.
const (
	DefaultConnections    = 10_000 // WebSocket connections
	DefaultStreams        = 10_000 // answers as server-sent events
	DefaultOperations     = 100    // on one WebSocket connection
	DefaultMessage        = 4 << 20
	DefaultQueue          = 256 // events that wait for one client
	DefaultQueueBytes     = 1 << 20
	DefaultInitTimeout    = 10 * time.Second
	DefaultPingInterval   = 25 * time.Second
	DefaultWriteTimeout   = 10 * time.Second
	DefaultMessageTimeout = 10 * time.Second
	DefaultTime           = 30 * time.Second
)

// defaultGather is how soon after a write the next event may be written.
const defaultGather = time.Millisecond

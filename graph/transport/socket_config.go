package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
)

// SocketConfig of WebSocket connections. Zero means the default everywhere. The
// names in errors are the user's own configuration keys.
type SocketConfig struct {
	// Executor runs the operations. Required.
	Executor API
	// Logger receives what no client is told. Default: none.
	Logger *zap.Logger
	// Init judges the payload of connection_init, which is an object, null or
	// empty. An error refuses the client with 4403; else its operations run in the
	// context that it returns. Default: everyone is welcome.
	Init func(ctx context.Context, payload json.RawMessage) (context.Context, error)

	// Keep returns what a connection keeps of the context of its request: one that does not
	// end with it. Default: all values.
	Keep func(ctx context.Context) context.Context

	// Connections is the most that are open at once; more are refused with 503. Default [DefaultConnections].
	Connections int
	// Waiting is the most of them that have not initialised; more close the oldest.
	// Clients that come back all at once wait too. Default half of Connections.
	Waiting int
	// Operations is the most that run on one connection. Default [DefaultOperations].
	Operations int
	// Message is the largest that a client may send, in bytes; before it has
	// initialised at most 64 KiB. Default [DefaultMessage].
	Message int64
	// Memory is what all that is in flight holds. Default: unbounded.
	Memory *budget.Memory
	// Work is the allowance of all events of subscriptions. Default: unbounded.
	Work *budget.Allowance
	// MessageTimeout is how long a client may take to send 64 KiB of a message. Default [DefaultMessageTimeout].
	MessageTimeout time.Duration
	// Queue is the most messages that wait for one client. Default [DefaultQueue].
	Queue int
	// QueueBytes is the most bytes of them; one message may always wait. Default [DefaultQueueBytes].
	QueueBytes int

	// InitTimeout is how long a client may take to initialise. Default [DefaultInitTimeout].
	InitTimeout time.Duration
	// PingInterval is how often a client is asked whether it is there. One that has
	// not answered, nor finished a message, in two of them is gone. Default [DefaultPingInterval].
	PingInterval time.Duration
	// WriteTimeout is how long a client may take to accept 128 KiB. Default [DefaultWriteTimeout].
	WriteTimeout time.Duration
	// Time is how long a query or mutation may take. Default [DefaultTime].
	Time time.Duration
	// Gather is how soon after a write the next event may be written: what comes
	// in between leaves together. Default 1 ms; less than zero means at once.
	Gather time.Duration

	// Opened and Started are told when the number of connections and of running
	// operations changes. Default: nobody is.
	Opened, Started func(delta int)
	// Closed is told the code with which the gateway ended a connection that its
	// client would have kept. Default: nobody is.
	Closed func(code int)
}

// Validate returns every problem of the configuration, joined.
func (c *SocketConfig) Validate() error {
	var errs []error
	if c.Executor == nil {
		errs = append(errs, errors.New("executor: missing"))
	}
	for _, one := range []struct {
		key   string
		value int64
	}{
		{"limit-sockets", int64(c.Connections)}, {"limit-sockets-waiting", int64(c.Waiting)}, {"limit-operations", int64(c.Operations)},
		{"limit-message", c.Message}, {"limit-queue", int64(c.Queue)}, {"limit-queue-bytes", int64(c.QueueBytes)},
		{"init-timeout", int64(c.InitTimeout)}, {"ping-interval", int64(c.PingInterval)}, {"write-timeout", int64(c.WriteTimeout)}, {"body-timeout", int64(c.MessageTimeout)},
		{"limit-time", int64(c.Time)},
	} {
		if one.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is negative; 0 means the default", one.key, one.value))
		}
	}
	return errors.Join(errs...)
}

func (c *SocketConfig) setDefaults() {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Init == nil {
		c.Init = func(ctx context.Context, _ json.RawMessage) (context.Context, error) { return ctx, nil }
	}
	if c.Keep == nil {
		c.Keep = context.WithoutCancel
	}
	for _, hook := range []*func(int){&c.Opened, &c.Started, &c.Closed} {
		if *hook == nil {
			*hook = func(int) {}
		}
	}
	c.Connections = cmp.Or(c.Connections, DefaultConnections)
	c.Waiting = min(cmp.Or(c.Waiting, max(c.Connections/2, 1)), c.Connections)
	c.Operations = cmp.Or(c.Operations, DefaultOperations)
	c.Message = cmp.Or(c.Message, DefaultMessage)
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	c.InitTimeout = cmp.Or(c.InitTimeout, DefaultInitTimeout)
	c.PingInterval = cmp.Or(c.PingInterval, DefaultPingInterval)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.MessageTimeout = cmp.Or(c.MessageTimeout, DefaultMessageTimeout)
	c.Time = cmp.Or(c.Time, DefaultTime)
	c.Gather = cmp.Or(c.Gather, defaultGather)
}

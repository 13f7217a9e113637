package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
)

// Defaults of Config.
const (
	DefaultConnections    = 10_000
	DefaultOperations     = 100
	DefaultMessage        = 4 << 20
	DefaultQueue          = 256
	DefaultQueueBytes     = 1 << 20
	DefaultMessageTimeout = 10 * time.Second
	DefaultTime           = 30 * time.Second
)

// heartbeat is how often an idle event stream sends a comment.
const heartbeat = 12 * time.Second

// LateGrace is how long clients may go on to send a body once the gateway drains.
const LateGrace = time.Second

// Config of a transport. Zero means the default everywhere; package server refuses negative values.
type Config struct {
	// Executor returns the executor of an operation that begins. Required.
	Executor func(ctx context.Context) *Executor
	// Logger receives errors that no client is told. Default: none.
	Logger *zap.Logger
	// Memory bounds the memory of everything in flight. Default: unbounded.
	Memory *budget.Memory
	// Work is the allowance of the events of all subscriptions. Default: unbounded.
	Work *budget.Allowance

	// Init judges the payload of connection_init, which is an object, null or
	// empty. An error refuses the client with 4403, or 1013 if it may try again later; otherwise its
	// operations run in the returned context. Default: accepts every client.
	Init func(ctx context.Context, payload json.RawMessage) (context.Context, error)
	// Ack returns the payload of connection_ack, which is an object; nil for none. Default: there is none.
	Ack func(ctx context.Context) json.RawMessage
	// Admit is asked whether the caller may have one more of something; done, if not nil, gives it back. The error of a
	// refusal is a [failure.Error]. Default: everything is admitted.
	Admit func(ctx context.Context, use Use) (done func(), err error)
	// Keep returns the context of a WebSocket connection, given the context of its request. The
	// result must not end with the request. Default: [context.WithoutCancel].
	Keep func(ctx context.Context) context.Context

	// Connections is the most open WebSocket connections; more are refused with 503. Default [DefaultConnections].
	Connections int
	// Waiting is the most WebSocket connections that have not initialised; one more closes the oldest.
	// Default half of Connections, since clients that reconnect all at once wait too.
	Waiting int
	// Streams is the most open event streams; more are refused with 503. Default [DefaultConnections].
	Streams int
	// Operations is the most operations that run on one WebSocket connection. Default [DefaultOperations].
	Operations int
	// Body is the most bytes of the body of a request. Default [DefaultMessage].
	Body int64
	// Message is the most bytes of a WebSocket message; before the connection is
	// initialised at most 64 KiB. Default [DefaultMessage].
	Message int64
	// Queue is the most messages that wait for one client. Default [DefaultQueue].
	Queue int
	// QueueBytes is the most bytes of messages that wait for one client; one message may always wait. Default
	// [DefaultQueueBytes].
	QueueBytes int

	// InitTimeout is how long a WebSocket client may take to initialise. Default 10 s.
	InitTimeout time.Duration
	// PingInterval is how often a WebSocket client is pinged. A client that sends nothing, not even
	// a pong, for two intervals is disconnected. Default 25 s.
	PingInterval time.Duration
	// MessageTimeout is how long a client may take to send 64 KiB of a body or a message. Default
	// [DefaultMessageTimeout].
	MessageTimeout time.Duration
	// WriteTimeout is how long a client may take to accept 128 KiB. Default 10 s.
	WriteTimeout time.Duration
	// Time is how long a query or mutation may take, parsing included. Default [DefaultTime].
	Time time.Duration
	// Gather is how soon after a write the next event may be written: events that arrive in between
	// leave together. Default 1 ms; less than zero means at once.
	Gather time.Duration

	// SocketsOpened, StreamsOpened and Started are called when the number of WebSocket connections,
	// of event streams, and of operations on WebSocket connections changes. Default: none.
	SocketsOpened, StreamsOpened, Started func(delta int)
	// Closed is called with the code when the gateway closes a WebSocket connection
	// before its client does. Default: none.
	Closed func(code int)
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Init == nil {
		c.Init = func(ctx context.Context, _ json.RawMessage) (context.Context, error) { return ctx, nil }
	}
	if c.Ack == nil {
		c.Ack = func(context.Context) json.RawMessage { return nil }
	}
	if c.Admit == nil {
		c.Admit = func(context.Context, Use) (func(), error) { return nil, nil }
	}
	if c.Keep == nil {
		c.Keep = context.WithoutCancel
	}
	for _, hook := range []*func(int){&c.SocketsOpened, &c.StreamsOpened, &c.Started, &c.Closed} {
		if *hook == nil {
			*hook = func(int) {}
		}
	}
	c.Connections = cmp.Or(c.Connections, DefaultConnections)
	c.Waiting = min(cmp.Or(c.Waiting, max(c.Connections/2, 1)), c.Connections)
	c.Streams = cmp.Or(c.Streams, DefaultConnections)
	c.Operations = cmp.Or(c.Operations, DefaultOperations)
	c.Body = cmp.Or(c.Body, DefaultMessage)
	c.Message = cmp.Or(c.Message, DefaultMessage)
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	c.InitTimeout = cmp.Or(c.InitTimeout, 10*time.Second)
	c.PingInterval = cmp.Or(c.PingInterval, 25*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.MessageTimeout = cmp.Or(c.MessageTimeout, DefaultMessageTimeout)
	c.Time = cmp.Or(c.Time, DefaultTime)
	c.Gather = cmp.Or(c.Gather, time.Millisecond)
}

// Transport serves the operations of all clients of one endpoint.
type Transport struct {
	cfg     Config
	sockets *sockets
	streams *admission
	// draining ends when the gateway drains.
	draining context.Context
	drain    context.CancelFunc
	zippers  sync.Pool // of *gzip.Writer
}

// New returns a transport. It starts nothing.
func New(cfg Config) (*Transport, error) {
	if cfg.Executor == nil {
		return nil, errors.New("executor: missing")
	}
	cfg.setDefaults()
	t := &Transport{cfg: cfg, streams: &admission{key: "limit-streams", most: cfg.Streams, changed: cfg.StreamsOpened}}
	t.draining, t.drain = context.WithCancel(context.Background())
	t.sockets = newSockets(cfg)
	return t, nil
}

// ServeHTTP serves a request over the transport that it asks for. An upgraded WebSocket
// connection lives on after ServeHTTP returns.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		t.sockets.ServeHTTP(w, r)
		return
	}
	t.serveHTTP(w, r)
}

// Drain ends all streams, so that their clients resume elsewhere, and closes each WebSocket
// connection with 1001 as soon as its queries and mutations are answered. Nothing new is accepted;
// clients that are sending a body have [LateGrace] for the rest. Drain returns when all have ended
// or ctx ends, which cuts off the WebSocket connections that are left.
func (t *Transport) Drain(ctx context.Context) {
	t.drain()
	ended := t.streams.drain()
	t.sockets.drain(ctx)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

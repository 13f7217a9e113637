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

// The defaults of [Config].
const (
	DefaultConnections    = 10_000
	DefaultOperations     = 100
	DefaultMessage        = 4 << 20
	DefaultQueue          = 256
	DefaultQueueBytes     = 1 << 20
	DefaultMessageTimeout = 10 * time.Second
	DefaultTime           = 30 * time.Second
)

// heartbeat is the interval at which comments are sent on an idle event stream.
const heartbeat = 12 * time.Second

// LateGrace is how long clients may continue to send a body after the gateway has begun to drain.
const LateGrace = time.Second

// Config configures a [Transport]. Zero values mean the defaults. Package server refuses negative values.
type Config struct {
	// Executor returns the executor for an operation that begins now. Required.
	Executor func(ctx context.Context) *Executor
	// Logger receives errors that are not shown to clients. Default: none.
	Logger *zap.Logger
	// Memory is the memory that all requests and answers share. Default: unbounded.
	Memory *budget.Memory
	// Work is the allowance of steps that the events of all subscriptions share. Default: unbounded.
	Work *budget.Allowance

	// Init checks the payload of connection_init, which is an object, null or empty. It returns the context for the
	// operations of the connection. If it returns an error, the connection is closed with 4403, or with 1013 if the
	// client may try again later. Default: all clients are accepted.
	Init func(ctx context.Context, payload json.RawMessage) (context.Context, error)
	// Ack returns the payload of connection_ack, which must be an object; nil for no payload. Default: always nil.
	Ack func(ctx context.Context) json.RawMessage
	// Admit reports whether the caller of ctx may begin another use. If the use is not admitted, it returns a
	// [failure.Error]. If done is not nil, it is called when the use ends. Default: everything is admitted.
	Admit func(ctx context.Context, use Use) (done func(), err error)
	// Keep returns the context of a WebSocket connection, given the context of its request. It must not end with the
	// request. Default: [context.WithoutCancel].
	Keep func(ctx context.Context) context.Context

	// Connections is the maximum number of open WebSocket connections; more are refused with 503.
	// Default [DefaultConnections].
	Connections int
	// Waiting is the maximum number of WebSocket connections that are not initialised yet. If there is one more, the
	// oldest of them is closed. Default half of Connections, so that many clients can reconnect at once.
	Waiting int
	// Streams is the maximum number of open event streams; more are refused with 503. Default
	// [DefaultConnections].
	Streams int
	// Operations is the maximum number of running operations on a WebSocket connection. Default
	// [DefaultOperations].
	Operations int
	// Body is the maximum size of a request's body in bytes. Default [DefaultMessage].
	Body int64
	// Message is the maximum size of a WebSocket message in bytes, but at most 64 KiB
	// before the connection is initialised. Default [DefaultMessage].
	Message int64
	// Queue is the maximum number of messages that wait for a client. Default [DefaultQueue].
	Queue int
	// QueueBytes is the maximum size of the messages that wait for a client, in bytes. A single message may be larger.
	// Default [DefaultQueueBytes].
	QueueBytes int

	// InitTimeout is how long a WebSocket client may take to initialise its connection. Default 10 s.
	InitTimeout time.Duration
	// PingInterval is the interval of pings to a WebSocket client. A client that sends nothing, not
	// even a pong, for two intervals is disconnected. Default 25 s.
	PingInterval time.Duration
	// MessageTimeout is how long a client may take to send each 64 KiB of a body or message. Default
	// [DefaultMessageTimeout].
	MessageTimeout time.Duration
	// WriteTimeout is how long a client may take to accept each 128 KiB. Default 10 s.
	WriteTimeout time.Duration
	// Time is the maximum duration of a query or mutation, including parsing. Default [DefaultTime].
	Time time.Duration
	// Gather is the minimum pause between two writes of events to a client. Events that arrive during the pause are
	// written together. Default 1 ms; if negative, there is no pause.
	Gather time.Duration

	// SocketsOpened is called with 1 when a WebSocket connection begins, and with -1 when it ends. StreamsOpened is the
	// same for event streams, and Started for operations on WebSocket connections. Default: no call.
	SocketsOpened, StreamsOpened, Started func(delta int)
	// Closed is called with the close code when the gateway, not the client, closes a WebSocket connection. Default: no
	// call.
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

// Transport serves the operations of clients, over all protocols, at one endpoint.
type Transport struct {
	cfg     Config
	sockets *sockets
	streams *admission
	// draining is a context that ends when the gateway begins to drain.
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

// ServeHTTP serves a request with the protocol that the client asks for. After a WebSocket upgrade the connection stays
// open although ServeHTTP returns.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		t.sockets.ServeHTTP(w, r)
		return
	}
	t.serveHTTP(w, r)
}

// Drain ends all event streams, so that their clients resume at another gateway. It closes each WebSocket connection
// with 1001 as soon as its queries and mutations are answered. New requests are refused; clients that are sending a
// body may continue for [LateGrace]. Drain returns when everything has ended. If ctx ends before, it aborts the
// remaining WebSocket connections.
func (t *Transport) Drain(ctx context.Context) {
	t.drain()
	ended := t.streams.drain()
	t.sockets.drain(ctx)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Package server is the HTTP edge: transports, limits, identity of requests,
// health and metrics. Its handler serves every API path of the gateway.
package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/graph/transport"
)

// Config of a server. The names in errors are the user's own configuration keys.
type Config struct {
	// Catalogue is the first one that is served. Required.
	Catalogue Catalogue
	// Paths of the API, with the names of the APIs that are served there. The page at
	// / speaks to /v1/graphql, which is required. Default [DefaultPaths].
	Paths map[string]string
	// AfterFunc calls a function once, some time later, unless it is stopped. Default [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Ready returns why the gateway cannot serve now, nil if it can. Default: always ready.
	Ready func(context.Context) error
	// Filling returns lines for /readyz?verbose about kinds that are not in memory yet. Default: none.
	Filling func() []string
	// Logger. Default: none.
	Logger *zap.Logger
	// Metrics is where the server's metrics are registered and what /metrics shows. Default: a new registry.
	Metrics *prometheus.Registry
	// Version and Store are shown on the page at /.
	Version, Store string
	// AllowedHosts are Host names served besides IP addresses and localhost, in
	// any case and without a port. A page on another name cannot reach the API by
	// DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins are Origins of browsers served besides the gateway's own, like "https://app.example.com".
	AllowedOrigins []string
	// Identities find out who asks. Default: everybody is anonymous.
	Identities identity.Authenticator
	// Refused is called for each request that is refused since its caller is unknown, or may not do it. Default: none.
	Refused func(ctx context.Context, refused *failure.Error)
	// Reload answers requests for another catalogue, by callers who have the verb CATALOGUE. It bounds their bodies and
	// sets deadlines that are later than the server's. Default: there is no path for them.
	Reload http.Handler
	// TLS secures connections. Default: none.
	TLS *identity.TLS
	// Limits of requests.
	Limits Limits
	// Caller limits what one caller may take. Default [DefaultCallerLimits].
	Caller CallerLimits
	// SlowLog is how long a query, a mutation or an event of a subscription may take
	// before it is logged. Default: none is.
	SlowLog time.Duration
	// AccessLog logs each operation that is answered, each subscription that begins and each request
	// that is refused.
	AccessLog bool
	// Documents configures the documents that clients can name instead of sending them.
	Documents transport.NamedDocumentsConfig
	// HideIntrospection refuses introspection.
	HideIntrospection bool
	// LoaderWait is how long the first read of a batch of references waits for
	// others. Default 1 ms.
	LoaderWait time.Duration
	// BodyTimeout is how long a client may take to send 64 KiB of a request. Default [transport.DefaultMessageTimeout].
	BodyTimeout time.Duration
	// DrainDelay is how long the server goes on to serve, while it reports that it is not
	// ready, after Serve's context ends. Default: it stops at once.
	DrainDelay time.Duration
	// DrainTimeout is how long running requests may take after that. Default [DefaultDrainTimeout].
	DrainTimeout time.Duration
}

// Limits bound what clients can ask for. Zero means the default, see [DefaultLimits].
type Limits struct {
	// Body is the most bytes of the body of one request.
	Body int64
	// Memory is the most bytes that all clients together make the gateway hold:
	// bodies and messages that are being read or executed, the reads and answers of running
	// operations, answers and events that are being sent. Default: 16 MiB for
	// each processor, but no less than 64 MiB, eight of the largest requests and four of the largest answers.
	Memory int64
	// Connections is the most that are open at once. Default: 1,000 more than Sockets and Streams.
	Connections int
	// Text is the most bytes of names and strings in a document; longer ones go into variables.
	Text int
	// Tokens is the most lexical tokens of a document, comments included.
	Tokens int
	// Depth is the deepest nesting of a document, fragments expanded, and of each value in it.
	Depth int
	// Aliases is the most aliased fields of a document.
	Aliases int
	// Fields is the most fields of a document, fragments expanded; each spread of a fragment counts as well.
	Fields int
	// Validation is the most comparisons of fields that the validation of a
	// document may take: estimated before, and from above.
	Validation int
	// CachedTokens is the most tokens of parsed documents in the cache; each takes 100 to 400 bytes.
	CachedTokens int
	// Repeats is how often one selection set may name the same field.
	Repeats int
	// Fragments is the most named fragments of a document.
	Fragments int
	// Rows is the most resources that an operation may read, Objects the most that it
	// may return, and Steps the work of a processor that it may take, see
	// [budget.Steps]. Each event of a subscription may have a tenth.
	Rows, Objects, Steps int
	// Answer is the most bytes of an answer, and of an event.
	Answer int64
	// Held is the most bytes of stored resources and coerced arguments that an operation holds at a time.
	Held int64
	// Events is how many steps the expensive events of all subscriptions may take at
	// once, beyond [budget.FreeSteps] of each.
	Events int
	// Time is how long a query or mutation may take, parsing included.
	Time time.Duration
	// Sockets is the most WebSocket connections.
	Sockets int
	// SocketsWaiting is the most of them that have not initialised; more close the oldest. Default: half of Sockets.
	SocketsWaiting int
	// Streams is the most answers as server-sent events at once. Default: Sockets.
	Streams int
	// Operations is the most operations that run on one WebSocket connection.
	Operations int
	// Queue is the most events that wait for one client, QueueBytes their bytes.
	Queue, QueueBytes int
	// Message is the most bytes of a WebSocket message. Default: Body.
	Message int64
}

// DefaultLimits returns the defaults that do not follow from other limits.
func DefaultLimits() Limits {
	return Limits{
		Body: 4 << 20, Text: 256 << 10, Tokens: 5000, Depth: 20, Aliases: 100, Fields: 2000, Validation: 500_000, CachedTokens: 100_000,
		Repeats: 20, Fragments: 200, Rows: 200_000, Objects: 100_000, Steps: 10_000_000, Answer: 16 << 20, Held: 32 << 20, Events: 6_000_000, Time: transport.DefaultTime,
		Sockets: transport.DefaultConnections, Operations: transport.DefaultOperations,
		Queue: transport.DefaultQueue, QueueBytes: transport.DefaultQueueBytes,
	}
}

// DefaultDrainTimeout is the default of Config.DrainTimeout.
const DefaultDrainTimeout = 10 * time.Second

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	paths := c.Paths
	if paths == nil {
		paths = DefaultPaths()
	}
	errs := []error{c.ValidateSettings(), c.Catalogue.validate(paths)}
	if paths[consoleEndpoint] == "" {
		errs = append(errs, fmt.Errorf("paths: %s is missing", consoleEndpoint))
	}
	return errors.Join(errs...)
}

// consoleEndpoint is the path to which the page at / sends its requests.
const consoleEndpoint = "/v1/graphql"

// ValidateSettings is [Config.Validate] for the settings of an operator.
func (c Config) ValidateSettings() error {
	l := c.Limits
	errs := []error{c.Caller.Validate(), c.Documents.Validate(), checkHosts(c.AllowedHosts), checkOrigins(c.AllowedOrigins), notNegative(map[string]int64{
		"limit-body": l.Body, "limit-memory": l.Memory, "limit-connections": int64(l.Connections), "limit-text": int64(l.Text), "limit-tokens": int64(l.Tokens),
		"limit-depth": int64(l.Depth), "limit-aliases": int64(l.Aliases), "limit-fields": int64(l.Fields), "limit-repeats": int64(l.Repeats), "limit-time": int64(l.Time),
		"limit-validation": int64(l.Validation), "limit-cached-tokens": int64(l.CachedTokens), "limit-fragments": int64(l.Fragments), "limit-rows": int64(l.Rows),
		"limit-steps": int64(l.Steps), "limit-objects": int64(l.Objects), "limit-answer": l.Answer, "limit-held": l.Held, "limit-events": int64(l.Events),
		"limit-sockets": int64(l.Sockets), "limit-streams": int64(l.Streams), "limit-sockets-waiting": int64(l.SocketsWaiting), "limit-queue": int64(l.Queue),
		"limit-queue-bytes": int64(l.QueueBytes), "limit-operations": int64(l.Operations), "limit-message": l.Message,
		"drain-delay": int64(c.DrainDelay), "drain-timeout": int64(c.DrainTimeout),
		"body-timeout": int64(c.BodyTimeout), "slow-log": int64(c.SlowLog),
	})}
	l.setDefaults()
	if most := max(l.Body, l.Message); l.Memory < 8*most {
		errs = append(errs, fmt.Errorf("limit-memory: %d bytes are less than eight requests of %d (limit-body, limit-message)", l.Memory, most))
	}
	return errors.Join(errs...)
}

// notNegative returns an error that names all settings below zero, nil if there are none.
func notNegative(settings map[string]int64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	if c.Filling == nil {
		c.Filling = func() []string { return nil }
	}
	if c.Refused == nil {
		c.Refused = func(context.Context, *failure.Error) {}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Paths == nil {
		c.Paths = DefaultPaths()
	}
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	c.Limits.setDefaults()
	c.AllowedHosts = lowerAll(c.AllowedHosts)
	c.AllowedOrigins = lowerAll(c.AllowedOrigins)
	fill(&c.DrainTimeout, DefaultDrainTimeout)
}

func (l *Limits) setDefaults() {
	d := DefaultLimits()
	for _, one := range []struct{ limit, value *int }{
		{&l.Text, &d.Text}, {&l.Tokens, &d.Tokens}, {&l.Depth, &d.Depth}, {&l.Aliases, &d.Aliases}, {&l.Fields, &d.Fields},
		{&l.Validation, &d.Validation}, {&l.CachedTokens, &d.CachedTokens}, {&l.Repeats, &d.Repeats}, {&l.Fragments, &d.Fragments},
		{&l.Rows, &d.Rows}, {&l.Steps, &d.Steps}, {&l.Objects, &d.Objects}, {&l.Events, &d.Events}, {&l.Sockets, &d.Sockets},
		{&l.Operations, &d.Operations}, {&l.Queue, &d.Queue}, {&l.QueueBytes, &d.QueueBytes},
	} {
		fill(one.limit, *one.value)
	}
	fill(&l.Body, d.Body)
	fill(&l.Message, l.Body)
	fill(&l.Streams, l.Sockets)
	fill(&l.Answer, d.Answer)
	fill(&l.Held, d.Held)
	fill(&l.Time, d.Time)
	fill(&l.Memory, max(64<<20, int64(runtime.GOMAXPROCS(0))<<24, 8*max(l.Body, l.Message), 4*l.Answer))
	fill(&l.Connections, l.Sockets+l.Streams+1000)
}

func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Package server is the HTTP edge: transports, limits, identity of requests,
// health and metrics. Its handler serves every API path of the gateway.
package server

import (
	"cmp"
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
	"github.com/sluicegw/sluice/internal/span"
)

// Config of a server. The names in errors are the user's own configuration keys.
type Config struct {
	// Catalogue is the first catalogue that is served. Required.
	Catalogue Catalogue
	// AfterFunc calls a function once, some time later, unless it is stopped. Default [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Ready returns the reason why the gateway cannot serve now, nil if it can. Default:
	// always ready.
	Ready func(context.Context) error
	// ReadOnly makes /readyz report that the gateway accepts no changes.
	ReadOnly bool
	// Filling returns the lines of /readyz?verbose about kinds that are still being loaded.
	// Default: none.
	Filling func() []string
	// Services returns the lines of /readyz?verbose about resource services. Default: none.
	Services func() []string
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
	// Identities authenticates callers. Default: every caller is anonymous.
	Identities identity.Authenticator
	// Refused is called for each request that is refused because its caller is unknown or lacks a
	// right. Default: none.
	Refused func(ctx context.Context, refused *failure.Error)
	// Reload handles requests to replace the catalogue, by callers who have the verb CATALOGUE. It
	// limits their bodies and sets its own deadlines. Default: the path does not exist.
	Reload http.Handler
	// Export answers with a full export, for callers who have the verb EXPORT. It sets its own
	// deadlines. Default: the path does not exist.
	Export http.Handler
	// Backup answers with a backup of the store, for callers who have the verb EXPORT. It sets its
	// own deadlines. Default: the path does not exist.
	Backup http.Handler
	// TLS secures connections. Default: none.
	TLS *identity.TLS
	// Limits of requests.
	Limits Limits
	// Caller limits what one caller may take. Default [DefaultCallerLimits].
	Caller CallerLimits
	// Tracer traces requests. Default: none are.
	Tracer *span.Tracer
	// SlowLog is the duration from which a query, a mutation or an event of a
	// subscription is logged as slow. Default: none is logged.
	SlowLog time.Duration
	// AccessLog logs each operation that is answered, each subscription that begins and each request
	// that is refused.
	AccessLog bool
	// Documents configures the documents that clients can refer to by name instead of
	// sending them.
	Documents transport.NamedDocumentsConfig
	// HideIntrospection refuses introspection.
	HideIntrospection bool
	// LoaderWait is how long the first read of a batch of references waits for more
	// reads to join it. Default 1 ms.
	LoaderWait time.Duration
	// AnswersMemory is the maximum number of bytes of cached answers; negative disables the cache.
	// Default [DefaultAnswersMemory].
	AnswersMemory int64
	// DrainDelay is how long the server continues to serve, and reports that it is not
	// ready, after Serve's context ends. Default: it stops at once.
	DrainDelay time.Duration
}

// DefaultAnswersMemory is the default of [Config.AnswersMemory].
const DefaultAnswersMemory = 64 << 20

// Limits bound what clients can request. Zero means the default, see [DefaultLimits].
type Limits struct {
	// Body is the most bytes of the body of one request, and of a WebSocket message.
	Body int64
	// Memory is the most bytes that all clients together make the gateway hold:
	// bodies and messages that are being read or executed, the reads and answers of running
	// operations, answers and events that are being sent. Default: 16 MiB for
	// each processor, but no less than 64 MiB, eight of the largest requests and four of the largest answers.
	Memory int64
	// Connections is the most that are open at once. Default: 1,000 more than twice Sockets.
	Connections int
	// Depth is the deepest nesting of a document, fragments expanded, and of each value in it.
	Depth int
	// Aliases is the most aliased fields of a document.
	Aliases int
	// Fields is the most fields of a document, fragments expanded; each spread of a fragment counts as well.
	Fields int
	// CachedTokens is the most tokens of parsed documents in the cache; each takes 100 to 400 bytes.
	CachedTokens int
	// Rows is the most resources that an operation may read, Objects the most that it
	// may return, and Steps the work of a processor that it may take, see
	// [budget.Steps]. Each event of a subscription may have a tenth.
	Rows, Objects, Steps int
	// Answer is the most bytes of an answer, and of an event.
	Answer int64
	// Held is the most bytes of stored resources and coerced arguments that an operation holds at a time.
	Held int64
	// Events is how many steps all expensive events of subscriptions together may take
	// at a time, beyond the [budget.FreeSteps] of each.
	Events int
	// Time is how long a query or mutation may take, parsing included.
	Time time.Duration
	// Sockets is the most WebSocket connections, and the most answers as server-sent events at once.
	Sockets int
}

// Limits of documents that cannot be set.
const (
	// MaxText is the most bytes of names and strings in a document; longer ones go into variables.
	MaxText = 256 << 10
	// MaxTokens is the most lexical tokens of a document, comments included.
	MaxTokens = 5000
	// MaxRepeats is how often one selection set may name the same field.
	MaxRepeats = 20
	// MaxFragments is the most named fragments of a document.
	MaxFragments = 200
	// MaxValidation is the maximum number of comparisons of fields that the validation of a
	// document may take. The number is estimated, from above, before validation.
	MaxValidation = 500_000
)

// DefaultLimits returns the limits whose defaults do not depend on other limits.
func DefaultLimits() Limits {
	return Limits{
		Body:         transport.DefaultMessage,
		Depth:        20,
		Aliases:      100,
		Fields:       2000,
		CachedTokens: 100_000,
		Rows:         200_000,
		Objects:      100_000,
		Steps:        10_000_000,
		Answer:       16 << 20,
		Held:         32 << 20,
		Events:       6_000_000,
		Time:         transport.DefaultTime,
		Sockets:      transport.DefaultConnections,
	}
}

// Validate returns all problems of the configuration, joined.
func (c Config) Validate() error { return errors.Join(c.ValidateSettings(), c.Catalogue.validate()) }

// CheckFiles returns an error for each file of the configuration that cannot be used.
func (c Config) CheckFiles() (errs []error) {
	for _, path := range c.Documents.Trusted {
		if _, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{Trusted: []string{path}}); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// ValidateSettings is [Config.Validate] without the catalogue.
func (c Config) ValidateSettings() error {
	errs := []error{
		c.Documents.Validate(),
		checkEach("allowed-hosts", c.AllowedHosts, hostRefusal, "names like gateway.example.com"),
		checkEach("allowed-origins", c.AllowedOrigins, originRefusal, "origins like https://app.example.com"),
	}
	l, by := c.Limits, c.Caller
	numbers := map[string]int64{
		"limit-body":                 l.Body,
		"limit-memory":               l.Memory,
		"limit-depth":                int64(l.Depth),
		"limit-aliases":              int64(l.Aliases),
		"limit-fields":               int64(l.Fields),
		"limit-time":                 int64(l.Time),
		"limit-rows":                 int64(l.Rows),
		"limit-steps":                int64(l.Steps),
		"limit-answer":               l.Answer,
		"limit-held":                 l.Held,
		"limit-sockets":              int64(l.Sockets),
		"limit-caller-requests":      int64(by.Requests),
		"limit-caller-subscriptions": int64(by.Subscriptions),
		"limit-caller-sockets":       int64(by.Sockets),
		"limit-caller-rate":          int64(by.Rate),
		"limit-caller-steps":         int64(by.Steps),
		"drain-delay":                int64(c.DrainDelay),
		"slow-log":                   int64(c.SlowLog),
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[name] < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative", name))
		}
	}
	l.setDefaults()
	if l.Memory < 8*l.Body {
		errs = append(errs, fmt.Errorf("limit-memory: %d bytes are less than eight requests of %d (limit-body, limit-message)", l.Memory, l.Body))
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
	if c.Services == nil {
		c.Services = func() []string { return nil }
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
	if c.AfterFunc == nil {
		c.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	fill(&c.AnswersMemory, DefaultAnswersMemory)
	c.Limits.setDefaults()
	c.AllowedHosts = lowerAll(c.AllowedHosts)
	c.AllowedOrigins = lowerAll(c.AllowedOrigins)
}

func (l *Limits) setDefaults() {
	d := DefaultLimits()
	fill(&l.Body, d.Body)
	fill(&l.Depth, d.Depth)
	fill(&l.Aliases, d.Aliases)
	fill(&l.Fields, d.Fields)
	fill(&l.CachedTokens, d.CachedTokens)
	fill(&l.Rows, d.Rows)
	fill(&l.Objects, d.Objects)
	fill(&l.Steps, d.Steps)
	fill(&l.Answer, d.Answer)
	fill(&l.Held, d.Held)
	fill(&l.Events, d.Events)
	fill(&l.Time, d.Time)
	fill(&l.Sockets, d.Sockets)
	fill(&l.Memory, max(64<<20, int64(runtime.GOMAXPROCS(0))<<24, 8*l.Body, 4*l.Answer))
	fill(&l.Connections, 2*l.Sockets+1000)
}

// fill sets a field to its default if it is zero.
func fill[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

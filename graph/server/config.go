// Package server is the HTTP server of the gateway. It authenticates, limits, routes, measures and logs requests. Its
// handler serves all paths: the API in all versions, health and metrics.
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

// Config configures a [Server]. Errors use the names of the gateway's settings.
type Config struct {
	// Catalogue is the catalogue that is served first. Required.
	Catalogue Catalogue
	// AfterFunc calls f once after d, unless it is stopped before. Default [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Ready returns the reason why the gateway cannot serve now; nil if it can. Default: always nil.
	Ready func(context.Context) error
	// ReadOnly makes /readyz report that the gateway accepts no changes.
	ReadOnly bool
	// Filling returns lines for /readyz?verbose about kinds that are being loaded into memory. Default: none.
	Filling func() []string
	// Services returns lines for /readyz?verbose about resource services. Default: none.
	Services func() []string
	// Logger receives the log. Default: none.
	Logger *zap.Logger
	// Metrics is the registry for the server's metrics; /metrics shows all metrics in it. Default: a new registry.
	Metrics *prometheus.Registry
	// Version and Store are shown on the page at /.
	Version, Store string
	// AllowedHosts are accepted in the header Host in addition to IP addresses and localhost, in any case and without a
	// port. Refusing other names prevents DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins are accepted in the header Origin in addition to the gateway's own origin. An example is
	// "https://app.example.com".
	AllowedOrigins []string
	// Identities authenticates callers. Default: every caller is anonymous.
	Identities identity.Authenticator
	// Refused is called for each request that is refused because its caller is not authenticated or lacks a right.
	// Default: no call.
	Refused func(ctx context.Context, refused *failure.Error)
	// Reload handles requests to replace the catalogue. The server checks the verb CATALOGUE; the handler limits the
	// size of bodies and sets deadlines. Default: the path does not exist.
	Reload http.Handler
	// Export answers with a full export. The server checks the verb EXPORT; the handler sets deadlines. Default: the
	// path does not exist.
	Export http.Handler
	// Backup answers with a backup of the store. The server checks the verb EXPORT; the handler sets deadlines.
	// Default: the path does not exist.
	Backup http.Handler
	// TLS configures TLS. Default: connections are not encrypted.
	TLS *identity.TLS
	// Limits limit single requests and all requests together.
	Limits Limits
	// Caller limits each caller. Default [DefaultCallerLimits].
	Caller CallerLimits
	// Tracer traces requests. Default: no traces.
	Tracer *span.Tracer
	// SlowLog is the duration from which a query, mutation or event is logged as slow. If it is zero, nothing is logged
	// as slow.
	SlowLog time.Duration
	// AccessLog turns on a log line for each operation that is answered, each subscription that begins, and each
	// request that is refused.
	AccessLog bool
	// Documents configures the documents that clients can name instead of sending them.
	Documents transport.NamedDocumentsConfig
	// HideIntrospection makes the server refuse introspection. Errors about documents and variables suggest no names.
	HideIntrospection bool
	// LoaderWait is how long the first read of a hand-written resolver waits for other reads, to make one call for all.
	// Default 1 ms.
	LoaderWait time.Duration
	// AnswersMemory is the maximum number of bytes of kept answers. If negative, no answers are kept. Default
	// [DefaultAnswersMemory].
	AnswersMemory int64
	// DrainDelay is how long the server continues to serve after the context of Serve has ended, while it reports that
	// it is not ready. Default 0.
	DrainDelay time.Duration
}

// DefaultAnswersMemory is the default of [Config.AnswersMemory].
const DefaultAnswersMemory = 64 << 20

// Limits are limits of requests. Zero means the default of [DefaultLimits], unless the field says otherwise.
type Limits struct {
	// Body is the maximum size of a request's body, and of a WebSocket message, in bytes.
	Body int64
	// Memory is the maximum number of bytes that all clients together make the gateway hold: bodies and messages that
	// are being read or executed, what running operations have read and written, and answers and events that are being
	// sent. Default: 16 MiB for each processor, but at least 64 MiB, eight times Body, and four times Answer.
	Memory int64
	// Connections is the maximum number of open connections. Default: twice Sockets plus 1,000.
	Connections int
	// Depth is the maximum nesting of a document with its fragments expanded, and of each value in it.
	Depth int
	// Aliases is the maximum number of fields with an alias in a document.
	Aliases int
	// Fields is the maximum number of fields in a document with its fragments expanded. Each spread of a fragment
	// counts as well.
	Fields int
	// CachedTokens is the maximum number of tokens in the cached documents. Each takes 100 to 400 bytes.
	CachedTokens int
	// Rows is the maximum number of resources that an operation reads, Objects the maximum number that it returns, and
	// Steps the maximum work of a processor ([budget.Steps]). An event of a subscription may take a tenth of each.
	Rows, Objects, Steps int
	// Answer is the maximum size of an answer or an event, in bytes.
	Answer int64
	// Held is the maximum number of bytes of stored resources and coerced arguments that an operation holds at a time.
	Held int64
	// Events is the number of steps that the expensive events of all subscriptions may take together at a time. The
	// first [budget.FreeSteps] of each event do not count.
	Events int
	// Time is the maximum duration of a query or mutation, including parsing.
	Time time.Duration
	// Sockets is the maximum number of WebSocket connections, and also of answers sent as server-sent events, at a
	// time.
	Sockets int
}

// Limits of documents that are not configurable.
const (
	// MaxText is the maximum size of names and strings in a document, in bytes. Larger strings must be sent in
	// variables.
	MaxText = 256 << 10
	// MaxTokens is the maximum number of lexical tokens in a document, including comments.
	MaxTokens = 5000
	// MaxRepeats is how often the same field may occur in one selection set.
	MaxRepeats = 20
	// MaxFragments is the maximum number of named fragments in a document.
	MaxFragments = 200
	// MaxValidation is the maximum number of comparisons of fields that validating a document may take. An upper bound
	// of the number is estimated before the validation.
	MaxValidation = 500_000
)

// DefaultLimits returns the defaults of the limits that do not depend on other limits.
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

// CheckFiles returns an error for each file named by the configuration that cannot be used.
func (c Config) CheckFiles() (errs []error) {
	for _, path := range c.Documents.Trusted {
		if _, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{Trusted: []string{path}}); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// ValidateSettings is like [Config.Validate], but does not check the catalogue.
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

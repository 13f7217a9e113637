package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/traced"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/internal/span"
)

// flushTime is how long a gateway that stops waits until the collector has received the last spans.
const flushTime = 3 * time.Second

// traces exports the spans of the gateway. A nil traces does nothing.
type traces struct {
	tracer   *span.Tracer
	provider *sdktrace.TracerProvider
	log      *zap.Logger
}

// traceSettings are the settings of traces: the setting otel-endpoint, and environment variables of OpenTelemetry. The
// exporter itself reads further variables: OTEL_EXPORTER_OTLP_..., OTEL_BSP_..., OTEL_RESOURCE_ATTRIBUTES.
type traceSettings struct {
	endpoint string // setting otel-endpoint
	lookup   func(name string) string
}

// wanted reports whether the settings ask for traces. It returns an error if a variable has a value that is not
// supported.
func (s traceSettings) wanted() (bool, error) {
	switch exporter := s.lookup("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q; accepted are otlp and none", exporter)
	}
	if strings.EqualFold(s.lookup("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	protocol := cmp.Or(s.lookup("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), s.lookup("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q; accepted is http/protobuf", protocol)
	}
	return cmp.Or(
		s.endpoint, s.lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), s.lookup("OTEL_EXPORTER_OTLP_ENDPOINT"),
		s.lookup("OTEL_TRACES_EXPORTER"),
	) != "", nil
}

// check returns an error that joins all problems with the settings. If traces are not exported, it returns nil.
func (s traceSettings) check(ctx context.Context) error {
	wanted, err := s.wanted()
	if !wanted && err == nil {
		return nil
	}
	_, unknownSampler := s.sampler()
	_, malformed := aboutGateway(ctx)
	return errors.Join(err, unknownSampler, malformed, s.checkVariables(ctx))
}

// aboutGateway returns the attributes that describe the gateway in all spans.
func aboutGateway(ctx context.Context) (*resource.Resource, error) {
	about, err := resource.New(
		ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "sluice"),
			attribute.String("service.version", version.Text()),
			attribute.String("service.instance.id", strconv.FormatUint(rand.Uint64(), 36)),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// openTraces returns the exporter of traces; nil if they are not exported. It does not connect to the collector yet.
func openTraces(ctx context.Context, s traceSettings, log *zap.Logger) (*traces, error) {
	wanted, err := s.wanted()
	if err != nil {
		return nil, exit.Usage(err)
	}
	if !wanted {
		return nil, nil
	}
	sampler, err := s.sampler()
	if err != nil {
		return nil, exit.Usage(err)
	}
	if err := s.checkVariables(ctx); err != nil {
		return nil, exit.Usage(errors.New(exit.OneLine(err)))
	}
	var options []otlptracehttp.Option
	if s.endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(strings.TrimSuffix(s.endpoint, "/")+"/v1/traces"))
	}
	client, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("otel-endpoint: %w", err))
	}
	about, err := aboutGateway(ctx)
	if err != nil {
		return nil, exit.Usage(err)
	}
	// The library has one error handler per process. What operators must know is logged by exporter.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("traces", zap.Error(err)) }))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&exporter{SpanExporter: client, log: log}),
		sdktrace.WithResource(about),
		sdktrace.WithIDGenerator(span.IDs{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the tracer has asked the sampler before
	)
	return &traces{tracer: span.NewTracer(provider, sampler), provider: provider, log: log}, nil
}

// Tracer returns the tracer; nil if there is none.
func (t *traces) Tracer() *span.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Store returns a store with traced calls. remote reports whether the store is in another process.
func (t *traces) Store(store backend.Store, remote bool) backend.Store {
	switch {
	case t == nil:
		return store
	case remote:
		return traced.NewRemote(store, "redis")
	}
	return traced.New(store, "bbolt")
}

// Run exports spans until ctx ends, and then the last ones, for at most flushTime.
func (t *traces) Run(ctx context.Context) error {
	<-ctx.Done()
	if t == nil {
		return nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ending); err != nil {
		t.log.Warn("the last spans of traces were not exported", zap.Error(err))
	}
	return nil
}

// sampler returns the sampler that the environment variables of OpenTelemetry select. Default: parentbased_always_on.
func (s traceSettings) sampler() (func(parent trace.SpanContext, id trace.TraceID) bool, error) {
	name := cmp.Or(s.lookup("OTEL_TRACES_SAMPLER"), "parentbased_always_on")
	argument := s.lookup("OTEL_TRACES_SAMPLER_ARG")
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	var root sdktrace.Sampler
	switch kind {
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "always_off":
		root = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(argument, "1"), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q; a number from 0 to 1 is accepted", argument)
		}
		root = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf(
			"OTEL_TRACES_SAMPLER: %q; accepted are always_on, always_off and traceidratio, also with parentbased_ before", name,
		)
	}
	return func(parent trace.SpanContext, id trace.TraceID) bool {
		if parentBased && parent.IsValid() {
			return parent.IsSampled()
		}
		p := sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}
		return root.ShouldSample(p).Decision == sdktrace.RecordAndSample
	}, nil
}

// exporter exports spans to the collector. Spans that the collector does not accept are lost. exporter logs the first
// failure of a series, and the first success after it.
type exporter struct {
	sdktrace.SpanExporter
	log    *zap.Logger
	failed bool // whether the last export failed; only one batch is exported at a time
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.failed:
		e.failed = true
		e.log.Warn("traces are lost: the collector does not take them", zap.Error(withoutURL(err)))
	case err == nil && e.failed:
		e.failed = false
		e.log.Info("the collector takes traces again")
	}
	return nil
}

// urls matches the URLs in a text.
var urls = regexp.MustCompile(`https?://\S+`)

// maxExportError is the maximum length of a logged error of the collector, in bytes. Its answer may be long.
const maxExportError = 300

// withoutURL returns an error without the URL of the request, which may contain a credential.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	text := urls.ReplaceAllString(err.Error(), "the collector")
	if len(text) > maxExportError {
		text = strings.ToValidUTF8(text[:maxExportError], "") + "..."
	}
	return errors.New(text)
}

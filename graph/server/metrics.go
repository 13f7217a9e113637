package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/answer"
)

// metrics are the metrics of a server. No label has values that clients choose.
type metrics struct {
	requests  *prometheus.HistogramVec
	operation *prometheus.HistogramVec
	calls     *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	// sockets, streams and operations are numbers of open WebSocket connections, streams, and operations on sockets.
	sockets, streams, operations prometheus.Gauge
	closed                       *prometheus.CounterVec
	// spent observes how much an operation or event has spent of each thing, unless that is nothing.
	spent [budget.Things]prometheus.Observer

	// badTimes counts invalid times in stored resources.
	badTimes *prometheus.CounterVec
	// deprecated counts the operations that use a deprecated part of the schema, by the coordinate of the part.
	deprecated *prometheus.CounterVec
	// versions counts the operations of each API, if the catalogue has released versions.
	versions *prometheus.CounterVec
	// catalogue is 1 for the catalogue that is being served.
	catalogue *prometheus.GaugeVec
}

// newMetrics returns the metrics of a server, which it registers.
func newMetrics(s *Server) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	duration := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)},
			labels,
		)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gaugeFunc := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	waiting := func(what string, n func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_operations_waiting",
			Help: "Operations and events that wait: for memory (limit-memory), or for a turn because they run " +
				"for long.",
			ConstLabels: prometheus.Labels{"for": what},
		}, func() float64 { return float64(n()) })
	}
	m := &metrics{
		requests: duration(
			"sluice_http_request_duration_seconds",
			"Time to answer an HTTP request, by path, method and status.",
			"path",
			"method",
			"status",
		),
		operation: duration(
			"sluice_operation_duration_seconds",
			"Time to answer a query or mutation, and to send an event of a subscription after its change has "+
				"reached the gateway; by operation type (call and stream for gRPC), and by the kind and the verb of "+
				"the first root field.",
			"type",
			"kind",
			"verb",
		),
		calls: duration(
			"sluice_call_duration_seconds",
			"Time to answer a call over gRPC, gRPC-Web or Connect, by method and the code of gRPC, without streams "+
				"and calls that are refused before they run.",
			"method",
			"code",
		),
		errors: counter(
			"sluice_operation_errors_total",
			"Errors in answers, by operation type (call and stream for gRPC), the kind of the first root field, "+
				"and extensions.code. The type and the kind are \"none\" for requests that are refused before they are "+
				"executed; the kind is \"none\" for fields without a kind.",
			"type",
			"kind",
			"code",
		),
		sockets:    gauge("sluice_websockets", "Open WebSocket connections."),
		streams:    gauge("sluice_event_streams", "Answers as server-sent events that are under way."),
		operations: gauge("sluice_websocket_operations", "Operations that run on WebSocket connections."),
		closed: counter(
			"sluice_websockets_closed_total",
			"WebSocket connections that the gateway closed, by close code.",
			"code",
		),
		badTimes: counter(
			"sluice_bad_times_total",
			"Malformed times in stored resources, which were shown as null, by kind.",
			"kind",
		),
		deprecated: counter(
			"sluice_deprecated_uses_total",
			"Operations that use a deprecated field, argument or enum value, by its schema coordinate.",
			"field",
		),
		versions: counter(
			"sluice_version_operations_total",
			"Operations by released version of the API, unreleased for those at /graphql; none where the "+
				"catalogue has no versions. A version can be withdrawn once its counter stands still.",
			"version",
		),
		catalogue: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_catalogue_info",
			Help: "Always 1; the labels name the catalogue that is served: the hash of what it says of stored " +
				"resources, and that of its files.",
		}, []string{"hash", "files"}),
	}
	all := []prometheus.Collector{
		m.badTimes,
		m.deprecated,
		m.versions,
		m.catalogue,
		m.requests,
		m.operation,
		m.calls,
		m.errors,
		m.sockets,
		m.streams,
		m.operations,
		m.closed,
		waiting("memory", s.memory.Waiting),
		waiting("turn", s.cpuSlots.Waiting),
		gaugeFunc(
			"sluice_ready",
			"1 if /readyz answers that the gateway is ready, else 0. If that takes longer than 0.1 s, the answer is "+
				"shown by the next scrape.",
			func() float64 {
				if s.isReady() {
					return 1
				}
				return 0
			},
		),
		gaugeFunc(
			"sluice_request_bytes",
			"Bytes of limit-memory that are in use: requests, what operations hold, answers and events that are "+
				"being sent.",
			func() float64 { return float64(s.memory.Used()) },
		),
		gaugeFunc(
			"sluice_request_limit_bytes",
			"Bytes that requests, operations, answers and events may take (limit-memory).",
			func() float64 { return float64(s.cfg.Limits.Memory) },
		),
		gaugeFunc(
			"sluice_catalogue_older_streams",
			"Change streams that began on a catalogue that was replaced since.",
			func() float64 { _, n := s.olderStreams(); return float64(n) },
		),
		gaugeFunc(
			"sluice_answers_bytes",
			"Bytes of answers-memory that kept answers take.",
			func() float64 { return float64(s.generation.Load().answers.Size()) },
		),
	}
	for o := range answer.Outcomes {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_answers_total",
			Help: "Queries by outcome. hit: a kept answer was given; shared: the answer of an equal query at the same " +
				"time was given; changed, new, small and unkept: the query was executed.",
			ConstLabels: prometheus.Labels{"outcome": o.String()},
		}, func() float64 { return float64(s.answered[o].Load()) }))
	}
	names := [budget.Things]string{
		budget.Rows:    "rows",
		budget.Objects: "objects",
		budget.Bytes:   "answer_bytes",
		budget.Held:    "held_bytes",
		budget.Steps:   "steps",
		budget.Events:  "event_steps",
	}
	for t := range budget.Things {
		spent := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_operation_" + names[t], Help: "What operations and events spend of " + t.Key() + ".",
			Buckets: prometheus.ExponentialBuckets(1, 10, 9),
		})
		m.spent[t], all = spent, append(all, spent)
	}
	for _, c := range all {
		if err := s.cfg.Metrics.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// serve updates the metric catalogue for another generation.
func (m *metrics) serve(before, now *Generation) {
	m.catalogue.WithLabelValues(now.catalogue.Hash, now.catalogue.Files).Set(1)
	if before != nil && (before.catalogue.Hash != now.catalogue.Hash || before.catalogue.Files != now.catalogue.Files) {
		m.catalogue.DeleteLabelValues(before.catalogue.Hash, before.catalogue.Files)
	}
}

func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	path := r.Pattern
	if _, alone, found := strings.Cut(path, " "); found { // the pattern names a method too
		path = alone
	}
	if path == "" {
		path = "other"
	}
	method := r.Method
	if method != http.MethodGet && method != http.MethodPost {
		method = "other"
	}
	m.requests.WithLabelValues(path, method, strconv.Itoa(status)).Observe(took.Seconds())
}

package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// services returns the lines about resource services in /readyz?verbose. The state of a service never makes the gateway
// unready, because its resources are read from the mirror.
func (c *catalogues) services() (lines []string) {
	for _, of := range c.current().Owners() {
		lines = append(lines, ownerLine(of))
		for _, k := range of.Kinds {
			if k.Problem != "" {
				lines = append(lines, fmt.Sprintf("service %s kind %s CONTRADICTED: %s", of.Name, k.Name, k.Problem))
			}
		}
	}
	for _, of := range c.current().Reviewers() {
		lines = append(lines, reviewerLine(of))
	}
	return lines
}

// reviewerLine returns a line about a resource service that reviews changes.
func reviewerLine(state service.ReviewerState) string {
	line := fmt.Sprintf("reviews of %s by service %s %s", strings.Join(state.Kinds, ", "), state.Name, state.State)
	if state.Problem != "" {
		line += ": " + state.Problem
	}
	return line
}

// ownerLine returns a line about a resource service that owns kinds.
func ownerLine(state service.OwnerState) string {
	line := fmt.Sprintf("service %s %s", state.Name, state.State)
	if state.Lag > 0 {
		line += fmt.Sprintf(", %.1f s behind", state.Lag.Seconds())
	}
	for _, of := range []struct {
		count int
		what  string
	}{
		{state.Unreadable, "unreadable"},
		{state.Unnamed, "with keys that the API cannot have"},
		{state.Held, "held back though they have vanished"},
	} {
		if of.count > 0 {
			line += fmt.Sprintf(", %d %s", of.count, of.what)
		}
	}
	if state.Problem != "" {
		line += ": " + state.Problem
	}
	return line
}

// unconfigured returns a line for each service that kinds name but that is not configured.
func unconfigured(kinds []descriptor.Kind, configured func(service string) bool) (lines []string) {
	owned := map[string][]string{}
	reviewed := map[string][]string{}
	add := func(of map[string][]string, service, kind string) {
		if service != "" && !configured(service) {
			of[service] = append(of[service], kind)
		}
	}
	for _, k := range kinds {
		add(owned, k.Service, k.Name)
		switch {
		case k.ReviewAllowsFailure:
			add(reviewed, k.Review, k.Name+" (stored unreviewed)")
		default:
			add(reviewed, k.Review, k.Name+" (refused)")
		}
	}
	for _, service := range slices.Sorted(maps.Keys(owned)) {
		lines = append(lines, fmt.Sprintf("the service %s is not configured under services, and owns kinds that can only be "+
			"read without it: %s", service, strings.Join(owned[service], ", ")))
	}
	for _, service := range slices.Sorted(maps.Keys(reviewed)) {
		lines = append(lines, fmt.Sprintf("the service %s is not configured under services, and reviews changes of kinds, "+
			"which without it are stored unreviewed or refused: %s", service, strings.Join(reviewed[service], ", ")))
	}
	return lines
}

func logUnconfigured(log *zap.Logger, svc *service.Service) {
	for _, line := range unconfigured(svc.Stored(), svc.Asks) {
		log.Warn(line)
	}
}

// callsMetric returns the counter of calls of resource services.
func callsMetric() *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{
			Name: "sluice_service_calls_total",
			Help: "Calls of resource services, by service, method (reviews are calls of Write) and outcome: that of " +
				"the answer (DONE, CONFLICT, ...), OK for calls that only read, or NOT_SENT, LOST, UNIMPLEMENTED, " +
				"CANCELLED.",
		},
		[]string{"service", "method", "outcome"},
	)
}

// counted returns the services, with clients that count their calls.
func counted(services map[string]owner.Service, calls *prometheus.CounterVec) map[string]owner.Service {
	out := make(map[string]owner.Service, len(services))
	for name, s := range services {
		out[name] = owner.Observed(s, func(method, outcome string) {
			calls.WithLabelValues(name, method, outcome).Inc()
		})
	}
	return out
}

// serviceMetrics collects the metrics about the resource services of the served catalogue.
type serviceMetrics struct {
	states                          func() []service.OwnerState
	reviewers                       func() []service.ReviewerState
	state, lag, unreadable, unnamed *prometheus.Desc
	held, contradicted              *prometheus.Desc
	compared, different             *prometheus.Desc
	review                          *prometheus.Desc
}

// serviceMetrics returns the metrics of resource services.
func (c *catalogues) serviceMetrics() prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"service"}, labels...), nil)
	}
	return &serviceMetrics{
		states:    func() []service.OwnerState { return c.current().Owners() },
		reviewers: func() []service.ReviewerState { return c.current().Reviewers() },
		state: desc("sluice_service_state", "Always 1; state says how far the mirror of a resource service "+
			"is: CONNECTING, FILLING, FOLLOWED (complete), UNAVAILABLE or UNKNOWN (not configured).", "state"),
		lag: desc("sluice_service_lag_seconds", "For how long the mirror of a resource service has been "+
			"behind it; 0 if nothing is left to copy."),
		unreadable: desc("sluice_service_unreadable_resources",
			"Resources that a resource service could not show, or that could not be stored: its team has to "+
				"mend them."),
		unnamed: desc("sluice_service_unnamed_resources", "Resources of a resource service whose keys the API "+
			"cannot have."),
		held: desc("sluice_service_held_resources",
			"Resources that seem to have vanished from a resource service at once, and are deleted here ten "+
				"minutes later: find out before whether they are really gone."),
		contradicted: desc("sluice_service_contradicted_kinds",
			"Kinds that cannot be written because their resource service contradicts the catalogue; "+
				"/readyz?verbose says why."),
		compared: desc("sluice_service_compared_total",
			"Resources of a resource service that were compared with its mirror."),
		different: desc("sluice_service_differences_total",
			"Resources of a resource service that differed from its mirror when they were compared: many after the "+
				"first comparison mean that Changes misses some."),
		review: desc("sluice_service_review_state", "Always 1; state says whether a service that reviews changes "+
			"answered when it was asked last: ANSWERS, UNAVAILABLE, UNASKED (not asked yet) or UNKNOWN (not "+
			"configured).", "state"),
	}
}

// Describe implements [prometheus.Collector].
func (m *serviceMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		m.state, m.lag, m.unreadable, m.unnamed, m.held, m.contradicted, m.compared, m.different, m.review,
	} {
		to <- desc
	}
}

// Collect implements [prometheus.Collector].
func (m *serviceMetrics) Collect(to chan<- prometheus.Metric) {
	for _, state := range m.states() {
		add := func(desc *prometheus.Desc, value float64, labels ...string) {
			labels = append([]string{state.Name}, labels...)
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		}
		contradicted := 0
		for _, k := range state.Kinds {
			if k.Problem != "" {
				contradicted++
			}
		}
		count := func(desc *prometheus.Desc, value int64) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), state.Name)
		}
		count(m.compared, state.Compared)
		count(m.different, state.Different)
		add(m.state, 1, string(state.State))
		add(m.lag, state.Lag.Seconds())
		add(m.unreadable, float64(state.Unreadable))
		add(m.unnamed, float64(state.Unnamed))
		add(m.held, float64(state.Held))
		add(m.contradicted, float64(contradicted))
	}
	for _, state := range m.reviewers() {
		to <- prometheus.MustNewConstMetric(m.review, prometheus.GaugeValue, 1, state.Name, string(state.State))
	}
}

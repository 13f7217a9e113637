package gateway

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service"
)

// services returns the lines of /readyz?verbose about the resource services of other teams. None of them makes the
// gateway unready: what they own is read from its mirror.
func (c *catalogues) services() (lines []string) {
	for _, owner := range c.current().Owners() {
		lines = append(lines, ownerLine(owner))
		for _, k := range owner.Kinds {
			if k.Problem != "" {
				lines = append(lines, fmt.Sprintf("service %s kind %s CONTRADICTED: %s", owner.Name, k.Name, k.Problem))
			}
		}
	}
	return lines
}

// ownerLine describes a resource service in a line.
func ownerLine(owner service.OwnerState) string {
	line := fmt.Sprintf("service %s %s", owner.Name, owner.State)
	if owner.Lag > 0 {
		line += fmt.Sprintf(", %.1f s behind", owner.Lag.Seconds())
	}
	for _, of := range []struct {
		count int
		what  string
	}{
		{owner.Unreadable, "unreadable"},
		{owner.Unnamed, "with keys that the API cannot have"},
		{owner.Held, "held back though they have vanished"},
	} {
		if of.count > 0 {
			line += fmt.Sprintf(", %d %s", of.count, of.what)
		}
	}
	if owner.Problem != "" {
		line += ": " + owner.Problem
	}
	return line
}

// logUnknown logs which kinds can only be read, because their services are not configured.
func logUnknown(log *zap.Logger, svc *service.Service) {
	for _, owner := range svc.Owners() {
		if owner.State != service.OwnerUnknown {
			continue
		}
		names := make([]string, len(owner.Kinds))
		for i, k := range owner.Kinds {
			names[i] = k.Name
		}
		log.Warn("kinds of a service that is not configured can be read and not be written; configure it under services",
			zap.String("service", owner.Name), zap.String("kinds", strings.Join(names, ", ")))
	}
}

// serviceMetrics collects what the gateway knows of the resource services of the catalogue that is served.
type serviceMetrics struct {
	states                          func() []service.OwnerState
	state, lag, unreadable, unnamed *prometheus.Desc
	held, contradicted              *prometheus.Desc
}

// serviceMetrics returns the metrics of resource services.
func (c *catalogues) serviceMetrics() prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"service"}, labels...), nil)
	}
	return &serviceMetrics{
		states: func() []service.OwnerState { return c.current().Owners() },
		state:  desc("sluice_service_state", "1 for the state of a resource service, by service and state.", "state"),
		lag:    desc("sluice_service_lag_seconds", "For how long the mirror of a resource service has been behind it; 0: it is not."),
		unreadable: desc("sluice_service_unreadable_resources",
			"Resources that a resource service could not show, or that could not be stored."),
		unnamed: desc("sluice_service_unnamed_resources", "Resources of a resource service whose keys the API cannot have."),
		held: desc("sluice_service_held_resources",
			"Resources that seem to have vanished from a resource service at once, and are kept for a while."),
		contradicted: desc("sluice_service_contradicted_kinds",
			"Kinds that cannot be written because their resource service contradicts the catalogue."),
	}
}

// Describe is part of [prometheus.Collector].
func (m *serviceMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect is part of [prometheus.Collector].
func (m *serviceMetrics) Collect(to chan<- prometheus.Metric) {
	for _, owner := range m.states() {
		add := func(desc *prometheus.Desc, value float64, labels ...string) {
			labels = append([]string{owner.Name}, labels...)
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		}
		contradicted := 0
		for _, k := range owner.Kinds {
			if k.Problem != "" {
				contradicted++
			}
		}
		add(m.state, 1, string(owner.State))
		add(m.lag, owner.Lag.Seconds())
		add(m.unreadable, float64(owner.Unreadable))
		add(m.unnamed, float64(owner.Unnamed))
		add(m.held, float64(owner.Held))
		add(m.contradicted, float64(contradicted))
	}
}

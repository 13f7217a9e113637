package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// ownedShelves is a catalogue whose only kind belongs to the service crm.
func ownedShelves() string {
	return strings.Replace(shelves, "scope: NAMESPACED", `scope: NAMESPACED, service: "crm"`, 1)
}

func TestServices_AnUnknownServiceLeavesTheGatewayReady(t *testing.T) {
	s := openShop(t, ownedShelves())
	if got := s.post(`{ shelves { nodes { id } } kinds { service { name state lagSeconds followed } } }`); !strings.Contains(got,
		`"service":{"name":"crm","state":"UNKNOWN","lagSeconds":0,"followed":false}`) || strings.Contains(got, "errors") {
		t.Errorf("reads: %s", got)
	}
	want := []string{"service crm UNKNOWN: the service is not configured on this gateway"}
	if diff := cmp.Diff(want, s.catalogues.services()); diff != "" {
		t.Error(diff)
	}
	if err := s.catalogues.ready(s.store, 0)(t.Context()); err != nil {
		t.Errorf("the gateway is not ready: %v", err)
	}
	core, log := observer.New(zap.WarnLevel)
	logUnconfigured(zap.New(core), s.catalogues.current())
	const line = "the service crm is not configured under services, and owns kinds that can only be read without it: Shelf"
	if log.Len() != 1 || log.All()[0].Message != line {
		t.Errorf("the log has %v", log.All())
	}
	settings := config.NewGateway()
	settings.Catalogue.Dir = s.dir
	for _, configured := range []bool{false, true} {
		if configured {
			settings.Services = config.Services{"crm": {Address: "http://127.0.0.1:1"}}
		}
		report, err := (&Gateway{Gateway: settings}).Check(t.Context(), zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if found := slices.Contains(report.Problems, "services: "+line); found == configured {
			t.Errorf("configured: %v, the check says %q", configured, report.Problems)
		}
	}
}

func TestServices_WithoutReviewersChangesAreRefusedOrNot(t *testing.T) {
	kinds := []descriptor.Kind{
		{Name: "A", Review: "policy"}, {Name: "B", Review: "policy", ReviewAllowsFailure: true}, {Name: "C", Review: "law"},
		{Name: "D", Service: "crm"}, {Name: "E"},
	}
	want := []string{
		"the service policy is not configured under services, and reviews changes of kinds, which without it are " +
			"stored unreviewed or refused: A (refused), B (stored unreviewed)",
	}
	if diff := cmp.Diff(want, unconfigured(kinds, func(name string) bool { return name != "policy" })); diff != "" {
		t.Error(diff)
	}
}

func TestServices_ThoseThatOnlyReviewHaveAState(t *testing.T) {
	s := openShop(t, strings.Replace(shelves, "scope: NAMESPACED", `scope: NAMESPACED, review: "policy"`, 1))
	if got := s.post(`{ kinds { name review { name state } } }`); !strings.Contains(got,
		`{"name":"Shelf","review":{"name":"policy","state":"UNKNOWN"}}`) {
		t.Errorf("kinds: %s", got)
	}
	want := []string{"reviews of Shelf by service policy UNKNOWN: the service is not configured on this gateway"}
	if diff := cmp.Diff(want, s.catalogues.services()); diff != "" {
		t.Error(diff)
	}
	got := reviewerLine(service.ReviewerState{Name: "policy", State: service.ReviewerAnswers, Kinds: []string{"A", "B"}})
	if got != "reviews of A, B by service policy ANSWERS" {
		t.Error(got)
	}
}

func TestServices_CallsAreCounted(t *testing.T) {
	calls := callsMetric()
	crm := counted(map[string]owner.Service{"crm": ownertest.New("crm", ownertest.Full("Account"))}, calls)["crm"]
	if _, err := crm.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(calls)
	got, err := reg.Gather()
	if err != nil || len(got) != 1 || len(got[0].GetMetric()) != 1 || got[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("%v %v", got, err)
	}
}

func TestServices_AStateIsALine(t *testing.T) {
	for _, c := range []struct {
		state service.OwnerState
		want  string
	}{
		{service.OwnerState{Name: "crm", State: service.OwnerFollowed}, "service crm FOLLOWED"},
		{
			service.OwnerState{
				Name: "crm", State: service.OwnerUnavailable, Problem: "connection refused",
				Lag: 12300 * time.Millisecond, Unreadable: 2, Unnamed: 3, Held: 4,
			},
			"service crm UNAVAILABLE, 12.3 s behind, 2 unreadable, 3 with keys that the API cannot have, " +
				"4 held back though they have vanished: connection refused",
		},
	} {
		if got := ownerLine(c.state); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestServices_AreMetrics(t *testing.T) {
	s := openShop(t, ownedShelves())
	m := s.catalogues.serviceMetrics().(*serviceMetrics)
	m.states = func() []service.OwnerState {
		return []service.OwnerState{{
			Name: "crm", State: service.OwnerFollowed, Lag: 2 * time.Second, Unreadable: 3, Unnamed: 4, Held: 5,
			Compared: 70, Different: 6,
			Kinds: []service.OwnedKind{{Name: "Shelf", Problem: "it cannot be written"}, {Name: "Rack"}},
		}}
	}
	m.reviewers = func() []service.ReviewerState {
		return []service.ReviewerState{{Name: "policy", State: service.ReviewerUnavailable}}
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(m)
	got, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range got {
		for _, metric := range family.GetMetric() {
			values[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"sluice_service_state": 1, "sluice_service_lag_seconds": 2, "sluice_service_unreadable_resources": 3,
		"sluice_service_unnamed_resources": 4, "sluice_service_held_resources": 5, "sluice_service_contradicted_kinds": 1,
		"sluice_service_compared_total": 70, "sluice_service_differences_total": 6, "sluice_service_review_state": 1,
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

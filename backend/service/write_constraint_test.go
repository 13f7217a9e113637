package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// gauge is a kind with the constraints that no kind of the embedded catalogue has.
func gauge() descriptor.Kind {
	n := func(i int) *int { return &i }
	x := func(f float64) *float64 { return &f }
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural, k.FilterableFields = "Gauge", "gauge", "gauges", nil
	mark := &descriptor.Shape{Name: "Mark", MinProperties: 2, MaxProperties: 3, Fields: []descriptor.Field{
		{Name: "a", Type: descriptor.TypeInt}, {Name: "b", Type: descriptor.TypeBoolean}, {Name: "c", Type: descriptor.TypeFloat}, {Name: "d", Type: descriptor.TypeSafeInt},
	}}
	k.Spec = &descriptor.Shape{Name: "GaugeSpec", Fields: []descriptor.Field{
		{Name: "unit", Type: descriptor.TypeString, Required: true, Constraint: descriptor.Constraint{In: []string{"mm", "kg"}, MinLength: n(2), MaxLength: n(2)}},
		{Name: "host", Type: descriptor.TypeString, Constraint: descriptor.Constraint{Format: descriptor.FormatName, MinLength: n(1), MaxLength: n(253)}},
		{Name: "since", Type: descriptor.TypeString, Constraint: descriptor.Constraint{Format: descriptor.FormatDateTime, MinLength: n(20), MaxLength: n(30)}},
		{Name: "reading", Type: descriptor.TypeFloat, Constraint: descriptor.Constraint{Min: x(-0.5), Max: x(99.9)}},
		{Name: "marks", Type: descriptor.TypeObject, Shape: mark, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MinItems: n(1), MaxItems: n(3)}},
		{Name: "steps", Type: descriptor.TypeInt, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{Unique: true, MaxItems: n(10), Min: x(4), Max: x(20)}},
		{Name: "notes", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MinItems: n(2), MaxItems: n(9), MinLength: n(1), MaxLength: n(7), Pattern: "^[^,]*$", KeyMinLength: n(2), KeyMaxLength: n(6), KeyPattern: "^[^-]*$"}},
		{Name: "extras", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MaxItems: n(4), MaxLength: n(5)}},
	}}
	return k
}

// TestWrite_EveryConstraintTakesItsLimitAndRefusesWhatIsJustPastIt asks every
// constraint of every kind: each accepts a value at its limit, and refuses the
// next by its path, rule and limit.
func TestWrite_EveryConstraintTakesItsLimitAndRefusesWhatIsJustPastIt(t *testing.T) {
	t.Parallel()
	catalogue := append(kindstest.Kinds(t), servicetest.Widget(), gauge())
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s, err := service.New(service.Config{Kinds: catalogue, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]int{}
	for _, k := range catalogue {
		t.Run(k.Name, func(t *testing.T) {
			p := probesOf(k)
			for i, probe := range p.probes {
				rules[probe.rule]++
				probe.try(t, s, kind.Identity{Kind: k.Name, Name: fmt.Sprint("n", i)})
			}
			t.Logf("%d constraints", len(p.probes))
			if diff := cmp.Diff(withoutValue(k.Name, p.absent), p.absent); diff != "" {
				t.Errorf("limits of which there is no value (-want +got):\n%s", diff)
			}
		})
	}
	for _, rule := range strings.Fields("required type unknown enum unique min max minLength maxLength pattern format in minItems maxItems minProperties maxProperties keyMinLength keyMaxLength keyPattern") {
		if rules[rule] == 0 {
			t.Errorf("no kind here has a constraint %s", rule)
		}
	}
}

// withoutValue are those limits of a kind of which no value is at the limit: the
// shortest CIDR prefix has four characters.
func withoutValue(kind string, absent []string) []string {
	var out []string
	for _, a := range absent {
		path, rule, _ := strings.Cut(a, " ")
		if name := path[strings.LastIndexByte(path, '.')+1:]; rule == "minLength" && slices.Contains([]string{"cidr", "destination", "remoteIPPrefix", "buildNearHostIP"}, name) {
			out = append(out, a)
		}
	}
	return out
}

// try creates a resource with the good value, and another with the bad one.
func (p probe) try(t *testing.T, s *service.Service, id kind.Identity) {
	t.Helper()
	if _, err := s.Writer.Create(context.Background(), service.CreateRequest{Identity: id, Spec: p.good}); err != nil {
		t.Errorf("%s %s %v: %s is refused: %v", p.path, p.rule, p.limit, shown(p.good), err)
	}
	id.Name += "-bad"
	_, err := s.Writer.Create(context.Background(), service.CreateRequest{Identity: id, Spec: p.bad})
	if err == nil {
		t.Errorf("%s %s %v: %s is accepted", p.path, p.rule, p.limit, shown(p.bad))
		return
	}
	e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
	i := slices.IndexFunc(e.Violations, func(v failure.Violation) bool {
		return v.Path == p.violationPath() && v.Rule == p.rule && (p.limit == nil || sameLimit(v.Limit, p.limit))
	})
	if i < 0 || len(e.Violations) != 1+p.others {
		t.Errorf("%s %s %v: %s is reported as %+v", p.path, p.rule, p.limit, shown(p.bad), e.Violations)
	}
}

// violationPath returns the path of the violation.
func (p probe) violationPath() string {
	if p.rule == "unknown" {
		return p.path + ".noSuchField"
	}
	return p.path
}

// sameLimit compares a limit as number where it is one.
func sameLimit(got, want any) bool {
	g, errG := strconv.ParseFloat(fmt.Sprint(got), 64)
	w, errW := strconv.ParseFloat(fmt.Sprint(want), 64)
	if errG == nil && errW == nil {
		return g == w
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}

// shown is the beginning of a spec.
func shown(spec any) string {
	b, _ := json.Marshal(spec)
	return fmt.Sprintf("%.300s", b)
}

package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// logbook is a kind whose status has every sort of maximum.
func logbook() descriptor.Kind {
	n := func(i int) *int { return &i }
	k := servicetest.Widget()
	k.Name, k.Singular, k.Plural, k.FilterableFields = "Logbook", "logbook", "logbooks", []descriptor.FilterableField{{Path: "status.id", Sortable: true}}
	entry := func() *descriptor.Shape {
		return &descriptor.Shape{Name: "Entry", Fields: []descriptor.Field{
			{Name: "text", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: n(4)}},
			{Name: "free", Type: descriptor.TypeString},
			{Name: "marks", Type: descriptor.TypeString, List: true, Constraint: descriptor.Constraint{MaxItems: n(2), MaxLength: n(3)}},
		}}
	}
	k.Status = &descriptor.Shape{Name: "LogbookStatus", Fields: []descriptor.Field{
		{Name: "id", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: n(1024)}},
		{Name: "sizes", Type: descriptor.TypeInt, List: true, Constraint: descriptor.Constraint{MaxItems: n(3)}},
		{Name: "names", Type: descriptor.TypeString, List: true, Constraint: descriptor.Constraint{MaxLength: n(5)}},
		{Name: "last", Type: descriptor.TypeObject, Shape: entry()},
		{Name: "entries", Type: descriptor.TypeObject, Shape: entry(), List: true, Constraint: descriptor.Constraint{MaxItems: n(2)}},
		{Name: "labels", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MaxItems: n(2), MaxLength: n(3), KeyMaxLength: n(4)}},
		{Name: "count", Type: descriptor.TypeInt},
		{Name: "free", Type: descriptor.TypeString},
	}}
	return k
}

// maximaOf are the probes of every maximum in the status of a kind.
func maximaOf(k descriptor.Kind) *survey {
	p := &survey{}
	if k.Status != nil {
		p.maxima(k.Status, spot{path: "status", put: func(v any) any { return v }})
	}
	return p
}

func (p *survey) maxima(s *descriptor.Shape, a spot) {
	for i := range s.Fields {
		f := &s.Fields[i]
		c, at := f.Constraint, spot{path: a.path + "." + f.Name, put: func(v any) any { return a.put(map[string]any{f.Name: v}) }}
		if f.Type == descriptor.TypeMap {
			p.mapMaxima(c, at)
			continue
		}
		if f.List {
			if most := c.MaxItems; most != nil {
				p.add(at, "maxItems", *most, slices.Repeat([]any{reported(f)}, *most), slices.Repeat([]any{reported(f)}, *most+1))
			}
			list := at
			at = spot{path: at.path + "[1]", put: func(v any) any { return list.put([]any{reported(f), v}) }}
		}
		if most := c.MaxLength; most != nil {
			p.add(at, "maxLength", *most, strings.Repeat("é", *most), strings.Repeat("é", *most+1))
		}
		if f.Shape != nil {
			p.maxima(f.Shape, at)
		}
	}
}

func (p *survey) mapMaxima(c descriptor.Constraint, at spot) {
	if most := c.MaxItems; most != nil {
		entries := map[string]any{}
		for i := range *most {
			entries[fmt.Sprint(i)] = "v"
		}
		more := map[string]any{"more": "v"}
		for key, value := range entries {
			more[key] = value
		}
		p.add(at, "maxProperties", *most, entries, more)
	}
	if most := c.MaxLength; most != nil {
		p.add(spot{path: at.path + ".k", put: at.put}, "maxLength", *most, map[string]any{"k": strings.Repeat("é", *most)}, map[string]any{"k": strings.Repeat("é", *most+1)})
	}
	if most := c.KeyMaxLength; most != nil {
		long := strings.Repeat("k", *most+1)
		p.add(spot{path: failure.Join(at.path, long), put: at.put}, "keyMaxLength", *most, map[string]any{long[1:]: "v"}, map[string]any{long: "v"})
	}
}

// reported is a value of an element that has no maximum to break.
func reported(f *descriptor.Field) any {
	switch f.Type {
	case descriptor.TypeObject:
		return map[string]any{}
	case descriptor.TypeInt:
		return 1
	}
	return "v"
}

// TestStatus_EveryMaximumOfAStatusTakesItsLimitAndRefusesWhatIsJustPastIt asks every maximum of
// every kind: each takes a value at its limit, and refuses the next by its path, rule and
// limit, with what it is; of a dry run too.
func TestStatus_EveryMaximumOfAStatusTakesItsLimitAndRefusesWhatIsJustPastIt(t *testing.T) {
	catalogue := append(kindstest.Kinds(t), logbook())
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s, err := service.New(service.Config{Kinds: catalogue, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	rules, all := map[string]int{}, 0
	for _, k := range catalogue {
		t.Run(k.Name, func(t *testing.T) {
			for i, probe := range maximaOf(k).probes {
				rules[probe.rule]++
				all++
				probe.report(t, s, k, fmt.Sprint("n", i))
			}
		})
	}
	for _, rule := range strings.Fields("maxLength maxItems maxProperties keyMaxLength") {
		if rules[rule] == 0 {
			t.Errorf("no kind here has a status with %s", rule)
		}
	}
	if all < 300 {
		t.Errorf("%d maxima; the 26 kinds have more", all)
	}
}

// report sends a status with the bad value to a resource, and then one with the good value.
func (p probe) report(t *testing.T, s *service.Service, k descriptor.Kind, name string) {
	t.Helper()
	out, err := s.Writer.Create(t.Context(), service.CreateRequest{Identity: kind.Identity{Kind: k.Name, Name: name}, Spec: object(k.Spec, "", nil)})
	if err != nil {
		t.Fatal(err)
	}
	req := service.StatusRequest{Identity: kind.Identity{Kind: k.Name, Name: name}, ExpectedRevision: out.Resource.Stored.Revision.String(), Status: p.bad}
	for _, req.DryRun = range []bool{true, false} {
		_, err := s.Writer.UpdateStatus(t.Context(), req)
		if err == nil {
			t.Fatalf("%s %s %v: %s is accepted", p.path, p.rule, p.limit, shown(p.bad))
		}
		e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
		size := fmt.Sprint("has ", p.limit.(int)+1)
		if v := e.Violations; len(v) != 1 || v[0].Path != p.path || v[0].Rule != p.rule || !sameLimit(v[0].Limit, p.limit) || !strings.HasSuffix(v[0].Message, size) {
			t.Errorf("%s %s %v: %s is told as %+v", p.path, p.rule, p.limit, shown(p.bad), v)
		}
	}
	req.Status = p.good
	for _, req.DryRun = range []bool{true, false} {
		if _, err := s.Writer.UpdateStatus(t.Context(), req); err != nil {
			t.Errorf("%s %s %v: %s is refused: %v", p.path, p.rule, p.limit, shown(p.good), err)
		}
	}
}

// logbooks is a fixture of logbooks.
func logbooks(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{logbook()}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
}

// log creates a logbook.
func (f *fixture) log(name string) {
	f.T.Helper()
	if _, err := f.Writer.Create(f.T.Context(), service.CreateRequest{Identity: servicetest.InDefault("Logbook", name), Spec: servicetest.Raw(`{"title":"A"}`)}); err != nil {
		f.T.Fatal(err)
	}
}

// report writes the status of a logbook.
func (f *fixture) report(name string, status any) error {
	f.T.Helper()
	_, err := f.Writer.UpdateStatus(f.T.Context(), service.StatusRequest{Identity: servicetest.InDefault("Logbook", name), ExpectedRevision: f.logged(name).Revision.String(), Status: status})
	return err
}

func (f *fixture) logged(name string) *backend.Resource {
	f.T.Helper()
	got, err := f.Store.Get(f.T.Context(), backend.Key{Kind: "Logbook", Namespace: "default", Name: name})
	if err != nil {
		f.T.Fatal(err)
	}
	return got[0]
}

func TestStatus_AllThatIsTooLargeInAStatusIsSaidAtOnce(t *testing.T) {
	f := logbooks(t)
	f.log("a")
	err := f.report("a", servicetest.Raw(`{"sizes":[1,2,3,4],"names":["a","toolong"],"last":{"text":"12345","marks":["1234","1"]},"entries":[{},{"marks":["1","2","3"]}],"labels":{"k":"1234","a b c":"1"}}`))
	e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
	want := `status.sizes maxItems; status.names[1] maxLength; status.last.text maxLength; status.last.marks[0] maxLength; status.entries[1].marks maxItems; status.labels["a b c"] keyMaxLength; status.labels.k maxLength`
	if diff := cmp.Diff(want, servicetest.ViolationPaths(e)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestStatus_NothingOfAStatusIsCheckedButItsSize(t *testing.T) {
	f := logbooks(t)
	f.log("a")
	for _, status := range []string{
		`{}`, `{"id":""}`, `{"id":7,"sizes":"many","last":[1,2,3],"entries":{"a":1},"labels":["a","b","c"]}`, `{"labels":"a long text"}`,
		`{"names":[1,{"toolong":"toolong"},["toolong"]],"labels":{"k":12345}}`, `{"count":"a text","free":"` + strings.Repeat("x", 100_000) + `"}`,
		`{"unheardOf":"` + strings.Repeat("x", 2000) + `","last":{"unheardOf":[1,2,3,4]}}`, `{"names":["a","a","a","a","a","a"],"id":null}`,
	} {
		if err := f.report("a", servicetest.Raw(status)); err != nil {
			t.Errorf("%.80s: %v", status, err)
		}
	}
}

// TestStatus_AStatusThatIsStoredIsNotJudged has statuses that are larger than the kind says now.
func TestStatus_AStatusThatIsStoredIsNotJudged(t *testing.T) {
	f := logbooks(t)
	f.log("a")
	if err := f.report("a", servicetest.Raw(`{"id":"x"}`)); err != nil {
		t.Fatal(err)
	}
	f.Put(f.logged("a").Key, backend.Put{UID: f.logged("a").UID, Body: backend.EncodeBody(servicetest.Raw(`{"version":"v1","metadata":{"generation":1},"spec":{"title":"A"},"status":{"sizes":[1,2,3,4,5],"last":{"text":"123456"}}}`))})
	revision := func() string { return f.logged("a").Revision.String() }
	id := servicetest.InDefault("Logbook", "a")
	for what, write := range map[string]func() error{
		"update": func() error {
			_, err := f.Writer.Update(t.Context(), service.UpdateRequest{Identity: id, ExpectedRevision: revision(), Spec: servicetest.Raw(`{"title":"B"}`)})
			return err
		},
		"patch": func() error {
			_, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: id, ExpectedRevision: revision(), Patch: servicetest.Raw(`{"weight":100}`)})
			return err
		},
		"upsert": func() error {
			_, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: servicetest.Raw(`{"title":"C"}`)})
			return err
		},
		"apply": func() error {
			_, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: `{"apiVersion":"example.org/v1","kind":"Logbook","metadata":{"name":"a"},"spec":{"title":"D"},"status":{"sizes":[1,2,3,4,5,6,7]}}`})
			return err
		},
	} {
		if err := write(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A controller that sends back what it read, with something new, is not stopped; it makes nothing larger.
	if err := f.report("a", servicetest.Raw(`{"sizes":[1,2,3,4,6],"last":{"text":"123456"},"count":1}`)); err != nil {
		t.Errorf("what is no larger than it was: %v", err)
	}
	err := f.report("a", servicetest.Raw(`{"sizes":[1,2,3,4,6,7],"last":{"text":"1234567","marks":["1234"]},"entries":[{"text":"12345"}]}`))
	if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); servicetest.ViolationPaths(e) != "status.sizes maxItems; status.last.text maxLength; status.last.marks[0] maxLength; status.entries[0].text maxLength" {
		t.Errorf("what is larger than it was: %s", servicetest.ViolationPaths(e))
	}
}

func TestStatus_TheGatewaysOwnConditionsAreNotJudged(t *testing.T) {
	catalogue := servicetest.Building()
	n := func(i int) *int { return &i }
	for i := range catalogue {
		if s := catalogue[i].Status; s != nil {
			s.Fields[0].Constraint.MaxItems = n(1)
			for j := range s.Fields[0].Shape.Fields {
				s.Fields[0].Shape.Fields[j].Constraint.MaxLength = n(8)
			}
		}
	}
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := openHouseOf(t, store, catalogue)
	h.Start()
	created := h.Create("Door", "d", `{"roomRef":"r"}`).Resource.Stored
	st, err := kind.StateOf(created)
	if err != nil {
		t.Fatal(err)
	}
	if conditions, _ := st.Status()["conditions"].([]any); len(conditions) != 2 {
		t.Fatalf("conditions %v", conditions)
	}
	report := func(status map[string]any) error {
		_, err := h.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.InDefault("Door", "d"), ExpectedRevision: created.Revision.String(), Status: status, DryRun: true})
		return err
	}
	if err := report(st.Status()); err != nil {
		t.Errorf("a controller sends back what the gateway wrote: %v", err)
	}
	ours := []any{map[string]any{"type": "Ready"}, map[string]any{"type": "Seen"}, map[string]any{"type": "Reachable"}}
	if e := servicetest.WantCode(t, report(map[string]any{"conditions": ours}), failure.CodeValidationFailed); servicetest.ViolationPaths(e) != "status.conditions maxItems" {
		t.Error(servicetest.ViolationPaths(e))
	}
}

package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// novelty is what the newer gateway of these tests stores and the older one cannot name.
const novelty = "novelty"

// nestedWidget is a widget with objects in lists without a key, and with
// immutable values that have an inside.
func nestedWidget() descriptor.Kind {
	k := servicetest.Widget()
	n := func(i int) *int { return &i }
	inner := &descriptor.Shape{Name: "Inner", Fields: []descriptor.Field{
		{Name: "x", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: n(20)}},
		{Name: "ports", Type: descriptor.TypeInt, List: true, ListType: descriptor.ListSet, Constraint: descriptor.Constraint{MaxItems: n(9)}},
		{Name: "mode", Type: descriptor.TypeString, Default: "auto", Constraint: descriptor.Constraint{MaxLength: n(20)}},
	}}
	element := &descriptor.Shape{Name: "Element", Fields: []descriptor.Field{
		{Name: "id", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: n(20)}},
		{Name: "inner", Type: descriptor.TypeObject, Shape: inner},
		{Name: "inners", Type: descriptor.TypeObject, Shape: inner, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MaxItems: n(4)}},
	}}
	spec := *k.Spec
	spec.Fields = append(append([]descriptor.Field(nil), spec.Fields...),
		descriptor.Field{Name: "elements", Type: descriptor.TypeObject, Shape: element, List: true, ListType: descriptor.ListAtomic, Constraint: descriptor.Constraint{MaxItems: n(9)}},
		descriptor.Field{Name: "fixed", Type: descriptor.TypeObject, Shape: inner, Immutable: true},
		descriptor.Field{Name: "fixeds", Type: descriptor.TypeObject, Shape: inner, List: true, ListType: descriptor.ListAtomic, Immutable: true, Constraint: descriptor.Constraint{MaxItems: n(9)}},
		descriptor.Field{Name: "fixedParts", Type: descriptor.TypeObject, Shape: servicetest.Widget().Spec.Field("parts").Shape, List: true, ListType: descriptor.ListMap, Keys: []string{"slot"}, Immutable: true, Constraint: descriptor.Constraint{MaxItems: n(4)}})
	spec.Rules = append(append([]descriptor.Rule(nil), spec.Rules...), descriptor.Rule{CEL: "!has(self.box) || !has(oldSelf.box) || self.box == oldSelf.box", Message: "the box stays"})
	k.Spec = &spec
	return k
}

func setupKinds(t *testing.T, kinds ...descriptor.Kind) *fixture {
	t.Helper()
	f := setup(t)
	s, err := service.New(service.Config{Kinds: kinds, Store: f.Store})
	if err != nil {
		t.Fatal(err)
	}
	f.Service = s
	return f
}

const nestedSpec = `{"title":"A","box":{"import":true},
	"elements":[{"id":"1","inner":{"x":"y","ports":[1,2]},"inners":[{"x":"1"},{"x":"2"}]},{"id":"2"}],
	"fixed":{"x":"1","ports":[1,2]},"fixeds":[{"x":"1"}],"fixedParts":[{"slot":"a"}],"parts":[{"slot":"a","serial":"1"}]}`

// at walks into a tree: names of fields and indexes of lists.
func at(tree any, path ...any) map[string]any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			tree = tree.(map[string]any)[step]
		case int:
			tree = tree.([]any)[step]
		}
	}
	return tree.(map[string]any)
}

// places are where a newer gateway may have put a field into nestedSpec.
func places() map[string][]any {
	return map[string][]any{
		"in the spec":                          {"spec"},
		"in an object":                         {"spec", "box"},
		"in an element of a list without key":  {"spec", "elements", 0},
		"in an object of such an element":      {"spec", "elements", 0, "inner"},
		"in a list without key in an element":  {"spec", "elements", 0, "inners", 1},
		"in an element of a list with key":     {"spec", "parts", 0},
		"in an immutable object":               {"spec", "fixed"},
		"in an immutable list without key":     {"spec", "fixeds", 0},
		"in an immutable list with key":        {"spec", "fixedParts", 0},
		"in a status, which is no spec at all": {"status"},
	}
}

func TestUpdate_AnOlderGatewayKeepsWhatItCannotNameAndIsNotDisturbedByIt(t *testing.T) {
	for where, path := range places() {
		for verb, write := range map[string]func(f *fixture, r *backend.Resource) (*service.Written, error){
			"update with what it read": func(f *fixture, r *backend.Resource) (*service.Written, error) {
				return f.UpdateWidget("a", r.Revision.String(), nestedSpec)
			},
			"update of another field": func(f *fixture, r *backend.Resource) (*service.Written, error) {
				return f.UpdateWidget("a", r.Revision.String(), strings.Replace(nestedSpec, `"A"`, `"B"`, 1))
			},
			"patch of another field": func(f *fixture, r *backend.Resource) (*service.Written, error) {
				return f.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Patch: map[string]any{"title": "B"}})
			},
			"upsert": func(f *fixture, _ *backend.Resource) (*service.Written, error) {
				return f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(nestedSpec)})
			},
			"get and apply": func(f *fixture, r *backend.Resource) (*service.Written, error) {
				text, err := f.Manifest(r, service.YAML)
				if err != nil || strings.Contains(text, novelty) {
					t.Fatalf("%v\n%s", err, text)
				}
				return f.apply(text)
			},
			"status": func(f *fixture, r *backend.Resource) (*service.Written, error) {
				return f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Status: map[string]any{"id": "i"}})
			},
		} {
			t.Run(where+": "+verb, func(t *testing.T) {
				f := setupKinds(t, nestedWidget(), servicetest.Cluster())
				f.CreateWidget("a", nestedSpec)
				r := f.Rewrite("a", true, func(tree map[string]any) {
					tree["status"] = map[string]any{"id": "i"}
					at(tree, path...)[novelty] = map[string]any{"keep": "me"}
				})
				out, err := write(f, r)
				if err != nil {
					t.Fatal(err)
				}
				want := service.Unchanged
				if strings.Contains(verb, "another field") {
					want = service.Updated
				}
				if out.Outcome != want {
					t.Errorf("outcome %s, want %s", out.Outcome, want)
				}
				var tree map[string]any
				raw, _ := backend.DecodeBody(f.Stored("a").Body)
				if err := json.Unmarshal(raw, &tree); err != nil {
					t.Fatal(err)
				}
				if at(tree, path...)[novelty] == nil {
					t.Errorf("the newer gateway's field is gone: %s", raw)
				}
			})
		}
	}
}

func TestUpdate_ImmutabilityLooksAtEffectiveValues(t *testing.T) {
	f := setupKinds(t, nestedWidget(), servicetest.Cluster())
	f.CreateWidget("a", nestedSpec)
	for name, c := range map[string]struct {
		old, new string
		accepted bool
	}{
		"the default written out":      {`"fixed":{"x":"1",`, `"fixed":{"mode":"auto","x":"1",`, true},
		"another order of a set":       {`"fixed":{"x":"1","ports":[1,2]}`, `"fixed":{"x":"1","ports":[2,1]}`, true},
		"another value than default":   {`"fixed":{"x":"1",`, `"fixed":{"mode":"manual","x":"1",`, false},
		"another value":                {`"fixed":{"x":"1",`, `"fixed":{"x":"2",`, false},
		"a field less inside":          {`"fixed":{"x":"1","ports":[1,2]}`, `"fixed":{"ports":[1,2]}`, false},
		"an element more":              {`"fixeds":[{"x":"1"}]`, `"fixeds":[{"x":"1"},{}]`, false},
		"without the immutable object": {`"fixed":{"x":"1","ports":[1,2]},`, ``, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(nestedSpec)}
			if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named("a")}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Writer.Upsert(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			req.Spec = json.RawMessage(strings.Replace(nestedSpec, c.old, c.new, 1))
			_, err := f.Writer.Upsert(t.Context(), req)
			if c.accepted && err != nil {
				t.Error(err)
			}
			if !c.accepted {
				if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); !strings.Contains(servicetest.ViolationPaths(e), "immutable") {
					t.Errorf("violations %s", servicetest.ViolationPaths(e))
				}
			}
		})
	}
}

func TestUpdate_AnEnumValueThatANewerGatewayStoredStaysWhereItStands(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	newer := func(tree map[string]any) { tree["spec"].(map[string]any)["colour"] = "ultraviolet" }
	r := f.Rewrite("a", true, newer)
	out, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Patch: map[string]any{"title": "B"}})
	if err != nil || out.Outcome != service.Updated {
		t.Fatalf("a patch of another field: %+v %v", out, err)
	}
	text, err := f.Manifest(f.Stored("a"), service.YAML)
	if err != nil || !strings.Contains(text, "ultraviolet") {
		t.Fatalf("%v\n%s", err, text)
	}
	if out, err = f.apply(text); err != nil || out.Outcome != service.Unchanged {
		t.Errorf("get and apply: %+v %v", out, err)
	}
	_, err = f.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Named("b"), Spec: json.RawMessage(`{"title":"B","colour":"ultraviolet"}`)})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
	_, err = f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"B","colour":"infrared"}`)})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

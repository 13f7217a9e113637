package failure_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

func TestPath_HasATextAndStepsForEachSetOfNames(t *testing.T) {
	plain := &descriptor.Field{Name: "size"}
	renamed := &descriptor.Field{Name: "id", APIName: "cloudId"}
	top := &descriptor.Field{Name: "data", APIName: "coded", ManifestAt: "values"}
	spec := failure.At("spec")
	loop := spec.Below()
	loop.SetField(renamed)
	element := loop.Below()
	element.SetElement(2)
	for _, c := range []struct {
		path                  *failure.Path
		stored, api, manifest string
	}{
		{nil, "", "", ""},
		{spec, "spec", "spec", "spec"},
		{spec.Field(plain), "spec.size", "spec.size", "spec.size"},
		{spec.Field(renamed), "spec.id", "spec.cloudId", "spec.id"},
		{&element, "spec.id[2]", "spec.cloudId[2]", "spec.id[2]"},
		{spec.Field(renamed).Element(0).Field(renamed), "spec.id[0].id", "spec.cloudId[0].cloudId", "spec.id[0].id"},
		{spec.Field(top), "spec.data", "spec.coded", "values"},
		{spec.Field(top).Name("a.b"), `spec.data["a.b"]`, `spec.coded["a.b"]`, `values["a.b"]`},
		{spec.Field(plain).Field(top), "spec.size.data", "spec.size.coded", "spec.size.data"}, // not at the top
		{failure.At("filter").Name("or").Element(1).Name("spec").Field(renamed), "filter.or[1].spec.id", "filter.or[1].spec.cloudId", "filter.or[1].spec.id"},
		{failure.At("metadata").Name("labels").Name("id"), "metadata.labels.id", "metadata.labels.id", "metadata.labels.id"},
	} {
		for names, want := range map[failure.FieldNames]string{
			failure.StoredNames: c.stored, failure.APINames: c.api, failure.ManifestNames: c.manifest,
		} {
			if got := c.path.Text(names); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := failure.Text(c.path.Steps(names)); got != want {
				t.Errorf("steps of %s, want %s", got, want)
			}
		}
	}
}

func TestWithin_PutsAnArgumentBeforeThePath(t *testing.T) {
	for path, want := range map[string]string{"": "", "kind": "input.kind", `["a b"].c`: `input["a b"].c`, "a.b[1]": "input.a.b[1]"} {
		err := failure.Within(failure.BadInput(path, "no"), "input")
		if got := err.(*failure.Error).Path; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if other := errors.New("other"); failure.Within(other, "input") != other {
		t.Error("another error is changed")
	}
}

func TestPath_APathIsReadBackAsItsSteps(t *testing.T) {
	for _, c := range []struct {
		path  string
		steps []any
	}{
		{"", nil},
		{"name", []any{"name"}},
		{failure.Element(failure.Join(failure.Join("spec", "resource"), "tags"), 1), []any{"spec", "resource", "tags", 1}},
		{failure.Join("spec.properties", "a.b/c]\"[0]"), []any{"spec", "properties", "a.b/c]\"[0]"}},
		{failure.Join(failure.Join("", "a b"), "c"), []any{"a b", "c"}},
		{failure.Join(failure.Element("rules", 0), ""), []any{"rules", 0, ""}},
		{failure.Join(failure.Join("", "@include"), "if"), []any{"@include", "if"}},
		{failure.Join("spec.properties", "@a"), []any{"spec", "properties", "@a"}},
		{failure.Join("spec", "größe"), []any{"spec", "größe"}},
	} {
		if got := failure.Steps(c.path); !reflect.DeepEqual(got, c.steps) {
			t.Errorf("%s: %#v; want %#v", c.path, got, c.steps)
		}
	}
}

func FuzzSteps(f *testing.F) {
	f.Add("spec", "a.b", 3)
	f.Fuzz(func(t *testing.T, first, second string, i int) {
		first, second, i = first[:min(len(first), 64)], second[:min(len(second), 64)], i&(1<<31-1)
		want := []any{clean(first), clean(second), i, clean(first)}
		got := failure.Steps(failure.Join(failure.Element(failure.Join(failure.Join("", first), second), i), first))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%#v; want %#v", got, want)
		}
	})
}

// clean is a text as JSON can carry it.
func clean(s string) string { return string([]rune(s)) }

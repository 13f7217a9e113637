package failure_test

import (
	"reflect"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
)

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

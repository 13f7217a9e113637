package catalogue_test

import (
	"reflect"
	"testing"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

func TestUnion_AddsWhatOnlyThePreviousCatalogueHas(t *testing.T) {
	box := func(fields ...descriptor.Field) *descriptor.Shape {
		return &descriptor.Shape{Name: "Box", Fields: fields}
	}
	text := func(name string, required bool) descriptor.Field {
		return descriptor.Field{Name: name, Type: descriptor.TypeString, Required: required}
	}
	colour := func(values ...string) *descriptor.Enum {
		out := &descriptor.Enum{Name: "Colour"}
		for _, v := range values {
			out.Values = append(out.Values, descriptor.EnumValue{Name: v, Stored: v})
		}
		return out
	}
	boxed := func(box *descriptor.Shape, colour *descriptor.Enum, fields ...descriptor.Field) *descriptor.Shape {
		return &descriptor.Shape{Name: "Spec", Fields: append([]descriptor.Field{
			{Name: "box", Type: descriptor.TypeObject, Shape: box}, {Name: "colour", Type: descriptor.TypeEnum, Enum: colour},
		}, fields...)}
	}
	was := []descriptor.Kind{
		{Name: "Thing", Plural: "things", Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbUpsert},
			FilterableFields: []descriptor.FilterableField{{Path: "spec.title", Sortable: true}, {Path: "spec.keyRef"}, {Path: "spec.size"}},
			References:       []descriptor.Reference{{Path: "spec.keyRef", Kind: "Key", Field: "key", Inverse: "things", Guarded: true}},
			Spec:             boxed(box(text("a", true), text("c", true)), colour("RED", "GREEN"), text("title", false), text("keyRef", false), text("size", false))},
		{Name: "Key", Singular: "key", Plural: "keys", Spec: box()},
		{Name: "Same", Plural: "same", Spec: box(text("a", true))},
	}
	same := box(text("a", true), text("b", false))
	is := []descriptor.Kind{
		{Name: "Same", Plural: "same", Spec: same},
		{Name: "Thing", Plural: "goods", Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList},
			FilterableFields: []descriptor.FilterableField{{Path: "spec.title"}},
			Spec:             boxed(box(text("a", true), text("b", true)), colour("BLUE", "RED"), text("title", false), descriptor.Field{Name: "size", Type: descriptor.TypeInt})},
	}
	got := catalogue.Union(is, was)
	if len(got) != 3 || got[0].Spec != same || got[1].Plural != "goods" || got[2].Plural != "Key" {
		t.Fatalf("%+v", got)
	}
	thing := got[1]
	want := boxed(box(text("a", true), text("b", true), text("c", false)), colour("BLUE", "RED", "GREEN"), text("title", false), descriptor.Field{Name: "size", Type: descriptor.TypeInt}, text("keyRef", false))
	if !reflect.DeepEqual(thing.Spec, want) {
		t.Errorf("the spec is %+v", thing.Spec)
	}
	if want := []descriptor.FilterableField{{Path: "spec.title", Sortable: true}, {Path: "spec.size"}}; !reflect.DeepEqual(thing.FilterableFields, want) {
		t.Errorf("filterable are %v", thing.FilterableFields)
	}
	if want := []descriptor.Reference{{Path: "spec.keyRef", Kind: "Key", Field: "key", Guarded: true}}; !reflect.DeepEqual(thing.References, want) {
		t.Errorf("references are %v", thing.References)
	}
	if want := []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList, descriptor.VerbUpsert}; !reflect.DeepEqual(thing.Verbs, want) {
		t.Errorf("verbs are %v", thing.Verbs)
	}
	if len(is[1].Spec.Fields) != 4 || is[1].Spec.Fields[1].Enum.Has("GREEN") {
		t.Error("the newest catalogue was changed")
	}
}

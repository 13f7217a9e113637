package catalogue_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// full is a kind that says everything that a kind can say.
func full() []descriptor.Kind {
	constraint := func() descriptor.Constraint {
		return descriptor.Constraint{
			MinLength: new(1), MaxLength: new(9), Pattern: "a", Format: descriptor.FormatName, Min: new(1.0), Max: new(9.0), In: []string{"a"},
			MinItems: new(1), MaxItems: new(9), KeyMinLength: new(1), KeyMaxLength: new(9), KeyPattern: "k",
		}
	}
	field := descriptor.Field{
		Name: "label", Description: "d", Type: descriptor.TypeString, List: true, ListType: descriptor.ListMap, Keys: []string{"k"},
		Constraint: constraint(), ManifestAt: "at", MergeInto: "into", Default: json.Number("1"), Deprecated: "why",
		Enum:  &descriptor.Enum{Name: "E", Values: []descriptor.EnumValue{{Name: "RED", Stored: "red", Description: "d"}}},
		Shape: &descriptor.Shape{Name: "Below", Fields: []descriptor.Field{{Name: "deep", Type: descriptor.TypeString}}},
	}
	return []descriptor.Kind{{
		Name: "Shelf", Singular: "shelf", Plural: "shelves", ShortNames: []string{"sh"}, Description: "d", Group: "g", Version: "v1", Scope: descriptor.Namespaced,
		Review: "checks",
		Verbs:  []descriptor.Verb{descriptor.VerbGet}, SubKinds: []string{"tall"},
		FilterableFields: []descriptor.FilterableField{{Path: "spec.label"}},
		References:       []descriptor.Reference{{Path: "spec.label", Kind: "Label", Field: "label", Inverse: "shelves", Guarded: true}},
		Columns:          []descriptor.Column{{Title: "LABEL", Path: "spec.label"}},
		Spec:             &descriptor.Shape{Name: "ShelfSpec", Fields: []descriptor.Field{field}, Rules: []descriptor.Rule{{CEL: "c", Message: "m"}}, MinProperties: 1, MaxProperties: 9},
		Status:           &descriptor.Shape{Name: "ShelfStatus", Fields: []descriptor.Field{{Name: "load", Type: descriptor.TypeFloat}}},
	}}
}

// mutations calls f after each change of one value below v, which it takes back.
func mutations(t *testing.T, v reflect.Value, path string, f func(path string)) {
	t.Helper()
	mutate := func(to any) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(reflect.ValueOf(to).Convert(v.Type()))
		f(path)
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.String:
		mutate(v.String() + "x")
	case reflect.Bool:
		mutate(!v.Bool())
	case reflect.Int:
		mutate(v.Int() + 1)
	case reflect.Float64:
		mutate(v.Float() + 1)
	case reflect.Interface:
		mutate("other")
	case reflect.Pointer:
		if !v.IsNil() {
			mutations(t, v.Elem(), path, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			mutations(t, v.Index(i), path, f)
		}
		if v.Len() > 0 {
			mutate(v.Slice(0, 0).Interface())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			mutations(t, v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	default:
		t.Fatalf("%s is a %s", path, v.Kind())
	}
}

// TestCompare_NothingThatAKindSaysChangesUnnoticed also holds for what kinds will say one day: a new field of
// a descriptor has to be compared.
func TestCompare_NothingThatAKindSaysChangesUnnoticed(t *testing.T) {
	to, n := full(), 0
	mutations(t, reflect.ValueOf(&to[0]).Elem(), "Kind", func(path string) {
		n++
		if len(catalogue.Compare(full(), to)) == 0 {
			t.Errorf("%s", path)
		}
	})
	if n < 50 || len(catalogue.Compare(full(), to)) > 0 {
		t.Errorf("%d mutations", n)
	}
}

func TestCompare_ChangesHaveSeverities(t *testing.T) {
	label := func(change func(*descriptor.Field)) func(*descriptor.Kind) {
		return func(k *descriptor.Kind) { change(&k.Spec.Fields[0]) }
	}
	for name, c := range map[string]struct {
		change func(*descriptor.Kind)
		want   []string
	}{
		"plural":              {func(k *descriptor.Kind) { k.Plural = "shelfs" }, []string{"kind Shelf had the plural shelves and has shelfs (breaks clients)"}},
		"verbs":               {func(k *descriptor.Kind) { k.Verbs = []descriptor.Verb{descriptor.VerbList} }, []string{"kind Shelf has no verb GET any more (breaks clients)", "kind Shelf has the new verb LIST"}},
		"inverse":             {func(k *descriptor.Kind) { k.References[0].Inverse = "" }, []string{"Shelf.spec.label has no inverse any more; it was shelves (breaks clients)"}},
		"guard":               {func(k *descriptor.Kind) { k.References[0].Guarded = false }, []string{"Shelf.spec.label is not guarded any more: what it refers to can be deleted while it is relied on (breaking)"}},
		"tighter":             {label(func(f *descriptor.Field) { f.Constraint.MaxLength = new(8) }), []string{"Shelf.spec.label has the maxLength 8, tighter than 9 (breaks clients)"}},
		"looser":              {label(func(f *descriptor.Field) { f.Constraint.MinLength = new(0) }), []string{"Shelf.spec.label has the minLength 0, looser than 1"}},
		"no bound":            {label(func(f *descriptor.Field) { f.Constraint.Max = nil }), []string{"Shelf.spec.label has no max any more"}},
		"pattern":             {label(func(f *descriptor.Field) { f.Constraint.Pattern = "b" }), []string{"Shelf.spec.label has the pattern b now (breaks clients)"}},
		"accepted":            {label(func(f *descriptor.Field) { f.Constraint.In = []string{"a", "b"} }), []string{"Shelf.spec.label has the new accepted text b"}},
		"immutable":           {label(func(f *descriptor.Field) { f.Immutable = true }), []string{"Shelf.spec.label is immutable now (breaks clients)"}},
		"default":             {label(func(f *descriptor.Field) { f.Default = nil }), []string{"Shelf.spec.label had the default 1 and has none (dangerous)"}},
		"the name of a field": {label(func(f *descriptor.Field) { f.APIName = "title" }), []string{"Shelf.spec.label had the name in the API label and has title (breaks clients)"}},
		"the name of a value": {label(func(f *descriptor.Field) { f.Enum.Values[0].Name = "ROUGE" }), []string{`Shelf.spec.label names the value "red" ROUGE, which was RED (breaks clients)`}},
		"rule":                {func(k *descriptor.Kind) { k.Spec.Rules[0].CEL = "d" }, []string{"Shelf.spec has a new rule: m (breaks clients)", "Shelf.spec has not the rule any more: m"}},
		"description":         {func(k *descriptor.Kind) { k.Description = "e" }, []string{"kind Shelf is described differently"}},
		"the most severe first": {func(k *descriptor.Kind) { k.Description, k.Plural, k.Scope = "e", "x", descriptor.Global }, []string{
			"kind Shelf was NAMESPACED and is GLOBAL: keys of its resources mean others (breaking)", "kind Shelf had the plural shelves and has x (breaks clients)", "kind Shelf is described differently",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			to := full()
			c.change(&to[0])
			var got []string
			for _, d := range catalogue.Compare(full(), to) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	raw, err := json.Marshal([]catalogue.Severity{catalogue.Safe, catalogue.Dangerous, catalogue.BreaksClients, catalogue.BreaksStored})
	if got := strings.ReplaceAll(string(raw), `"`, ""); err != nil || got != "[SAFE,DANGEROUS,BREAKS_CLIENTS,BREAKS_STORED]" {
		t.Errorf("%s %v", got, err)
	}
	if all := catalogue.Compare(full(), nil); len(all) != 1 || all[0].Severity != catalogue.BreaksStored || !slices.Equal(catalogue.Breaking(all), all) {
		t.Error(fmt.Sprint(all))
	}
}

func TestCompareServed_WhatTheOlderMajorHasBreaksOnlyClients(t *testing.T) {
	newest := func(change func(*descriptor.Kind)) []descriptor.Kind {
		out := full()
		change(&out[0])
		return out
	}
	for name, c := range map[string]struct {
		to   []descriptor.Kind
		want string
	}{
		"a kind":        {nil, "kind Shelf is gone: only clients of the older major see its resources (breaks clients)"},
		"a field":       {newest(func(k *descriptor.Kind) { k.Spec.Fields = k.Spec.Fields[1:] }), "Shelf.spec.label is gone: only clients of the older major see what is stored of it (breaks clients)"},
		"an enum value": {newest(func(k *descriptor.Kind) { k.Spec.Fields[0].Enum.Values = nil }), `Shelf.spec.label has no value "red" any more: only clients of the older major can write it (breaks clients)`},
		"a scope":       {newest(func(k *descriptor.Kind) { k.Scope = descriptor.Global }), "kind Shelf was NAMESPACED and is GLOBAL: keys of its resources mean others (breaking)"},
	} {
		got := catalogue.CompareServed(full(), c.to, catalogue.Union(c.to, full()))
		if !slices.ContainsFunc(got, func(d catalogue.Difference) bool { return d.String() == c.want }) {
			t.Errorf("%s: %v", name, got)
		}
		if alone := catalogue.CompareServed(full(), c.to, c.to); !slices.Equal(alone, catalogue.Compare(full(), c.to)) {
			t.Errorf("%s, without an older major: %v", name, alone)
		}
	}
}

package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// rack is a catalogue without shelves.
func rack() []descriptor.Kind { return shelf(func(k *descriptor.Kind) { k.Name = "Rack" }) }

// drop takes fields away from a shelf.
func drop(k *descriptor.Kind, names ...string) {
	k.Spec.Fields = slices.DeleteFunc(k.Spec.Fields, func(f descriptor.Field) bool { return slices.Contains(names, f.Name) })
}

// TestEarlier_WhatComesBackIsComparedWithWhatItWas: resources of before are stored still.
func TestEarlier_WhatComesBackIsComparedWithWhatItWas(t *testing.T) {
	noLabel := shelf(func(k *descriptor.Kind) { drop(k, "label") })
	noColour := shelf(func(k *descriptor.Kind) { drop(k, "colour") })
	noOwner := shelf(func(k *descriptor.Kind) { drop(k, "owner") })
	label := func(change func(f *descriptor.Field)) []descriptor.Kind {
		return shelf(func(k *descriptor.Kind) { change(field(k, "label")) })
	}
	other := func(k *descriptor.Kind) { // so that the catalogue is not one of the record
		k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "depth", Type: descriptor.TypeInt})
	}
	for name, c := range map[string]struct {
		between [][]descriptor.Kind // each accepted with the flag
		then    []descriptor.Kind
		says    string // empty: it is accepted
	}{
		"a field of another type":    {[][]descriptor.Kind{noLabel}, label(func(f *descriptor.Field) { f.Type = descriptor.TypeInt }), "kinds/shelf.graphqls:7: Shelf.spec.label was in an earlier catalogue: it was String and is Int: resources that have it cannot be read (breaking)"},
		"a list":                     {[][]descriptor.Kind{noLabel}, label(func(f *descriptor.Field) { f.List = true }), "Shelf.spec.label was in an earlier catalogue: it was String and is a list of String"},
		"a value that was an object": {[][]descriptor.Kind{noOwner}, ownerIsText(), "Shelf.spec.owner was in an earlier catalogue: it was Object and is String"},
		"fewer values": {[][]descriptor.Kind{noColour}, shelf(func(k *descriptor.Kind) { field(k, "colour").Enum.Values = field(k, "colour").Enum.Values[:1] }),
			`Shelf.spec.colour was in an earlier catalogue: it has no value "blue" any more`},
		"a field of an object that was gone": {[][]descriptor.Kind{noOwner}, shelf(func(k *descriptor.Kind) { field(k, "owner").Shape.Fields[0].Type = descriptor.TypeInt }),
			"Shelf.spec.owner.name was in an earlier catalogue: it was String and is Int"},
		"a new required field of an object that was gone": {[][]descriptor.Kind{noOwner}, shelf(func(k *descriptor.Kind) {
			s := field(k, "owner").Shape
			s.Fields = append(s.Fields, descriptor.Field{Name: "mail", Type: descriptor.TypeString, Required: true})
		}), "Shelf.spec.owner.mail is new and required: what is stored does not have it and cannot be read (breaking)"},
		"a kind with another type":     {[][]descriptor.Kind{rack()}, label(func(f *descriptor.Field) { f.Type = descriptor.TypeInt }), "Shelf.spec.label was in an earlier catalogue: it was String and is Int"},
		"a kind with a newly required": {[][]descriptor.Kind{rack()}, label(func(f *descriptor.Field) { f.Required = true }), "Shelf.spec.label was in an earlier catalogue: it is required now"},
		"a kind of another scope":      {[][]descriptor.Kind{rack()}, shelf(func(k *descriptor.Kind) { k.Scope = descriptor.Global }), "kind Shelf was in an earlier catalogue: it was NAMESPACED and is GLOBAL"},
		"two catalogues ago":           {[][]descriptor.Kind{noLabel, rack()}, label(func(f *descriptor.Field) { f.Type = descriptor.TypeInt }), "Shelf.spec.label was in an earlier catalogue: it was String and is Int"},
		"a required field as it was":   {[][]descriptor.Kind{shelf(func(k *descriptor.Kind) { drop(k, "width") })}, shelf(other), "Shelf.spec.width is new and required"},
		"a field as it was":            {[][]descriptor.Kind{noLabel}, shelf(other), ""},
		"a kind as it was":             {[][]descriptor.Kind{rack()}, append(rack(), shelf(other)...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.places = places()
			for _, kinds := range append([][]descriptor.Kind{shelf(nil)}, c.between...) {
				if err := f.accept(kinds, true); err != nil {
					t.Fatal(err)
				}
			}
			err := f.accept(c.then, false)
			if c.says == "" {
				if err != nil {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), c.says) != 1 {
				t.Fatalf("it says %v", err)
			}
			if err := f.accept(c.then, true); err != nil {
				t.Errorf("with the flag: %v", err)
			}
			if err := f.accept(c.then, false); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

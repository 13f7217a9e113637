package catalogue_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// Catalogues of a shelf whose label is shown, is @writeOnly, or is not there; and
// one in which a map stands where an object with a secret stood.
func shown() []descriptor.Kind { return shelf(nil) }
func hidden() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { field(k, "label").WriteOnly = true })
}
func without() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) {
		k.Spec.Fields = append(k.Spec.Fields[:1:1], k.Spec.Fields[2:]...)
	})
}
func nested() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { field(k, "owner").Shape.Fields[0].WriteOnly = true })
}
func withoutOwner() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { k.Spec.Fields = k.Spec.Fields[:3] })
}
func ownerIsText() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) {
		*field(k, "owner") = descriptor.Field{Name: "owner", Type: descriptor.TypeString}
	})
}

func TestSecret_WhatMayBeASecretIsNeverShownWithoutTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		before [][]descriptor.Kind // each accepted with the flag
		then   []descriptor.Kind
		says   string // empty: it is accepted
	}{
		"the newest hides it":                         {[][]descriptor.Kind{hidden()}, shown(), "Shelf.spec.label was @writeOnly and is not"},
		"it was gone for a while":                     {[][]descriptor.Kind{hidden(), without()}, shown(), "Shelf.spec.label was @writeOnly in an earlier catalogue and is not"},
		"one of the record is from before @writeOnly": {[][]descriptor.Kind{shown(), hidden()}, shown(), "Shelf.spec.label was @writeOnly in an earlier catalogue and is not"},
		"a value stands where an object was":          {[][]descriptor.Kind{nested(), withoutOwner()}, ownerIsText(), "Shelf.spec.owner.name was @writeOnly in an earlier catalogue and is not"},
		"it is hidden again":                          {[][]descriptor.Kind{hidden(), without()}, hidden(), ""},
		"it was shown with the flag since":            {[][]descriptor.Kind{hidden(), shown(), without()}, shown(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			for _, kinds := range c.before {
				if err := f.accept(kinds, true); err != nil {
					t.Fatal(err)
				}
			}
			err := f.accept(c.then, false)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "@writeOnly") != 1 {
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

func TestSecret_ADryRunRecordsNothing(t *testing.T) {
	f := setup(t)
	if err := f.accept(shown(), false); err != nil {
		t.Fatal(err)
	}
	for _, kinds := range [][]descriptor.Kind{hidden(), without()} {
		if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: kinds, AllowBreaking: true, DryRun: true}); err != nil {
			t.Error(err)
		}
	}
	if err := f.accept(shown(), false); err != nil {
		t.Errorf("what was tried counts: %v", err)
	}
}

package catalogue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// ownedBy is a catalogue whose shelves belong to a service; empty for none.
func ownedBy(service string) []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { k.Service = service })
}

func TestService_CannotChangeUnderResources(t *testing.T) {
	for name, c := range map[string]struct {
		before, then string
		says         []string
	}{
		"given": {"", "crm", []string{
			"the catalogue changes who owns stored resources:",
			`  kinds/shelf.graphqls:1: kind Shelf has resources that the gateway stores itself (resources of the kind: 1): ` +
				`it cannot be given to service "crm" while they are stored`,
		}},
		"taken": {"crm", "", []string{
			`kind Shelf has the mirror of service "crm" (resources of the kind: 1): it cannot be taken from the service`,
			"use sluice catalogue purge",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.places = places()
			for _, service := range []string{c.before, c.then, c.before} { // there are no resources
				if err := f.accept(ownedBy(service), false); err != nil {
					t.Fatal(err)
				}
			}
			f.put("a", `{"spec":{"width":1}}`)
			gone := shelf(func(k *descriptor.Kind) { k.Name = "Rack" })
			for _, before := range [][]descriptor.Kind{nil, gone} { // the record remembers whose they are
				if before != nil {
					if err := f.accept(before, true); err != nil {
						t.Fatal(err)
					}
				}
				for _, start := range []bool{false, true} {
					err := f.gate.Accept(t.Context(), catalogue.Candidate{
						Kinds: ownedBy(c.then), AllowBreaking: true, Start: start, Places: f.places,
					})
					for _, part := range c.says {
						if err == nil || !strings.Contains(err.Error(), part) {
							t.Errorf("it does not say %q: %v", part, err)
						}
					}
				}
			}
			if err := f.accept(ownedBy(c.before), false); err != nil {
				t.Errorf("the catalogue that made them: %v", err)
			}
		})
	}
}

func TestService_IsTakenAfterAPurge(t *testing.T) {
	f := setup(t)
	gone := shelf(func(k *descriptor.Kind) { k.Name = "Rack" })
	if err := f.accept(ownedBy("crm"), false); err != nil {
		t.Fatal(err)
	}
	f.put("a", `{"spec":{"width":1}}`)
	if err := f.accept(gone, true); err != nil {
		t.Fatal(err)
	}
	if _, err := f.purge("Shelf", gone, false); err != nil {
		t.Fatal(err)
	}
	if err := f.accept(ownedBy(""), true); err != nil { // the flag is for the kind that goes
		t.Error(err)
	}
}

func TestService_AnotherOneNeedsTheFlag(t *testing.T) {
	f := setup(t)
	if err := f.accept(ownedBy("crm"), false); err != nil {
		t.Fatal(err)
	}
	f.put("a", `{"spec":{"width":1}}`)
	err := f.accept(ownedBy("sales"), false)
	if err == nil || err.Final || !strings.Contains(err.Error(), `was owned by service "crm" and is by "sales"`) {
		t.Errorf("it says %v", err)
	}
	if err := f.accept(ownedBy("sales"), true); err != nil {
		t.Error(err)
	}
}

func TestService_IsPartOfTheOutline(t *testing.T) {
	none := catalogue.OutlineOf(ownedBy("")).Hash()
	if none != catalogue.OutlineOf(shelf(nil)).Hash() {
		t.Error("a catalogue without services has another outline")
	}
	if none == catalogue.OutlineOf(ownedBy("crm")).Hash() {
		t.Error("a catalogue with a service has the outline of one without")
	}
	var got []string
	for _, c := range [][2]string{{"", "crm"}, {"crm", ""}, {"crm", "sales"}, {"crm", "crm"}} {
		for _, d := range catalogue.Compare(ownedBy(c[0]), ownedBy(c[1])) {
			got = append(got, d.String())
			if moves := c[0] == "" || c[1] == ""; d.Moves != moves {
				t.Errorf("%s: moves: %v", d, d.Moves)
			}
		}
	}
	want := []string{
		`kind Shelf is owned by service "crm" now, and was stored by the gateway itself (dangerous)`,
		`kind Shelf is stored by the gateway itself now, and was owned by service "crm" (dangerous)`,
		`kind Shelf was owned by service "crm" and is by "sales": what that one does not have is deleted here (breaking)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReview_IsComparedAndNotStored(t *testing.T) {
	reviewed := func(by string, allows bool) []descriptor.Kind {
		return shelf(func(k *descriptor.Kind) {
			k.Review = by
			k.ReviewAllowsFailure = allows
		})
	}
	var got []string
	for _, c := range [][2][]descriptor.Kind{
		{reviewed("", false), reviewed("policy", false)},
		{reviewed("policy", true), reviewed("", false)},
		{reviewed("policy", false), reviewed("law", false)},
		{reviewed("policy", false), reviewed("policy", true)},
		{reviewed("policy", true), reviewed("policy", false)},
		{reviewed("policy", true), reviewed("policy", true)},
	} {
		if catalogue.OutlineOf(c[0]).Hash() != catalogue.OutlineOf(c[1]).Hash() {
			t.Error("a review changes what can be stored")
		}
		for _, d := range catalogue.Compare(c[0], c[1]) {
			got = append(got, d.String())
		}
	}
	want := []string{
		`kind Shelf is reviewed by service "policy" now, which may refuse changes (dangerous)`,
		`kind Shelf is not reviewed by service "policy" any more`,
		`kind Shelf was reviewed by service "policy" and is by "law", which may refuse other changes (dangerous)`,
		"kind Shelf takes changes unreviewed now while the service that reviews them does not answer (dangerous)",
		"kind Shelf refuses changes now while the service that reviews them does not answer (dangerous)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

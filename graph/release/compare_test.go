package release_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

func TestCheck_AllowsWhatBreaksNoClient(t *testing.T) {
	if err := release.Check(released(t, shop), newest(t, grown)); err != nil {
		t.Error(err)
	}
	if err := release.Check(released(t, shop, grown), newest(t, grown)); err != nil {
		t.Error(err)
	}
}

func TestCheck_FindingsAreAtTheAuthorsLineAndNameTheVersion(t *testing.T) {
	for name, c := range map[string]struct{ old, new, line, what string }{
		"a field less":         {"  label: String @constraint(maxLength: 20) @default(value: \"none\")\n", "", "8", "Thing.spec.label is gone"},
		"another type":         {"price: Int @constraint(min: 0, max: 100)", "price: Float @constraint(min: 0, max: 100)", "10", "Thing.spec.price was Int and is Float"},
		"newly required":       {"price: Int @", "price: Int! @", "10", "Thing.spec.price is required now"},
		"new and required":     {"  size: Int!\n", "  size: Int!\n  weight: Int!\n", "18", "Thing.spec.parts.weight is new and required"},
		"not required":         {"size: Int!", "size: Int", "17", "Thing.spec.parts.size is not required any more"},
		"tightened":            {"max: 100", "max: 50", "10", "Thing.spec.price has the max 50, tighter than 100"},
		"immutable":            {"max: 100) @filterable", "max: 100) @filterable @immutable", "10", "Thing.spec.price is immutable now"},
		"another default":      {`value: "none"`, `value: "new"`, "11", `Thing.spec.label had the default "none" and has "new"`},
		"a value less":         {"RED, BLUE", "RED", "20", `Thing.spec.colour has no value "BLUE" any more`},
		"a verb less":          {"scope: NAMESPACED", "scope: NAMESPACED, exceptVerbs: [DELETE]", "3", "kind Thing has no verb DELETE any more"},
		"no filter":            {" @filterable", "", "3", "kind Thing has no filterable field spec.price any more"},
		"a rule":               {"type ThingSpec {", "type ThingSpec @rule(cel: \"has(self.price)\", message: \"free\") {", "8", "Thing.spec has a new rule: free"},
		"a rule of new fields": {"type ThingSpec {\n", "type ThingSpec @rule(cel: \"self.a < 3\", message: \"wide\") {\n  a: Int\n", "8", "Thing.spec has a new rule: wide"},
		"a short name less":    {"shortNames: [\"th\"], ", "", "3", "kind Thing has no short name th any more; clients may name"},
		"a place in manifests": {"price: Int @", "price: Int @manifest(at: \"cost\") @", "10", "Thing.spec.price has the place in manifests cost now"},
		"another scope":        {"scope: NAMESPACED", "scope: GLOBAL", "3", "kind Thing was NAMESPACED and is GLOBAL"},
		"another type name":    {"Part", "Piece", "13", "Thing.spec.parts had the type Part and has Piece"},
	} {
		err := release.Check(released(t, shop), newest(t, strings.ReplaceAll(shop, c.old, c.new)))
		findings, _ := errors.AsType[kinds.Findings](err)
		want := "shop/shop.graphqls:" + c.line + ": clients of v1.0 break: " + c.what
		if len(findings) == 0 || !strings.HasPrefix(findings[0].String(), want) {
			t.Errorf("%s: wanted %s, got\n%v", name, want, err)
		}
		if len(findings) > 1 {
			t.Errorf("%s: consequences are findings of their own:\n%v", name, err)
		}
	}
}

// TestCheck_FindingsSayHowTheChangeCanBeMade in a minor version or, if the older major allows it, in a major one.
func TestCheck_FindingsSayHowTheChangeCanBeMade(t *testing.T) {
	const later = "leave the change to the next major version (sluice catalogue release 2.0)"
	for name, c := range map[string]struct{ old, new, advice string }{
		"a field less": {
			"  label: String @constraint(maxLength: 20) @default(value: \"none\")\n", "",
			"keep it, marked @deprecated, until the next major version (sluice catalogue release 2.0)",
		},
		"newly required":   {"price: Int @", "price: Int! @", "leave it optional, or " + later + ", with a @default"},
		"new and required": {"  size: Int!\n", "  size: Int!\n  weight: Int!\n", "give it a @default, or leave it optional"},
		"another default": {
			`value: "none"`, `value: "new"`,
			"declare another field with this default and mark this one @deprecated, or " + later,
		},
		"a rule": {
			"type ThingSpec {", "type ThingSpec @rule(cel: \"has(self.price)\", message: \"free\") {",
			"let the rule judge only fields that v1.0 does not have, and hold where they are absent, or " + later,
		},
		"a short name less": {
			"shortNames: [\"th\"], ", "",
			"clients may name the kind by it: keep it until the next major version (sluice catalogue release 2.0)",
		},
	} {
		err := release.Check(released(t, shop), newest(t, strings.ReplaceAll(shop, c.old, c.new)))
		if err == nil || !strings.HasSuffix(err.Error(), "; "+c.advice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck_ComparesWithAllVersionsThatAreServed: v1.0 may have been withdrawn when v1.1 was released, and is served
// again.
func TestCheck_ComparesWithAllVersionsThatAreServed(t *testing.T) {
	tight := strings.Replace(shop, "max: 100", "max: 50", 1)
	err := release.Check(released(t, shop, tight), newest(t, tight))
	if err == nil || err.Error() != "shop/shop.graphqls:10: clients of v1.0 break: Thing.spec.price has the max 50, "+
		"tighter than 100; keep what v1.0 has, and declare a field, value or kind of another name beside it, "+
		"or leave the change to the next major version (sluice catalogue release 2.0)" {
		t.Error(err)
	}
	err = release.Check(released(t, shop, shop), newest(t, tight))
	if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "clients of v1.1 break") {
		t.Errorf("a finding of two versions: %v", err)
	}
}

func TestCheck_AllowsAnotherMessageOfARule(t *testing.T) {
	ruled := func(message string) string {
		return strings.Replace(shop, "type ThingSpec {", "type ThingSpec @rule(cel: \"has(self.price)\", message: \""+message+"\") {", 1)
	}
	if err := release.Check(released(t, ruled("prise")), newest(t, ruled("price is wanted"))); err != nil {
		t.Error(err)
	}
}

func TestCheck_FindsAKindThatIsGoneInTheVersion(t *testing.T) {
	err := release.Check(released(t, shop, grown), newest(t, shop))
	if err == nil || !strings.Contains(err.Error(), "shop/versions/v1.1/shop.graphqls:4: clients of v1.1 break: kind Shelf is gone") {
		t.Error(err)
	}
}

func TestCheck_AllowsARuleOfNewFieldsThatHoldsWithoutThem(t *testing.T) {
	for rule, ok := range map[string]bool{
		"!has(self.a) || self.a < 3":            true,
		"self.b < 3":                            true, // it has a default
		"self.b > 3":                            false,
		"has(self.a)":                           false,
		"!has(self.a) || self.price < 3":        false,
		"self == oldSelf":                       false,
		"!has(self.a) || self.a == oldSelf.a":   true,
		"!has(self.a) || self.parts.size() < 3": false,
	} {
		text := strings.Replace(shop, "type ThingSpec {", "type ThingSpec @rule(cel: \""+rule+"\", message: \"no\") {\n  a: Int\n  b: Int @default(value: 1)", 1)
		if err := release.Check(released(t, shop), newest(t, text)); (err == nil) != ok {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestCheck_AllowsADefaultOfWhatWasRequired(t *testing.T) {
	required := strings.Replace(shop, "price: Int @", "price: Int! @", 1)
	defaulted := strings.Replace(shop, "price: Int @", "price: Int! @default(value: 5) @", 1)
	if err := release.Check(released(t, required), newest(t, defaulted)); err != nil {
		t.Error(err)
	}
	if err := release.Check(released(t, shop), newest(t, defaulted)); err == nil {
		t.Error("a default of what was optional")
	}
}

// TestCheck_OwnersAndReviews: a kind that is given to a service loses verbs, and that is what breaks clients. A service
// that reviews changes breaks none.
func TestCheck_OwnersAndReviews(t *testing.T) {
	with := func(argument string) string {
		return strings.Replace(shop, "scope: NAMESPACED", "scope: NAMESPACED, "+argument, 1)
	}
	if err := release.Check(released(t, shop), newest(t, with(`review: "policy"`))); err != nil {
		t.Errorf("a review: %v", err)
	}
	if err := release.Check(released(t, with(`review: "policy"`)), newest(t, shop)); err != nil {
		t.Errorf("a review that is gone: %v", err)
	}
	err := release.Check(released(t, shop), newest(t, with(`service: "crm"`)))
	for _, want := range []string{"has no verb FINALIZE any more", "has no verb STATUS any more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a service: %v, want %s", err, want)
		}
	}
	if err := release.Check(released(t, with(`service: "crm"`)), newest(t, shop)); err != nil {
		t.Errorf("a service that is gone: %v", err)
	}
}

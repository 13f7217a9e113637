package standard_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

func TestCatalogue_AnEnumOfTwoKindsHasTheNameOfEach(t *testing.T) {
	cfg := thingConfig(t, map[string]string{
		"Thing": "Mode mode = 4;",
		"file": `enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; }
message Other { string name = 1; Mode mode = 2; }
service Others {
  rpc GetOther(GetOtherRequest) returns (Other);
  rpc ListOthers(ListOthersRequest) returns (ListOthersResponse);
}
message GetOtherRequest { string name = 1; }
message ListOthersRequest { }
message ListOthersResponse { repeated Other others = 1; }`,
	})
	d, err := standard.ReadDescriptors(cfg.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c, err := d.Catalogue("things", nil, nil, standard.Limits{Length: 1, Items: 1})
		if err != nil || len(c.Kinds) != 2 {
			t.Fatalf("%+v %v", c, err)
		}
		for _, line := range []string{"enum ThingMode {", "enum OtherMode {"} {
			if strings.Count(c.SDL, line) != 1 {
				t.Fatalf("no %s in\n%s", line, c.SDL)
			}
		}
	}
}

func TestCatalogue_OutputOnlyFieldsOfASpecAreLeftOut(t *testing.T) {
	w := newWorld(t, thingConfig(t, map[string]string{
		"Thing": "ThingSpec spec = 4;",
		"file":  "message ThingSpec { string a = 1; string seen = 2 [(google.api.field_behavior) = OUTPUT_ONLY]; }",
	}), "", nil)
	if strings.Contains(w.catalogue.SDL, "seen") {
		t.Error(w.catalogue.SDL)
	}
	want := "Thing.spec.seen: it is output-only within what callers set"
	if len(w.catalogue.Omitted) != 1 || w.catalogue.Omitted[0].String() != want {
		t.Errorf("%v, want %s", w.catalogue.Omitted, want)
	}
}

// twoPackages has a Thing in each of two packages.
func twoPackages(t *testing.T) *standard.Descriptors {
	t.Helper()
	texts := map[string]string{}
	for _, name := range []string{"one", "two"} {
		texts[name+".proto"] = `syntax = "proto3";
package ` + name + `.v1;
message Thing { string name = 1; string ` + name + ` = 2; }
service Things {
  rpc GetThing(GetThingRequest) returns (Thing);
  rpc ListThings(ListThingsRequest) returns (ListThingsResponse);
}
message GetThingRequest { string name = 1; }
message ListThingsRequest { }
message ListThingsResponse { repeated Thing things = 1; }
`
	}
	d, err := standard.ReadDescriptors(standardtest.Compile(t, openTexts(texts), "one.proto", "two.proto"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCatalogue_MessagesOfOneNameInTwoPackagesAreToldApart(t *testing.T) {
	d := twoPackages(t)
	limits := standard.Limits{Length: 9, Items: 9}
	c, err := d.Catalogue("things", nil, nil, limits)
	if err != nil || len(c.Kinds) != 1 || c.Mapping.Kinds["Thing"].Message != "one.v1.Thing" {
		t.Fatalf("%+v %v", c, err)
	}
	const why = "two.v1.Thing: the message one.v1.Thing is the kind"
	if len(c.Refused) != 1 || !strings.HasPrefix(c.Refused[0].String(), why) {
		t.Errorf("%v", c.Refused)
	}
	m := parsedMapping(t, "kinds: {Other: {message: two.v1.Thing}}")
	c, err = d.Catalogue("things", nil, m, limits)
	if err != nil || len(c.Refused) > 0 || strings.Join(c.Kinds, " ") != "Other Thing" {
		t.Errorf("%+v %v", c, err)
	}
	c, err = d.Catalogue("things", []string{"two.v1.Thing"}, nil, limits)
	if err != nil || len(c.Refused) > 0 || c.Mapping.Kinds["Thing"].Message != "two.v1.Thing" {
		t.Errorf("%+v %v", c, err)
	}
	for _, names := range [][]string{{"one.v1.Thing", "two.v1.Thing"}, {"Thing", "two.v1.Thing"}} {
		c, err := d.Catalogue("things", names, nil, limits)
		if err == nil || !strings.Contains(err.Error(), "is the kind Thing already") {
			t.Errorf("%v: %+v %v", names, c, err)
		}
	}
	c, err = d.Catalogue("things", []string{"Thing"}, nil, limits)
	if err != nil || len(c.Refused) != 1 || !strings.Contains(c.Refused[0].Why, "several messages fit") {
		t.Errorf("%+v %v", c, err)
	}
}

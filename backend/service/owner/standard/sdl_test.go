package standard_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
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

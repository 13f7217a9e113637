package standard_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// oldConfig is a service whose messages have the required fields of proto2.
func oldConfig(t *testing.T) standardtest.Config {
	t.Helper()
	return standardtest.Config{
		Descriptors: compileText(t, `syntax = "proto2";
package old.v1;
import "google/api/field_behavior.proto";
import "google/protobuf/empty.proto";
message Thing {
  required string name = 1;
  required string etag = 2;
  required string text = 3;
  optional int32 size = 4 [default = 7];
  repeated Part parts = 5;
  required Origin origin = 6;
  required bytes secret = 7 [(google.api.field_behavior) = INPUT_ONLY];
  optional Origin other = 8;
  optional group Extra = 9 { required bool on = 1; }
}
message Part {
  required string a = 1;
  required Mode hidden = 2 [(google.api.field_behavior) = INPUT_ONLY, default = SLOW];
}
enum Mode { FAST = 1; SLOW = 2; }
message Origin { required string place = 1; }
service Things {
  rpc GetThing(GetThingRequest) returns (Thing);
  rpc ListThings(ListThingsRequest) returns (ListThingsResponse);
  rpc CreateThing(CreateThingRequest) returns (Thing);
  rpc UpdateThing(UpdateThingRequest) returns (Thing);
  rpc DeleteThing(DeleteThingRequest) returns (google.protobuf.Empty);
}
message GetThingRequest { required string name = 1; required bool full = 2 [default = true]; }
message ListThingsRequest { required bool full = 1; }
message ListThingsResponse { repeated Thing things = 1; }
message CreateThingRequest { required Thing thing = 1; required bool quiet = 2; }
message UpdateThingRequest { required Thing thing = 1; required bool quiet = 2; }
message DeleteThingRequest { required string name = 1; required bool quiet = 2; }
`),
		Services: []string{"old.v1.Things"}, Message: "old.v1.Thing", Name: "name", Tag: "etag",
	}
}

func TestClient_RequiredFieldsOfProto2AreAlwaysSent(t *testing.T) {
	w := newWorld(t, oldConfig(t), "", nil)
	for _, line := range []string{
		"  text: String! @", "  size: Int\n", "  origin: ThingOrigin!\n", "  other: ThingOrigin\n", "  on: Boolean!\n",
	} {
		if !strings.Contains(w.catalogue.SDL, line) {
			t.Errorf("no line %q in\n%s", line, w.catalogue.SDL)
		}
	}
	for name, r := range broken(t, w, false) {
		t.Errorf("%s: %s", name, r.Detail)
	}
	thing := owner.Resource{
		Key:  backend.Key{Kind: "Thing", Name: "a"},
		Spec: []byte(`{"text":"t","origin":{"place":"here"},"parts":[{"a":"x"}]}`),
	}
	w.write(t, owner.Write{Resource: thing, IfAbsent: true}, owner.Done)
	stored := w.server.Show("a")
	part := stored.Get(stored.Descriptor().Fields().ByName("parts")).List().Get(0).Message()
	hidden := part.Descriptor().Fields().ByName("hidden")
	if got := part.Get(hidden).Enum(); !part.Has(hidden) || got != protoreflect.EnumNumber(2) {
		t.Errorf("the hidden field is %d", got)
	}
	if !stored.Has(stored.Descriptor().Fields().ByName("secret")) {
		t.Error("the secret was not sent")
	}
}

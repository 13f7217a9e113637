package standard_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/graph/kinds"
)

// awkward has fields and messages whose names a catalogue cannot have.
var awkward = map[string]string{
	"Thing": `Spec spec = 4; ThingStatus status = 5;`,
	"file": `message Spec {
  string id = 1;
  Owner owner = 2;
  Owner previous_owner = 3;
  repeated _1 parts = 4;
  Filter filter = 5;
  SpecInput input = 6;
  SpecFilterMode mode = 7;
  oneof choice { string id_of = 8; Owner of = 9; }
}
message Owner { int64 id = 1; string owner_id = 2; }
message _1 { string id = 1; }
message Filter { string a = 1; }
message SpecInput { string a = 1; }
enum SpecFilterMode { FAST = 0; }
message ThingStatus { string id = 1; Owner owner = 2; }
message User { string name = 1; UserSpec spec = 2; }
message UserSpec { Error error = 1; }
message Error { string text = 1; }
message UserError { string name = 1; UserErrorSpec spec = 2; }
message UserErrorSpec { string a = 1; }
service Users {
  rpc GetUser(GetThingRequest) returns (User);
  rpc ListUsers(ListThingsRequest) returns (ListUsersResponse);
}
message ListUsersResponse { repeated User users = 1; }`,
}

func TestCatalogue_NamesThatACatalogueCannotHaveAreReplaced(t *testing.T) {
	d, err := standard.ReadDescriptors(thingConfig(t, awkward).Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	reserved, err := kinds.ReservedTypes()
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Catalogue("things", nil, nil, standard.Limits{Length: 9, Items: 9, Reserved: reserved})
	if err != nil || len(c.Kinds) != 2 {
		t.Fatalf("%+v %v", c, err)
	}
	if _, err := kinds.Load(&ast.Source{Name: "things.graphqls", Input: c.SDL}); err != nil {
		t.Fatalf("%v in\n%s", err, c.SDL)
	}
	for _, line := range []string{
		`  thingId: String @stored(as: "id") @constraint(maxLength: 9)`,
		`  ownerId2: SafeInt! @stored(as: "id") @default(value: 0)`,
		`  ownId: String @stored(as: "id") @constraint(maxLength: 9)`,
		`  thingId: String @stored(as: "id")`,
		`  filter: ThingFilter2`,
		`  error: UserErrorType`,
	} {
		if !strings.Contains(c.SDL, line+"\n") {
			t.Errorf("no line %q in\n%s", line, c.SDL)
		}
	}
	var notes []string
	for _, one := range c.Notes {
		notes = append(notes, one.String())
	}
	for _, want := range []string{
		"Thing.spec.id: the field is thingId in the SDL, because only resources have a field id there; it stays id in manifests",
		"Thing.spec.owner.id: the field is ownerId2 in the SDL, because",
		"Thing.status.id: the field is thingId in the SDL, because",
	} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("no note %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
}

func TestCatalogue_AFieldWithAnotherNameIsRead(t *testing.T) {
	w := newWorld(t, thingConfig(t, awkward), "", &standard.Mapping{Kinds: map[string]*standard.KindMapping{"Thing": {}}})
	if len(w.described(t)) != 1 {
		t.Error(w.catalogue.SDL)
	}
	key := backend.Key{Kind: "Thing", Name: "a"}
	const spec = `{"id":"x","owner":{"id":7}}`
	answer, err := w.client.Write(t.Context(), owner.Write{
		Resource: owner.Resource{Key: key, Spec: []byte(spec)}, IfAbsent: true,
	})
	if err != nil || answer.Outcome != owner.Done || string(answer.Resource.Spec) != spec {
		t.Errorf("%+v %v", answer, err)
	}
}

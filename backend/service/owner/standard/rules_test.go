package standard_test

import (
	"io"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// validateRules has the options of protoc-gen-validate that a kind can express, with their names and numbers.
const validateRules = `syntax = "proto2";
package validate;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { optional FieldRules rules = 1071; }
message FieldRules {
  optional MessageRules message = 17;
  oneof type {
    DoubleRules double = 2;
    Int32Rules int32 = 3;
    UInt64Rules uint64 = 6;
    StringRules string = 14;
    BytesRules bytes = 15;
    RepeatedRules repeated = 18;
    MapRules map = 19;
    DurationRules duration = 21;
    TimestampRules timestamp = 22;
  }
}
message DoubleRules { optional double lt = 2; optional double gte = 5; }
message Int32Rules { optional int32 lt = 2; optional int32 gt = 4; optional bool ignore_empty = 8; }
message UInt64Rules { optional uint64 lte = 3; optional uint64 gte = 5; }
message StringRules {
  optional uint64 len = 19;
  optional uint64 min_len = 2;
  optional uint64 max_len = 3;
  optional uint64 len_bytes = 20;
  optional uint64 max_bytes = 5;
  optional string pattern = 6;
  repeated string in = 10;
  optional bool uuid = 22;
  optional bool ignore_empty = 26;
}
message BytesRules { optional uint64 max_len = 3; }
message MessageRules { optional bool skip = 1; optional bool required = 2; }
message RepeatedRules {
  optional uint64 min_items = 1;
  optional uint64 max_items = 2;
  optional bool unique = 3;
  optional FieldRules items = 4;
}
message MapRules {
  optional uint64 min_pairs = 1;
  optional uint64 max_pairs = 2;
  optional FieldRules keys = 4;
  optional FieldRules values = 5;
}
message DurationRules { optional bool required = 1; }
message TimestampRules { optional bool required = 1; }
`

// validated is an API whose limits are those of protoc-gen-validate.
const validated = `syntax = "proto3";
package checked.v1;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "validate/validate.proto";
message Check {
  string name = 1;
  string title = 2 [(validate.rules).string = {min_len: 2, max_len: 40, pattern: "^[a-z]+$"}];
  string code = 3 [(validate.rules).string.len = 6];
  string raw = 4 [(validate.rules).string.len_bytes = 9];
  string short = 5 [(validate.rules).string = {max_bytes: 300, max_len: 30}];
  string color = 6 [(validate.rules).string = {in: ["red", "blue"]}];
  string serial = 7 [(validate.rules).string.uuid = true];
  int32 pages = 8 [(validate.rules).int32 = {gt: 0, lt: 100}];
  uint64 bytes = 9 [(validate.rules).uint64 = {gte: 1, lte: 9007199254740993}];
  double ratio = 10 [(validate.rules).double = {gte: 0.5, lt: 2}];
  bytes body = 11 [(validate.rules).bytes.max_len = 10];
  repeated string tags = 12 [(validate.rules).repeated = {
    min_items: 1, max_items: 3, unique: true, items: {string: {max_len: 5}}
  }];
  map<string, string> extras = 13 [(validate.rules).map = {max_pairs: 4, values: {string: {max_len: 7}}}];
  google.protobuf.Timestamp since = 14 [(validate.rules).timestamp.required = true];
  google.protobuf.Duration every = 15 [(validate.rules).duration.required = true];
  google.protobuf.StringValue note = 16 [(validate.rules).string.max_len = 8];
  string free = 17;
}
service Checks {
  rpc GetCheck(GetCheckRequest) returns (Check);
  rpc ListChecks(ListChecksRequest) returns (ListChecksResponse);
}
message GetCheckRequest { string name = 1; }
message ListChecksRequest { }
message ListChecksResponse { repeated Check checks = 1; }
`

func TestCatalogue_HasTheLimitsOfProtocGenValidate(t *testing.T) {
	texts := map[string]string{"validate/validate.proto": validateRules, "checked.proto": validated}
	raw := standardtest.Compile(t, openTexts(texts), "checked.proto")
	d, err := standard.ReadDescriptors(raw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Catalogue("checks", nil, nil, standard.Limits{Length: 1000, Items: 1000})
	if err != nil || len(c.Kinds) != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	for _, line := range []string{
		`title: String @constraint(minLength: 2, maxLength: 40, pattern: "^[a-z]+$")`,
		`code: String @constraint(minLength: 6, maxLength: 6)`,
		`raw: String @constraint(maxLength: 9)`,
		`short: String @constraint(maxLength: 30)`,
		`color: String @constraint(in: ["red", "blue"])`,
		`serial: String @constraint(maxLength: 36, format: "uuid")`,
		`pages: Int @constraint(min: 1, max: 99)`,
		`bytes: SafeInt @constraint(min: 1)`, // the other limit is beyond those of a SafeInt
		`ratio: Float @constraint(min: 0.5, max: 2)`,
		`body: String @constraint(maxLength: 16, format: "base64")`,
		`since: Time!`,
		`every: String! @constraint(maxLength: 64, format: "duration")`,
		`note: String @constraint(maxLength: 8)`,
		`free: String @constraint(maxLength: 1000)`,
	} {
		if !strings.Contains(c.SDL, "  "+line+"\n") {
			t.Errorf("no line %s in\n%s", line, c.SDL)
		}
	}
	for _, part := range []string{"minItems: 1, maxItems: 3", "maxLength: 5", "maxLength: 7"} {
		if !strings.Contains(c.SDL, part) {
			t.Errorf("no %s in\n%s", part, c.SDL)
		}
	}
	for _, one := range c.Limited {
		if one.Path != "Check.spec.free" && one.String() != "Check.spec.extras: keyMaxLength 253" {
			t.Errorf("a limit was made up: %s", one)
		}
	}
	(&world{catalogue: c}).described(t)
}

// openTexts returns what opens files by their texts, besides those of standardtest.
func openTexts(texts map[string]string) func(string) (io.ReadCloser, error) {
	return func(path string) (io.ReadCloser, error) {
		if text, is := texts[path]; is {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return standardtest.Open(path)
	}
}

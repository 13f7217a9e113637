package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// gizmos is an API with fields whose names and numbers a catalogue cannot have as they are.
const gizmos = `syntax = "proto3";
package example.gizmo.v1;
import "google/protobuf/empty.proto";
message Gizmo {
  string name = 1;
  string etag = 2;
  Spec spec = 3;
}
message Spec {
  string id = 1;
  int64 big = 2;
  uint64 huge = 3;
  Owner owner = 4;
}
message Owner { uint64 id = 1; }
service Gizmos {
  rpc GetGizmo(GetGizmoRequest) returns (Gizmo);
  rpc ListGizmos(ListGizmosRequest) returns (ListGizmosResponse);
  rpc CreateGizmo(CreateGizmoRequest) returns (Gizmo);
  rpc UpdateGizmo(UpdateGizmoRequest) returns (Gizmo);
  rpc DeleteGizmo(DeleteGizmoRequest) returns (google.protobuf.Empty);
}
message GetGizmoRequest { string name = 1; }
message ListGizmosRequest { int32 page_size = 1; string page_token = 2; }
message ListGizmosResponse { repeated Gizmo gizmos = 1; string next_page_token = 2; }
message CreateGizmoRequest { Gizmo gizmo = 1; }
message UpdateGizmoRequest { Gizmo gizmo = 1; }
message DeleteGizmoRequest { string name = 1; string etag = 2; }
`

// boxes is a stored kind with the fields of a Gizmo.
const boxes = `type Box @resource(plural: "boxes", group: "gizmo.example", version: "v1", scope: GLOBAL) {
  spec: BoxSpec!
}

type BoxSpec {
  boxId: String @stored(as: "id") @constraint(maxLength: 100)
  big: SafeInt! @default(value: 0)
  huge: String @constraint(maxLength: 20)
  owner: BoxOwner
}

type BoxOwner {
  ownerId: SafeInt! @stored(as: "id") @default(value: 0)
}
`

// startGizmos pulls the API of the gizmos and starts a gateway that serves it, and Boxes, over GraphQL and gRPC.
func startGizmos(t *testing.T) (*standardtest.Server, *gateway) {
	t.Helper()
	dir := t.TempDir()
	raw := standardtest.Compile(t, func(path string) (io.ReadCloser, error) {
		if path == "gizmo.proto" {
			return io.NopCloser(strings.NewReader(gizmos)), nil
		}
		return standardtest.Open(path)
	}, "gizmo.proto")
	service, handler := standardtest.New(t, standardtest.Config{
		Descriptors: raw, Services: []string{"example.gizmo.v1.Gizmos"}, Message: "example.gizmo.v1.Gizmo",
		Name: "name", Tag: "etag",
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	kinds := filepath.Join(dir, "kinds")
	if err := os.Mkdir(kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "gizmos.binpb"), string(raw))
	mapping := filepath.Join(dir, "gizmos.yaml")
	writeFile(t, mapping, "kinds: {Gizmo: {text: [spec.huge]}}")
	_, errOut, code := sluice(t, "", "service", "pull", "--grpc", filepath.Join(dir, "gizmos.binpb"), "--name", "gizmos",
		"--to", filepath.Join(kinds, "gizmos.graphqls"), "--mapping", mapping)
	for _, note := range []string{
		"note: Gizmo.spec.id: the field is gizmoId in the SDL", "note: Gizmo.spec.owner.id: the field is ownerId in the SDL",
	} {
		if code != 0 || !strings.Contains(errOut, note) {
			t.Fatalf("exit %d, no %q in %s", code, note, errOut)
		}
	}
	writeFile(t, filepath.Join(kinds, "boxes.graphqls"), boxes)
	writeFile(t, filepath.Join(dir, "sluice.yaml"),
		"services: {gizmos: {address: '"+server.URL+"', mapping: "+mapping+
			", compare-interval: 5s}}\n")
	numbers := filepath.Join(dir, "numbers.txt")
	if _, errOut, code := sluice(t, "", "proto", "print", kinds, "--numbers", numbers); code != 0 {
		t.Fatal(errOut)
	}
	return service, start(t, "", "--config", filepath.Join(dir, "sluice.yaml"), "--catalogue", kinds,
		"--service-listen", "127.0.0.1:0", "--field-numbers", numbers)
}

// textOf returns a text in a resource.
func textOf(resource protoreflect.Message, path string) string {
	m, f := standardtest.Field(resource, path)
	return m.Get(f).String()
}

func TestGRPCService_AFieldWithAReservedNameIsServed(t *testing.T) {
	t.Parallel()
	service, g := startGizmos(t)
	g.must(`mutation { createGizmo(input: {name: "a", spec: {gizmoId: "x-1", owner: {ownerId: 7}}}) { gizmo { id } } }`)
	if got := textOf(service.Show("a"), "spec.id"); got != "x-1" {
		t.Errorf("the service has the id %q", got)
	}
	shown := g.must(`{ gizmo(name: "a") { id spec { gizmoId owner { ownerId } } } }`)
	owner, _ := shown.get("gizmo", "spec", "owner", "ownerId").(float64)
	if owner != 7 || shown.get("gizmo", "spec", "gizmoId") != "x-1" {
		t.Errorf("%+v", shown)
	}
	manifest, errOut, code := g.cli("", "get", "gizmo", "a", "-o", "manifest")
	if code != 0 || !strings.Contains(manifest, "\n  id: x-1\n") || !strings.Contains(manifest, "    id: 7\n") {
		t.Errorf("exit %d %s %s", code, manifest, errOut)
	}
	out, errOut, code := g.cli(strings.Replace(manifest, "id: x-1", "id: x-2", 1), "apply", "-f", "-")
	if got := textOf(service.Show("a"), "spec.id"); code != 0 || got != "x-2" {
		t.Errorf("exit %d %s %s: the service has the id %q", code, out, errOut, got)
	}
	rpc := g.grpcClient(nil)
	rpc.service = "GizmoService"
	if got, err := rpc.call("GetGizmo", `{"name": "a"}`); err != nil || !strings.Contains(got, `"x-2"`) {
		t.Errorf("over gRPC %s is shown: %v", got, err)
	}
}

func TestGRPCService_WhatCannotBeMirroredIsListed(t *testing.T) {
	t.Parallel()
	service, g := startGizmos(t)
	g.must(`mutation { createGizmo(input: {name: "mirrored", spec: {big: 1}}) { gizmo { id } } }`)
	for _, name := range []string{"mirrored", "new"} {
		service.Put(name, func(m protoreflect.Message) {
			at, f := standardtest.Field(m, "spec.big")
			at.Set(f, protoreflect.ValueOfInt64(1<<53+1))
		})
	}
	var out string
	eventually(t, "both gizmos are listed with the reason", func() bool {
		out, _, _ = g.cli("", "get", "gizmos", "--unreadable")
		return strings.Count(out, "spec: big: 9007199254740993 is not within 2^53") == 2
	})
	if !strings.Contains(out, "mirrored") || !strings.Contains(out, "new") {
		t.Errorf("%s", out)
	}
	if shown := g.must(`{ gizmo(name: "mirrored") { spec { big } } }`); shown.get("gizmo", "spec", "big") != 1.0 {
		t.Errorf("the last state that was mirrored is not shown: %v", shown)
	}
}

// gizmoWay is a way to write a number into a resource.
type gizmoWay struct {
	name string
	// write writes spec, which is JSON, and returns what the caller is told of a failure.
	write func(kind, name, spec string) (failure string)
}

// gizmoWays returns all ways to write a resource.
func gizmoWays(g *gateway) []gizmoWay {
	cli := func(stdin string, args ...string) string {
		if _, errOut, code := g.cli(stdin, args...); code != 0 {
			return errOut
		}
		return ""
	}
	head := func(kind, name string) string {
		return `"apiVersion": "gizmo.example/v1", "kind": "` + kind + `", "metadata": {"name": "` + name + `"}`
	}
	return []gizmoWay{
		{"apply of JSON", func(kind, name, spec string) string {
			return cli("{"+head(kind, name)+`, "spec": `+spec+"}", "apply", "-f", "-")
		}},
		{"apply of YAML", func(kind, name, spec string) string {
			text := strings.NewReplacer(`"id"`, "id", `"big"`, "big", `"huge"`, "huge", `"owner"`, "owner").Replace(spec)
			text = "apiVersion: gizmo.example/v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\nspec: " + text + "\n"
			return cli(text, "apply", "-f", "-")
		}},
		{"patch", func(kind, name, spec string) string {
			_ = cli("{"+head(kind, name)+`, "spec": {}}`, "create", "-f", "-")
			return cli("", "patch", kind, name, "-p", `{"spec": `+spec+`}`)
		}},
		{"GraphQL", func(kind, name, spec string) string {
			lower := strings.ToLower(kind)
			literal := strings.NewReplacer(`"id"`, "ownerId", `"big"`, "big", `"huge"`, "huge", `"owner"`, "owner").Replace(spec)
			const upsert = `mutation { upsert%s(input: {name: %q, spec: %s}) { %s { id } } }`
			a := g.post(fmt.Sprintf(upsert, kind, name, literal, lower), nil)
			if len(a.Errors) > 0 {
				return a.Errors[0].Message
			}
			return ""
		}},
		{"gRPC", func(kind, name, spec string) string {
			rpc := g.grpcClient(nil)
			rpc.service = protoreflect.Name(kind + "Service")
			_, err := rpc.call("Upsert"+kind, `{"`+strings.ToLower(kind)+`": {"metadata": {"name": "`+name+`"}, "spec": `+
				strings.Replace(spec, `"id"`, `"ownerId"`, 1)+"}}")
			if err != nil {
				return err.Error()
			}
			return ""
		}},
	}
}

// gizmoReads returns what each way to read a resource shows of its big and huge numbers and of its owner's id.
func gizmoReads(t *testing.T, g *gateway, kind, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	note := func(way string, raw []byte, path ...string) {
		var at struct {
			Big, Huge json.RawMessage
			Owner     struct {
				ID      json.RawMessage
				OwnerID json.RawMessage
			}
		}
		for _, step := range path {
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(raw, &inner); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			raw = inner[step]
		}
		if err := json.Unmarshal(raw, &at); err != nil {
			t.Fatalf("%s: %s: %v", way, raw, err)
		}
		text := string(at.Big) + " " + string(at.Huge) + " " + string(at.Owner.ID) + string(at.Owner.OwnerID)
		out[way] = strings.ReplaceAll(text, `"`, "")
	}
	asJSON, errOut, code := g.cli("", "get", kind, name, "-o", "json")
	if code != 0 {
		t.Fatal(errOut)
	}
	note("get -o json", []byte(asJSON), "spec")
	asYAML, _, _ := g.cli("", "get", kind, name, "-o", "yaml")
	var big, huge, id string
	for line := range strings.Lines(asYAML) {
		for key, to := range map[string]*string{"  big: ": &big, "  huge: ": &huge, "    id: ": &id} {
			if value, ok := strings.CutPrefix(line, key); ok {
				*to = strings.Trim(strings.TrimSpace(value), `"'`)
			}
		}
	}
	out["get -o yaml"] = big + " " + huge + " " + id
	rpc := g.grpcClient(nil)
	rpc.service = protoreflect.Name(kind + "Service")
	got, err := rpc.call("Get"+kind, `{"name": "`+name+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	note("gRPC", []byte(got), "spec")
	return out
}

// TestGRPCService_NumbersAreExactOrRefused writes large numbers in each way into a resource of a service and into a
// stored one, and reads them in each way.
func TestGRPCService_NumbersAreExactOrRefused(t *testing.T) {
	t.Parallel()
	service, g := startGizmos(t)
	n := 0
	for _, kind := range []string{"Gizmo", "Box"} {
		for _, way := range gizmoWays(g) {
			for spec, want := range map[string]string{
				`{"big": 9007199254740991, "huge": "18446744073709551615", "owner": {"id": 9007199254740991}}`: "9007199254740991 18446744073709551615 9007199254740991",
				`{"big": -9007199254740991, "huge": "9007199254740993", "owner": {"id": 9007199254740990}}`:    "-9007199254740991 9007199254740993 9007199254740990",
				`{"big": 9007199254740992, "owner": {"id": 1}}`:                                                "",
				`{"big": 9007199254740993, "owner": {"id": 1}}`:                                                "",
				`{"big": -9007199254740992, "owner": {"id": 1}}`:                                               "",
				`{"big": 9223372036854775807, "owner": {"id": 1}}`:                                             "",
				`{"big": 18446744073709551615, "owner": {"id": 1}}`:                                            "",
				`{"big": 1, "owner": {"id": 9007199254740993}}`:                                                "",
				`{"big": 1, "owner": {"id": 18446744073709551616}}`:                                            "",
			} {
				n++
				name := fmt.Sprintf("n%d", n)
				failure := way.write(kind, name, spec)
				field := "big"
				if strings.Contains(spec, `"big": 1,`) {
					field = "owner"
				}
				if want == "" {
					if !strings.Contains(failure, field) && !strings.Contains(failure, "SafeInt") {
						t.Errorf("%s: %s: %s: it is told %q", kind, way.name, spec, failure)
					}
					continue
				}
				if failure != "" {
					t.Errorf("%s: %s: %s: it is told %q", kind, way.name, spec, failure)
					continue
				}
				for read, got := range gizmoReads(t, g, kind, name) {
					if got != want {
						t.Errorf("%s: %s: %s: %s shows %s", kind, way.name, spec, read, got)
					}
				}
				if kind == "Gizmo" {
					spec, f := standardtest.Field(service.Show(name), "spec.huge")
					if got := fmt.Sprint(spec.Get(f).Uint()); got != strings.Fields(want)[1] {
						t.Errorf("%s: the service has %s", way.name, got)
					}
				}
			}
			if way.name == "gRPC" {
				continue // JSON of protobuf takes a number for a string of digits
			}
			if failure := way.write(kind, "unquoted", `{"huge": 18446744073709551615}`); !strings.Contains(failure, "huge") &&
				!strings.Contains(failure, "String") {
				t.Errorf("%s: %s: a number for a text: it is told %q", kind, way.name, failure)
			}
		}
	}
}

package operate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

// serveFoos serves the service of RFD 153 with reflection, and returns its address and a file with its descriptors.
func serveFoos(t *testing.T) (address, file string) {
	t.Helper()
	raw := standardtest.Compile(t, nil, standardtest.FooFile)
	_, handler := standardtest.New(t, standardtest.Config{
		Descriptors: raw, Services: []string{"teleport.foo.v1.FooService"}, Message: "teleport.foo.v1.Foo",
		Name: "metadata.name", Tag: "metadata.revision", TagPresent: true,
	})
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	standardtest.AddReflection(t, mux, raw, "teleport.foo.v1.FooService", "grpc.reflection.v1.ServerReflection")
	return serveGRPC(t, mux), commandtest.WriteFile(t, t.TempDir(), "foos.binpb", string(raw))
}

// serveGRPC serves a handler to clients of gRPC, and returns its address.
func serveGRPC(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func TestServicePull_WritesTheKindsAndTheMappingOfAGRPCService(t *testing.T) {
	address, file := serveFoos(t)
	for _, from := range []string{file, address} {
		dir := t.TempDir()
		to := filepath.Join(dir, "foos.graphqls")
		mapping := filepath.Join(dir, "foos.yaml")
		out, errOut, code := commandtest.Run(t, newRoot,
			"service", "pull", "--grpc", from, "--to", to, "--mapping", mapping, "--max-length", "77")
		if code != 0 || !strings.Contains(out, "1 kind of the service foo") {
			t.Fatalf("%s: exit %d %q %s", from, code, out, errOut)
		}
		for _, says := range []string{
			"left out: Foo.spec.anything: values of google.protobuf.Any have no type",
			"limit of --max-length and --max-items: Foo.spec.bar: maxLength 77",
			`note: Foo: each resource is written with kind "foo" and version "v1"`,
		} {
			if !strings.Contains(errOut, says) {
				t.Errorf("%s: it does not say %s: %s", from, says, errOut)
			}
		}
		commandtest.Must(t, newRoot, "catalogue", "check", dir)
		kept := commandtest.Must(t, newRoot, "service", "test", address, "--mapping", mapping, "--seed", "3", "--patience", "30s")
		if !strings.Contains(kept, " 0 broken") {
			t.Errorf("%s: %s", from, kept)
		}
	}
}

func TestServicePull_KeepsWhatTheMappingSays(t *testing.T) {
	_, file := serveFoos(t)
	dir := t.TempDir()
	mapping := commandtest.WriteFile(t, dir, "foos.yaml", "kinds: {Gadget: {message: teleport.foo.v1.Foo, text: [spec.big]}}")
	to := filepath.Join(dir, "foos.graphqls")
	commandtest.Must(t, newRoot, "service", "pull", "--grpc", file, "--kind", "Gadget", "--to", to, "--mapping", mapping)
	sdl, err := os.ReadFile(to)
	if err != nil || !strings.Contains(string(sdl), "type Gadget") || !strings.Contains(string(sdl), "big: String @constraint") {
		t.Errorf("%v %s", err, sdl)
	}
	text, err := os.ReadFile(mapping)
	if err != nil || !strings.Contains(string(text), "spec.big") || !strings.Contains(string(text), "update_mask") {
		t.Errorf("%v %s", err, text)
	}
}

func TestServicePull_KeepsTheKindsOfTheMappingThatWereNotAskedFor(t *testing.T) {
	_, file := serveFoos(t)
	dir := t.TempDir()
	const gadget = "{message: teleport.foo.v1.Foo, service: teleport.foo.v1.FooService, text: [spec.big]}"
	mapping := commandtest.WriteFile(t, dir, "foos.yaml", "kinds: {Gadget: "+gadget+"}")
	to := filepath.Join(dir, "foos.graphqls")
	commandtest.Must(t, newRoot, "service", "pull", "--grpc", file, "--kind", "Foo", "--to", to, "--mapping", mapping)
	text, err := os.ReadFile(mapping)
	if err != nil || !strings.Contains(string(text), "Gadget:") || !strings.Contains(string(text), "Foo:") {
		t.Errorf("%v %s", err, text)
	}
}

func TestServicePull_WritesNothingIfAKindOfTheMappingIsRefused(t *testing.T) {
	_, file := serveFoos(t)
	dir := t.TempDir()
	const kinds = "kinds: {Foo: {}, Gadget: {message: teleport.foo.v1.Foo, tag: nothing}}"
	mapping := commandtest.WriteFile(t, dir, "foos.yaml", kinds)
	to := filepath.Join(dir, "foos.graphqls")
	_, errOut, code := commandtest.Run(t, newRoot, "service", "pull", "--grpc", file, "--to", to, "--mapping", mapping)
	if code != 1 || !strings.Contains(errOut, "nothing was written, since 1 kind cannot be served") {
		t.Errorf("exit %d %s", code, errOut)
	}
	text, err := os.ReadFile(mapping)
	if err != nil || string(text) != kinds {
		t.Errorf("%v %s", err, text)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("the SDL was written")
	}
}

func TestServicePull_SaysWhatItCannotTakeOfAGRPCService(t *testing.T) {
	_, file := serveFoos(t)
	address := serveGRPC(t, http.NotFoundHandler())
	dir := t.TempDir()
	bad := commandtest.WriteFile(t, dir, "bad.binpb", "no descriptors")
	badMapping := commandtest.WriteFile(t, dir, "bad.yaml", "kinds: {Foo: {tag: nothing}}")
	files := []string{"--to", filepath.Join(dir, "x.graphqls"), "--mapping", filepath.Join(dir, "x.yaml")}
	for name, one := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no files":           {[]string{"--grpc", file}, 2, "both --to and --mapping are needed"},
		"mapping alone":      {[]string{file, "--mapping", "x.yaml"}, 2, "they need --grpc"},
		"no descriptors":     {append([]string{"--grpc", bad}, files...), 1, "no FileDescriptorSet"},
		"no file":            {append([]string{"--grpc", "/nowhere/x.binpb"}, files...), 1, "/nowhere/x.binpb"},
		"unknown kind":       {append([]string{"--grpc", file, "--kind", "Bar"}, files...), 1, "answers a Bar; there are Foo"},
		"without reflection": {append([]string{"--grpc", address}, files...), 1, "the service has no gRPC reflection"},
		"wrong mapping": {
			[]string{"--grpc", file, "--kind", "Foo", "--to", filepath.Join(dir, "x.graphqls"), "--mapping", badMapping}, 1,
			`cannot be served: Foo: tag: the message teleport.foo.v1.Foo has no field "nothing"`,
		},
		"limit": {append([]string{"--grpc", file, "--max-length", "0"}, files...), 2, "whole numbers above 0"},
	} {
		_, errOut, code := commandtest.Run(t, newRoot, append([]string{"service", "pull"}, one.args...)...)
		if code != one.code || !strings.Contains(errOut, one.says) {
			t.Errorf("%s: exit %d %s", name, code, errOut)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.graphqls")); err == nil {
		t.Error("a file was written")
	}
}

// clashing has two pairs of kinds with equal plurals.
const clashing = `syntax = "proto3";
package example.box.v1;
message Box { string name = 1; string title = 2; }
message Boxe { string name = 1; string title = 2; }
message Lid { string name = 1; string title = 2; }
message Lidd { string name = 1; string title = 2; }
message GetRequest { string name = 1; }
message ListRequest { int32 page_size = 1; string page_token = 2; }
message BoxList { repeated Box boxes = 1; string next_page_token = 2; }
message BoxeList { repeated Boxe boxes = 1; string next_page_token = 2; }
message LidList { repeated Lid lids = 1; string next_page_token = 2; }
message LiddList { repeated Lidd lids = 1; string next_page_token = 2; }
service One {
  rpc GetBox(GetRequest) returns (Box);
  rpc ListBoxes(ListRequest) returns (BoxList);
  rpc GetLid(GetRequest) returns (Lid);
  rpc ListLids(ListRequest) returns (LidList);
}
service Other {
  rpc GetBoxe(GetRequest) returns (Boxe);
  rpc ListBoxes(ListRequest) returns (BoxeList);
  rpc GetLidd(GetRequest) returns (Lidd);
  rpc ListLids(ListRequest) returns (LiddList);
}
`

// compileClashing returns the descriptors of clashing.
func compileClashing(t testing.TB) []byte {
	return standardtest.Compile(t, func(path string) (io.ReadCloser, error) {
		if path == "box.proto" {
			return io.NopCloser(strings.NewReader(clashing)), nil
		}
		return standardtest.Open(path)
	}, "box.proto")
}

// TestServicePull_OfKindsThatClashOneIsServed: the others are served, and the error names the kinds and the reason.
// Kinds of the mapping are preferred. If two of them clash, nothing is written.
func TestServicePull_OfKindsThatClashOneIsServed(t *testing.T) {
	raw := compileClashing(t)
	for given, want := range map[string]struct{ served, refused string }{
		"kinds: {}":                      {"Box Lid", "Boxe Lidd"},
		"kinds: {Boxe: {}}":              {"Boxe Lid", "Box Lidd"},
		"kinds: {Lidd: {}, Boxe: {}}":    {"Boxe Lidd", "Box Lid"},
		"kinds: {Lid: {}}":               {"Box Lid", "Boxe Lidd"},
		"kinds: {Boxe: {}, Box: {}}":     {"", "Boxe Lidd"},
		"kinds: {Crate: {message: Box}}": {"Crate Lid", "Boxe Lidd"},
	} {
		dir := t.TempDir()
		file := commandtest.WriteFile(t, dir, "boxes.binpb", string(raw))
		mapping := commandtest.WriteFile(t, dir, "boxes.yaml", strings.Replace(given, "message: ", "message: example.box.v1.", 1))
		to := filepath.Join(dir, "boxes.graphqls")
		_, errOut, code := commandtest.Run(t, newRoot,
			"service", "pull", "--grpc", file, "--to", to, "--mapping", mapping, "--name", "boxes")
		sdl, err := os.ReadFile(to)
		if wrote := err == nil; wrote != (want.served != "") || wrote != (code == 0) {
			t.Errorf("%s: exit %d, %v: %s", given, code, err, errOut)
		}
		for _, kind := range strings.Fields(want.served) {
			if !strings.Contains(string(sdl), "\ntype "+kind+"\n") {
				t.Errorf("%s: the SDL has no kind %s", given, kind)
			}
		}
		for _, kind := range strings.Fields(want.refused) {
			line := regexp.MustCompile(`(?m)^sluice: cannot be served: ` + kind + `: kind \w+: "(boxes|lids)" means kind \w+ too,.*` +
				`; --kind chooses which of them is served$`)
			if !line.MatchString(errOut) || strings.Contains(string(sdl), "\ntype "+kind+"\n") {
				t.Errorf("%s: it does not say that %s was left out: %s", given, kind, errOut)
			}
		}
		if want.served != "" {
			commandtest.Must(t, newRoot, "catalogue", "check", dir)
		}
	}
}

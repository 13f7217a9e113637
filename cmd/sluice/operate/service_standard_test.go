package operate

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/internal/redistest"
)

// crew is a kind, without and with what a later version of its API has.
const (
	crew = `type Crew @resource(plural: "crews", group: "example.org", version: "v1", scope: NAMESPACED) { spec: CrewSpec! }
type CrewSpec { email: String! @constraint(maxLength: 100), pin: String @writeOnly @constraint(maxLength: 10) }
`
	largerCrew = `type Crew @resource(plural: "crews", group: "example.org", version: "v1", scope: NAMESPACED) { spec: CrewSpec! }
type CrewSpec { email: String! @constraint(maxLength: 100), pin: String @writeOnly @constraint(maxLength: 10), size: Int @constraint(max: 9) }
`
)

// grpcClient is a client that knows nothing of what is served but what reflection tells.
type grpcClient struct {
	t      *testing.T
	url    string
	client *http.Client
	token  string
	// service is the name of the service whose methods are called.
	service protoreflect.Name
}

// grpcClient returns a client of the standard methods of a gateway. roots is nil for a gateway without TLS.
func (g *gateway) grpcClient(roots *tls.Config) *grpcClient {
	g.t.Helper()
	transport := &http.Transport{TLSClientConfig: roots, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(roots != nil)
	transport.Protocols.SetUnencryptedHTTP2(roots == nil)
	g.t.Cleanup(transport.CloseIdleConnections)
	out := &grpcClient{t: g.t, client: &http.Client{Transport: transport}, token: g.token, service: "CrewService"}
	for l := range strings.SplitSeq(g.log.String(), "\n") {
		var line struct{ Msg, Address string }
		if json.Unmarshal([]byte(l), &line) == nil && line.Msg == "sluice serves standard methods" {
			out.url = line.Address
		}
	}
	if out.url == "" {
		g.t.Fatal("no standard methods are served:", g.log)
	}
	return out
}

// methods returns the services and messages that reflection tells.
func (c *grpcClient) file() (protoreflect.FileDescriptor, error) {
	stream := grpcreflect.NewClient(c.client, c.url, connect.WithGRPC()).NewStream(c.t.Context(), grpcreflect.WithRequestHeaders(c.header()))
	defer func() { _, _ = stream.Close() }()
	names, err := stream.ListServices()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(names, func(n protoreflect.FullName) bool { return n.Name() == c.service })
	if at < 0 {
		return nil, fmt.Errorf("there is no %s", c.service)
	}
	files, err := stream.FileContainingSymbol(names[at])
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(files, func(f *descriptorpb.FileDescriptorProto) bool { return len(f.GetService()) > 0 })
	return protodesc.NewFile(files[own], protoregistry.GlobalFiles)
}

func (c *grpcClient) header() http.Header {
	out := http.Header{}
	if c.token != "" {
		out.Set("Authorization", "Bearer "+c.token)
	}
	return out
}

// method returns a client of a method, and a request read from JSON.
func (c *grpcClient) method(name, text string) (*connect.Client[dynamicpb.Message, dynamicpb.Message], *connect.Request[dynamicpb.Message], error) {
	file, err := c.file()
	if err != nil {
		return nil, nil, err
	}
	service := file.Services().ByName(c.service)
	m := service.Methods().ByName(protoreflect.Name(name))
	in := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal([]byte(text), in); err != nil {
		return nil, nil, err
	}
	req := connect.NewRequest(in)
	for key, values := range c.header() {
		req.Header()[key] = values
	}
	return connect.NewClient[dynamicpb.Message, dynamicpb.Message](c.client, c.url+"/"+string(service.FullName())+"/"+name,
		connect.WithGRPC(), connect.WithSchema(m), connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
			proto.Reset(message.(proto.Message))
			*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(m.Output())
			return nil
		})), req, nil
}

// call calls a method, and returns the answer as JSON without blanks.
func (c *grpcClient) call(name, text string) (string, error) {
	c.t.Helper()
	client, req, err := c.method(name, text)
	if err != nil {
		return "", err
	}
	res, err := client.CallUnary(c.t.Context(), req)
	if err != nil {
		return "", err
	}
	raw, err := protojson.Marshal(res.Msg)
	return strings.NewReplacer(`": `, `":`, `", "`, `","`).Replace(string(raw)), err
}

func TestGRPC_AClientFindsWhatIsServedAndReloadsChangeIt(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	dir := t.TempDir()
	kinds, numbers, audit := filepath.Join(dir, "kinds"), filepath.Join(dir, "numbers.txt"), filepath.Join(dir, "audit")
	file := filepath.Join(kinds, "crew.graphqls")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(kinds, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(args ...string) string {
		t.Helper()
		out, errOut, code := sluice(t, "", args...)
		if code != 0 {
			t.Fatal(args, out, errOut)
		}
		return out
	}
	write(crew)
	must("catalogue", "release", "1.0", kinds)
	write(largerCrew)
	must("proto", "print", kinds, "--numbers", numbers)
	authority, tokens := newAuthority(t), newTokenFile(t)
	cert, key := authority.files()
	token := tokens.add("ci", "ops", time.Time{})
	other := tokens.add("other", "dev", time.Time{})
	socket := filepath.Join(t.TempDir(), "s")
	g := start(t, "", "--catalogue", kinds, "--tls-cert", cert, "--tls-key", key, "--tokens", tokens.path, "--admin-group", "token:ops",
		"--service-listen", "127.0.0.1:0", "--field-numbers", numbers, "--audit", audit, "--admin-socket", socket)
	g.token = token
	c := g.grpcClient(&tls.Config{RootCAs: authority.Pool, MinVersion: tls.VersionTLS12})
	got, err := c.call("CreateCrew", `{"crew": {"metadata": {"name": "core"}, "spec": {"email": "core@example.org", "pin": "1234"}}}`)
	if err != nil || !strings.Contains(got, `"updatedBy":"token:ci"`) || strings.Contains(got, "1234") {
		t.Fatal(got, err)
	}
	stream := watchCrews(t, c)

	t.Run("others are refused", func(t *testing.T) {
		c.token = ""
		if _, err := c.call("GetCrew", `{"name": "core"}`); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Error(err)
		}
		c.token = other
		if _, err := c.call("GetCrew", `{"name": "core"}`); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Error(err)
		}
		c.token = token
	})
	t.Run("what is not released is not served", func(t *testing.T) {
		served, err := c.file()
		if err != nil || served.Messages().ByName("CrewSpec").Fields().ByName("size") != nil {
			t.Error(served, err)
		}
	})
	t.Run("a reload needs the numbers first", func(t *testing.T) {
		must("catalogue", "release", "1.1", kinds)
		_, errOut, code := sluice(t, "", "catalogue", "reload", "--admin-socket", socket)
		if code == 0 || !strings.Contains(errOut, "there are no numbers for CrewSpec.size; add them with sluice proto print DIR --numbers "+numbers) {
			t.Error(code, errOut)
		}
		must("proto", "print", kinds, "--numbers", numbers)
		must("catalogue", "reload", "--admin-socket", socket)
		got, err := c.call("UpsertCrew", `{"crew": {"metadata": {"name": "core"}, "spec": {"email": "core@example.org", "size": 4}}}`)
		if err != nil || !strings.Contains(got, `"size":4`) {
			t.Error(got, err)
		}
	})
	t.Run("a stream goes on over the reload and ends with its token", func(t *testing.T) {
		for want := "MODIFIED"; ; {
			if !stream.Receive() {
				t.Fatal(stream.Err())
			}
			if raw, _ := protojson.Marshal(stream.Msg()); strings.Contains(string(raw), want) {
				break
			}
		}
		tokens.revoke("ci")
		for stream.Receive() {
		}
		if connect.CodeOf(stream.Err()) != connect.CodeUnauthenticated {
			t.Error(stream.Err())
		}
	})
	t.Run("the audit log has who it was", func(t *testing.T) {
		redistest.Await(t, "the audit log has the change", func() error {
			text, err := os.ReadFile(audit)
			if err == nil && (!strings.Contains(string(text), `"token:ci"`) || !strings.Contains(string(text), "FORBIDDEN")) {
				err = errors.New(string(text))
			}
			return err
		})
	})
}

// watchCrews begins a stream of the changes of crews.
func watchCrews(t *testing.T, c *grpcClient) *connect.ServerStreamForClient[dynamicpb.Message] {
	t.Helper()
	client, req, err := c.method("WatchCrews", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.CallServerStream(context.WithoutCancel(t.Context()), req)
	if err != nil || !stream.Receive() {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

func TestGRPC_AStartNeedsTheNumbers(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	dir := t.TempDir()
	kinds, numbers := filepath.Join(dir, "kinds"), filepath.Join(dir, "numbers.txt")
	if err := errors.Join(os.Mkdir(kinds, 0o700), os.WriteFile(filepath.Join(kinds, "crew.graphqls"), []byte(crew), 0o600),
		os.WriteFile(numbers, []byte("package acme.v1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"service-listen: it needs field-numbers":       {"--service-listen", "127.0.0.1:0"},
		"there are no numbers for AccessBinding.spec;": {"--service-listen", "127.0.0.1:0", "--field-numbers", numbers},
		"field-numbers: open ":                         {"--service-listen", "127.0.0.1:0", "--field-numbers", filepath.Join(dir, "none")},
		"service-listen: 0.0.0.0:0 is not loopback":    {"--service-listen", "0.0.0.0:0", "--field-numbers", numbers},
		"field-numbers":                                {"--field-numbers", numbers},
	} {
		data := filepath.Join(dir, "data")
		_, errOut, code := sluice(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--catalogue", kinds, "--data", data}, args...)...)
		if code != 2 || !strings.Contains(errOut, want) {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%v: a store was made", args)
		}
	}
}

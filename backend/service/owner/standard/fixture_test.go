package standard_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/vektah/gqlparser/v2/ast"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// world is a service, and a client that asks it.
type world struct {
	server      *standardtest.Server
	client      *standard.Client
	descriptors *standard.Descriptors
	catalogue   *standard.Catalogue
}

// fooConfig is the service of RFD 153.
func fooConfig(t testing.TB) standardtest.Config {
	return standardtest.Config{
		Descriptors: standardtest.Compile(t, nil, standardtest.FooFile),
		Services:    []string{"teleport.foo.v1.FooService"},
		Message:     "teleport.foo.v1.Foo",
		Name:        "metadata.name",
		Tag:         "metadata.revision",
		TagPresent:  true,
		MaxPage:     7,
		Validate: func(resource protoreflect.Message) error {
			spec, baz := standardtest.Field(resource, "spec.baz")
			if spec.Get(baz).Int() > 100 {
				return refused(connect.CodeInvalidArgument, "spec.baz: at most 100")
			}
			return nil
		},
		Admit: func(resource protoreflect.Message) { standardtest.SetText(resource, "status.teleport_host", "host-1") },
	}
}

// compileText compiles the text of a .proto file, which can import those of standardtest.
func compileText(t testing.TB, text string) []byte {
	t.Helper()
	const file = "thing.proto"
	return standardtest.Compile(t, func(path string) (io.ReadCloser, error) {
		if path == file {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return standardtest.Open(path)
	}, file)
}

// thingConfig is a service of Things whose messages have the given fields besides.
func thingConfig(t testing.TB, fields map[string]string) standardtest.Config {
	name := fields["name"]
	if name == "" {
		name = "string name = 1;"
	}
	return standardtest.Config{
		Descriptors: compileText(t, `syntax = "proto3";
package thing.v1;
import "google/api/field_behavior.proto";
import "google/protobuf/any.proto";
import "google/protobuf/empty.proto";
message Thing {
  `+name+`
  string etag = 2;
  string text = 3;
  `+fields["Thing"]+`
}
`+fields["file"]+`
service Things {
  rpc GetThing(GetThingRequest) returns (Thing);
  rpc ListThings(ListThingsRequest) returns (ListThingsResponse);
  rpc CreateThing(CreateThingRequest) returns (Thing);
  rpc UpdateThing(UpdateThingRequest) returns (Thing);
  rpc UpsertThing(UpsertThingRequest) returns (Thing);
  rpc DeleteThing(DeleteThingRequest) returns (google.protobuf.Empty);
}
message GetThingRequest { string name = 1; }
message ListThingsRequest { `+fields["ListThingsRequest"]+` }
message ListThingsResponse { repeated Thing things = 1; `+fields["ListThingsResponse"]+` }
message CreateThingRequest { Thing thing = 1; `+fields["CreateThingRequest"]+` }
message UpdateThingRequest { Thing thing = 1; `+fields["UpdateThingRequest"]+` }
message UpsertThingRequest { Thing thing = 1; `+fields["UpsertThingRequest"]+` }
message DeleteThingRequest { string name = 1; `+fields["DeleteThingRequest"]+` }
`),
		Services: []string{"thing.v1.Things"},
		Message:  "thing.v1.Thing",
		Name:     "name",
		Tag:      "etag",
	}
}

// newWorld serves a service, and pulls its API.
func newWorld(t testing.TB, cfg standardtest.Config, protocol remote.Protocol, mapping *standard.Mapping) *world {
	t.Helper()
	d, err := standard.ReadDescriptors(cfg.Descriptors)
	if err != nil {
		t.Fatal(err)
	}
	server, handler := standardtest.New(t, cfg)
	listening := httptest.NewUnstartedServer(handler)
	listening.Config.Protocols = nil
	listening.EnableHTTP2 = true
	protocols := *httpProtocols()
	listening.Config.Protocols = &protocols
	listening.Start()
	t.Cleanup(listening.Close)
	var names []string
	if mapping != nil {
		for name := range mapping.Kinds {
			names = append(names, name)
		}
	}
	c, err := d.Catalogue("foos", names, mapping, standard.Limits{Length: 1000, Items: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Refused) > 0 {
		t.Fatal(c.Refused)
	}
	client, err := standard.New(standard.Config{
		Remote:      remote.Config{Name: "foos", Address: listening.URL, Protocol: protocol},
		Descriptors: d,
		Mapping:     c.Mapping,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &world{server: server, client: client, descriptors: d, catalogue: c}
}

// described returns the kinds of the SDL.
func (w *world) described(t testing.TB) (out []descriptor.Kind) {
	t.Helper()
	schema, err := kinds.Load(&ast.Source{Name: "pulled.graphqls", Input: w.catalogue.SDL})
	if err != nil {
		t.Fatalf("%v in\n%s", err, numbered(w.catalogue.SDL))
	}
	for _, k := range schema.Kinds {
		out = append(out, k.Kind)
	}
	return out
}

func numbered(text string) string { return strings.TrimSpace(text) }

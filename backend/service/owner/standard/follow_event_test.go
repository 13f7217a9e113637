package standard_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// teleportEvents has the shape of Teleport's stream of events: authservice.proto, event.proto and types.proto of its
// api/proto/teleport/legacy. One event has resources of all kinds, and only a header of one that was deleted.
const teleportEvents = `syntax = "proto3";
package proto;
import "google/protobuf/timestamp.proto";
import "teleport/foo/v1/foo_service.proto";
enum Operation { INIT = 0; PUT = 1; DELETE = 2; }
message Event {
  reserved 7;
  Operation Type = 1;
  oneof Resource {
    ResourceHeader ResourceHeader = 2;
    UserV2 User = 8;
    teleport.foo.v1.Foo Foo = 81;
  }
}
message ResourceHeader {
  string Kind = 1;
  string SubKind = 2;
  string Version = 3;
  Metadata Metadata = 4;
}
message Metadata {
  reserved 7;
  string Name = 1;
  string Namespace = 2;
  string Description = 3;
  map<string, string> Labels = 5;
  google.protobuf.Timestamp Expires = 6;
  string Revision = 8;
}
message UserV2 { string Kind = 1; Metadata Metadata = 4; }
message Watch {
  repeated WatchKind Kinds = 2;
  bool AllowPartialSuccess = 3;
}
message WatchKind {
  string Kind = 1;
  bool LoadSecrets = 2;
  string Name = 3;
  map<string, string> Filter = 4;
  string SubKind = 5;
  string Version = 6;
}
service AuthService {
  rpc WatchEvents(Watch) returns (stream Event);
}
`

// parsedMapping parses a mapping.
func parsedMapping(t *testing.T, text string) *standard.Mapping {
	t.Helper()
	m, err := standard.ParseMapping([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestChanges_TeleportsEventsAreFollowed(t *testing.T) {
	cfg := fooConfig(t)
	cfg.Descriptors = compileText(t, teleportEvents)
	cfg.Services = append(cfg.Services, "proto.AuthService")
	cfg.Header = "ResourceHeader"
	cfg.HeaderKind = "Kind"
	cfg.HeaderName = "Metadata.Name"
	w := newWorld(t, cfg, "", parsedMapping(t, `
kinds:
  Foo:
    watch:
      method: proto.AuthService.WatchEvents
      set: {Kinds: [{Kind: foo}]}
      answer: Foo
      header: ResourceHeader
      headerName: Metadata.Name
      headerIs: {Kind: foo}
`))
	at, err := w.client.Changes(t.Context(), "", 0)
	if err != nil || at.Expired {
		t.Fatal(at, err)
	}
	put := func(name, kind string) {
		w.server.Put(name, func(foo protoreflect.Message) { standardtest.SetText(foo, "kind", kind) })
	}
	put("a", "foo")
	put("other", "user")
	w.server.Remove("a")
	w.server.Remove("other") // whose header is one of another kind
	put("b", "foo")
	reported := map[backend.Key]int{}
	for reported[backend.Key{Kind: "Foo", Name: "b"}] == 0 {
		at, err = w.client.Changes(t.Context(), at.Position, time.Minute)
		if err != nil || at.Expired {
			t.Fatal(at, err)
		}
		for _, key := range at.Keys {
			reported[key]++
		}
	}
	for name, want := range map[string]int{"a": 2, "other": 1, "b": 1} {
		if got := reported[backend.Key{Kind: "Foo", Name: name}]; got != want {
			t.Errorf("%s was told %d times, want %d", name, got, want)
		}
	}
}

func TestCatalogue_NotesAStreamThatDoesNotTellEverything(t *testing.T) {
	cfg := fooConfig(t)
	cfg.Services = append(cfg.Services, "teleport.foo.v1.FooWatchService")
	for mapping, want := range map[string]struct {
		note    string
		changes bool
	}{
		"{method: teleport.foo.v1.FooWatchService.WatchFoos}": {
			"a deletion is noticed by WatchFoos if its event has the resource", true,
		},
		`{method: teleport.foo.v1.FooWatchService.WatchFoos, answer: "-"}`: {
			"so WatchFoos is not used, and everything is compared every 30 s", false,
		},
		"{method: teleport.foo.v1.FooWatchService.WatchFoos, header: header}": {"", true},
	} {
		w := newWorld(t, cfg, "", parsedMapping(t, "kinds: {Foo: {watch: "+mapping+"}}"))
		var notes []string
		for _, one := range w.catalogue.Notes {
			if strings.Contains(one.Why, "WatchFoos") {
				notes = append(notes, one.Why)
			}
		}
		if text := strings.Join(notes, "\n"); (text == "") != (want.note == "") || !strings.Contains(text, want.note) {
			t.Errorf("%s: %q", mapping, text)
		}
		d, err := w.client.Describe(t.Context())
		if err != nil || d.Kinds[0].Changes != want.changes {
			t.Errorf("%s: %+v %v", mapping, d, err)
		}
	}
}

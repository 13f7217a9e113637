package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
	"github.com/sluicegw/sluice/graph/server"
)

// Mappings of the service of Foos: the first one shows all, and the second one shows less.
const (
	allOfFoo  = "kinds: {Foo: {}}"
	lessOfFoo = "kinds: {Foo: {omit: [spec.baz]}}"
)

// fooService is a gRPC service of RFD 153, which knows nothing of gateways. It has no stream of events, so it is
// compared.
type fooService struct {
	*standardtest.Server
	t       *testing.T
	address string
	read    *standard.Descriptors
}

func serveFoos(t *testing.T) *fooService {
	t.Helper()
	raw := standardtest.Compile(t, nil, standardtest.FooFile)
	foos, handler := standardtest.New(t, standardtest.Config{
		Descriptors: raw, Services: []string{"teleport.foo.v1.FooService"}, Message: "teleport.foo.v1.Foo",
		Name: "metadata.name", Tag: "metadata.revision", TagPresent: true,
	})
	listening := httptest.NewUnstartedServer(handler)
	listening.Config.Protocols = new(http.Protocols)
	listening.Config.Protocols.SetUnencryptedHTTP2(true)
	listening.Start()
	t.Cleanup(listening.Close)
	read, err := standard.ReadDescriptors(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &fooService{Server: foos, t: t, address: listening.URL, read: read}
}

// pull returns what `sluice service pull` makes of the service and a mapping.
func (s *fooService) pull(mapping string) *standard.Catalogue {
	s.t.Helper()
	given, err := standard.ParseMapping([]byte(mapping))
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.read.Catalogue("foos", nil, given, standard.Limits{Length: 100, Items: 10})
	if err != nil || len(out.Refused) > 0 {
		s.t.Fatalf("%+v %v", out, err)
	}
	return out
}

// serve makes a gateway serve the Foos of the service by a mapping, with other kinds.
func (s *fooService) serve(c *changing, mapping, others string) *service.Service {
	s.t.Helper()
	client, err := standard.New(standard.Config{
		Remote:      remote.Config{Name: "foos", Address: s.address},
		Descriptors: s.read,
		Mapping:     s.pull(mapping).Mapping,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	c.owners = map[string]owner.Service{"foos": client}
	return c.replace(s.pull(mapping).SDL + others)
}

// gateway starts a gateway over a store that serves the Foos by a mapping, to everybody.
func (s *fooService) gateway(store backend.Store, mapping string) (*changing, *service.Service) {
	s.t.Helper()
	c := openChangingOn(s.t, store, server.Config{})
	return c, s.serve(c, mapping, "")
}

// set creates or changes a Foo without a gateway.
func (s *fooService) set(name, bar string, baz int32) {
	s.Put(name, func(foo protoreflect.Message) {
		standardtest.SetText(foo, "spec.bar", bar)
		spec, f := standardtest.Field(foo, "spec.baz")
		spec.Set(f, protoreflect.ValueOfInt32(baz))
	})
}

// baz returns the number in a Foo of the service.
func (s *fooService) baz(name string) int64 {
	s.t.Helper()
	spec, f := standardtest.Field(s.Show(name), "spec.baz")
	return spec.Get(f).Int()
}

// soon waits until something is so, for a minute at most.
func soon(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// comparedBy waits until a gateway has compared the Foos a few times. There must be one.
func (s *fooService) comparedBy(svc *service.Service) {
	s.t.Helper()
	const rounds = 4
	begin := svc.Owners()[0].Compared
	soon(s.t, "the service is compared", func() bool {
		return svc.Owners()[0].Compared >= begin+int64(rounds*s.Len())
	})
}

// fooChanges is a stream of the changes of Foos.
const fooChanges = `subscription($after: String) { event: fooChanges(after: $after) {
	type cursor foo { metadata { name } spec { bar } } } }`

// fooEvent is an event of fooChanges.
type fooEvent struct {
	Type, Cursor string
	Foo          *struct {
		Metadata struct{ Name string }
		Spec     struct{ Bar string }
	}
}

// String returns the type and the Foo of an event.
func (e fooEvent) String() string {
	if e.Foo == nil {
		return e.Type
	}
	return fmt.Sprintf("%s %s %s", e.Type, e.Foo.Metadata.Name, e.Foo.Spec.Bar)
}

// follow begins a stream of the changes of Foos after a cursor. Without one, it reads the first event, and returns its
// cursor.
func (c *changing) follow(after string) (w *wire, cursor string) {
	c.Helper()
	w = c.dial()
	if after != "" {
		w.begin("1", fooChanges, map[string]any{"after": after})
		return w, after
	}
	w.begin("1", fooChanges, nil)
	return w, w.inSync()
}

// foo reads the next event of a stream of Foos.
func (w *wire) foo() fooEvent {
	w.t.Helper()
	m := w.read()
	var e struct{ Data struct{ Event fooEvent } }
	err := json.Unmarshal(m.Payload, &e)
	if m.Type != "next" || err != nil || e.Data.Event.Type == "" {
		w.t.Fatalf("heard %s %s", m.Type, m.Payload)
	}
	return e.Data.Event
}

// inSync reads the first event of a stream of Foos, and returns its cursor.
func (w *wire) inSync() (cursor string) {
	w.t.Helper()
	first := w.foo()
	if first.Type != "IN_SYNC" {
		w.t.Fatalf("it begins with %s", first)
	}
	return first.Cursor
}

// next reads the next event of a stream of Foos about a change.
func (w *wire) next() fooEvent {
	w.t.Helper()
	for {
		if e := w.foo(); e.Type != "BOOKMARK" && e.Type != "IN_SYNC" {
			return e
		}
	}
}

// expect reads events of a stream of Foos, which must be these in their order, and returns the last cursor.
func (w *wire) expect(want ...string) (cursor string) {
	w.t.Helper()
	for _, one := range want {
		got := w.next()
		if got.String() != one {
			w.t.Fatalf("the event is %q, want %q", got, one)
		}
		cursor = got.Cursor
	}
	return cursor
}

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/policy"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/server"
)

// narrow and wide are catalogues: the wide one has a field, an index and a kind more.
const (
	narrow = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int! }
`
	wide = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int! @filterable
  depth: Int }
type Box @resource(plural: "boxes", group: "example.org", version: "v1", scope: NAMESPACED) { spec: BoxSpec! }
type BoxSpec { size: Int }
`
)

// changing is a server whose catalogue is replaced. Only the service of the newest one runs, as in a gateway.
type changing struct {
	*testing.T
	edge
	server *server.Server
	store  backend.Store
	hub    *hub.Hub
	// rights are nil without access control.
	rights *policy.Source
	url    string
	// numbers are those of the standard methods; nil for none.
	numbers *proto.Numbers
	// owners are the resource services of the kinds. They are compared all the time.
	owners map[string]owner.Service
	// stop ends the service that runs.
	stop func()
}

// comparePause is the pause between two comparisons of a resource service.
const comparePause = 20 * time.Millisecond

// newChanging serves the narrow catalogue over a store and a hub that runs, to a caller who has shown who it is and is an
// editor.
func newChanging(t *testing.T, cfg server.Config) *changing {
	t.Helper()
	return newChangingOver(t, plain, cfg)
}

func newChangingOver(t *testing.T, wrap func(backend.Store) backend.Store, cfg server.Config) *changing {
	t.Helper()
	text, identities := token(t)
	cfg.Identities = identities
	c := openChanging(t, wrap, cfg)
	c.token = text
	return c
}

// newChangingForAll is newChanging without access control.
func newChangingForAll(t *testing.T, cfg server.Config) *changing {
	t.Helper()
	return openChanging(t, plain, cfg)
}

func openChanging(t *testing.T, wrap func(backend.Store) backend.Store, cfg server.Config) *changing {
	t.Helper()
	kept, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	return openChangingOn(t, wrap(kept), cfg)
}

// openChangingOn is openChanging on a store that is open.
func openChangingOn(t *testing.T, store backend.Store, cfg server.Config) *changing {
	t.Helper()
	var err error
	c := &changing{T: t, store: store, stop: func() {}}
	if c.hub, err = hub.New(hub.Config{Store: c.store}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { _ = c.hub.Run(ctx) })
	if cfg.Identities.Required() {
		if c.rights, err = policy.New(policy.Config{Store: c.store, Hub: c.hub, Kinds: kindstest.Kinds(t)}); err != nil {
			t.Fatal(err)
		}
		ran.Go(func() { _ = c.rights.Run(ctx) })
	}
	catalogue, svc := c.catalogue(narrow)
	cfg.Catalogue = catalogue
	if c.server, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	c.run(svc)
	if c.rights != nil {
		c.bind(svc, "editor")
	}
	c.edge.Handler = c.server.Handler()
	web := httptest.NewServer(c.edge.Handler)
	c.url = web.URL
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		c.stop()
		stop()
		ran.Wait()
	})
	return c
}

// bind gives the caller a role in all namespaces, in place of others.
func (c *changing) bind(svc *service.Service, role string) {
	c.Helper()
	root := access.Caller{Identity: &access.Identity{Name: "token:root", Groups: []string{admins}}}
	spec := map[string]any{"roles": []any{role}, "groups": []any{"token:ops"}, "namespaces": []any{"*"}}
	request := service.UpsertRequest{Identity: kind.Identity{Kind: access.BindingKind, Name: "ops"}, Spec: spec}
	if _, err := svc.Writer.Upsert(access.WithCaller(c.Context(), root), request); err != nil {
		c.Fatal(err)
	}
}

// admins is the group whose users may do everything.
const admins = "token:admins"

// run runs a service in place of the one before.
func (c *changing) run(svc *service.Service) {
	before := c.stop
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { _ = svc.Run(ctx) })
	c.stop = func() { cancel(); ran.Wait() }
	before()
}

// catalogue is one of some SDL, with its service.
func (c *changing) catalogue(sdl string) (server.Catalogue, *service.Service) {
	c.Helper()
	schema, api := c.read(sdl)
	svc := c.service(schema.Descriptors())
	out := server.Single(svc, api)
	out.Hash, out.Files = fmt.Sprintf("hash-of-%d", strings.Count(sdl, "@resource")), schema.Hash
	if c.numbers != nil {
		c.numbers.Add(svc.Kinds())
		messages, err := proto.New(svc.Kinds(), c.numbers)
		if err != nil {
			c.Fatal(err)
		}
		out.Methods = server.Methods{Service: svc, Messages: messages}
	}
	return out, svc
}

// read reads some SDL, under access control with the kinds that give rights.
func (c *changing) read(sdl string) (*kinds.Schema, *ast.Schema) {
	c.Helper()
	load := func() (*kinds.Schema, error) { return kinds.Load(&ast.Source{Name: "kinds.graphqls", Input: sdl}) }
	if c.rights != nil {
		load = func() (*kinds.Schema, error) { return kinds.ReadTexts(map[string]string{"kinds.graphqls": sdl}, "") }
	}
	schema, err := load()
	if err != nil {
		c.Fatal(err)
	}
	api, err := schema.API()
	if err != nil {
		c.Fatal(err)
	}
	return schema, api
}

// service makes the service of some kinds.
func (c *changing) service(kinds []descriptor.Kind) *service.Service {
	c.Helper()
	intervals := map[string]time.Duration{}
	for name := range c.owners {
		intervals[name] = comparePause
	}
	svc, err := service.New(service.Config{
		Kinds: kinds, Store: c.store, Hub: c.hub, Access: access.Config{Enabled: c.rights != nil, AdminGroup: admins}, Policy: c.rights,
		Owners: c.owners, CompareIntervals: intervals,
	})
	if err != nil {
		c.Fatal(err)
	}
	return svc
}

// replace serves another catalogue.
func (c *changing) replace(sdl string) *service.Service {
	c.Helper()
	catalogue, svc := c.catalogue(sdl)
	g, err := c.server.Prepare(catalogue)
	if err != nil {
		c.Fatal(err)
	}
	c.server.Replace(g)
	c.run(svc)
	return svc
}

// put writes a shelf.
func (c *changing) put(name string, width int) {
	c.Helper()
	query := fmt.Sprintf(`mutation { upsertShelf(input: {name: %q, spec: {width: %d}}) { created } }`, name, width)
	if got := c.post(c.T, query, nil); strings.Contains(got, "errors") {
		c.Fatal(got)
	}
}

// wire is a connection by graphql-transport-ws.
type wire struct {
	t    testing.TB
	conn *websocket.Conn
	mu   sync.Mutex // of writes
}

// heard is a message of the gateway.
type heard struct {
	ID, Type string
	Payload  json.RawMessage
}

func (c *changing) dial() *wire {
	c.Helper()
	return c.dialAt("/v1/graphql")
}

// dialAt connects to a path of the API.
func (c *changing) dialAt(path string) *wire {
	c.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	header := http.Header{}
	c.identify(header)
	conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(c.url, "http")+path, header)
	if err != nil {
		c.Fatal(err)
	}
	w := &wire{t: c, conn: conn}
	c.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	w.write(map[string]any{"type": "connection_init"})
	if m := w.read(); m.Type != "connection_ack" {
		c.Fatalf("heard %v", m)
	}
	return w
}

func (w *wire) write(v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.WriteJSON(v); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) begin(id, query string, variables map[string]any) {
	w.write(map[string]any{"type": "subscribe", "id": id, "payload": map[string]any{"query": query, "variables": variables}})
}

func (w *wire) read() (m heard) {
	if err := w.conn.ReadJSON(&m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// event is one of a change stream of shelves.
type event struct {
	Data struct {
		Event struct {
			Type, Cursor string
			Shelf        struct {
				Metadata struct{ Name string }
				Spec     struct{ Width int }
			}
		}
	}
}

func (m heard) event(t testing.TB) (e event) {
	t.Helper()
	if m.Type != "next" || json.Unmarshal(m.Payload, &e) != nil {
		t.Fatalf("heard %s %s", m.Type, m.Payload)
	}
	return e
}

// ending is why a stream ended.
type ending []struct {
	Extensions struct {
		Code, Cursor string
		Retryable    bool
	}
}

func (m heard) ending(t testing.TB) (e ending) {
	t.Helper()
	if m.Type != "error" || json.Unmarshal(m.Payload, &e) != nil || len(e) != 1 {
		t.Fatalf("heard %s %s", m.Type, m.Payload)
	}
	return e
}

const shelfChanges = `subscription($namespace: String, $after: String) { event: shelfChanges(namespace: $namespace, after: $after) { type cursor shelf { metadata { name } spec { width } } } }`

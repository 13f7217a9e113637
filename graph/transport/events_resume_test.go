package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/transport"
)

// store is a service that many gateways may serve, one after the other.
type store struct {
	*service.Service
	exec *transport.Executor
	// answered counts the events that were executed.
	answered atomic.Int64
	memory   *budget.Memory
	// reader asks the gateways; nil is an unknown caller.
	reader *access.Identity
}

// openStore opens a store with access control: gateways over it are asked by a caller who may read everything, by a role.
func openStore(t testing.TB, cfg memory.Config) *store {
	t.Helper()
	s := openStoreFor(t, cfg, func(s backend.Store) service.Config { return service.Config{Store: s, Access: judging()} })
	s.bindReader(t)
	return s
}

// openStoreForAll is openStore without access control.
func openStoreForAll(t testing.TB, cfg memory.Config) *store {
	t.Helper()
	return openStoreFor(t, cfg, func(s backend.Store) service.Config { return service.Config{Store: s} })
}

// openStoreBehind is openStore with something between the service and the store, from which all is read.
func openStoreBehind(t testing.TB, cfg memory.Config, behind func(backend.Store) backend.Store) *store {
	t.Helper()
	s := openStoreFor(t, cfg, func(s backend.Store) service.Config {
		return service.Config{Store: behind(s), IndexMemory: -1, Access: judging()}
	})
	s.bindReader(t)
	return s
}

// judging is the configuration of access control.
func judging() access.Config { return access.Config{Enabled: true, AdminGroup: "token:admins"} }

// administrator returns a context in which everything is allowed.
func administrator(ctx context.Context) context.Context {
	admin := &access.Identity{Name: "token:root", Source: "token", Groups: []string{"token:admins"}}
	return access.WithCaller(ctx, access.Caller{Identity: admin})
}

// bindReader gives the caller of gateways the role viewer in all namespaces.
func (s *store) bindReader(t testing.TB) {
	t.Helper()
	s.reader = &access.Identity{Name: "token:reader", Source: "token"}
	_, err := s.Writer.Create(administrator(t.Context()), service.CreateRequest{
		Identity: kind.Identity{Kind: access.BindingKind, Name: "reader"},
		Spec:     map[string]any{"roles": []any{"viewer"}, "users": []any{s.reader.Name}, "namespaces": []any{"*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func openStoreFor(t testing.TB, cfg memory.Config, of func(backend.Store) service.Config) *store {
	t.Helper()
	m, err := memory.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	how := of(m)
	how.Kinds = kindstest.Kinds(t)
	svc, err := service.New(how)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); _ = m.Close() })
	documents, err := transport.OpenNamedDocuments(transport.NamedDocumentsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{Service: svc, memory: budget.NewMemory(1<<30, 64<<20)}
	t.Cleanup(func() { // when all gateways have stopped
		if n := s.memory.Used(); n != 0 {
			t.Errorf("%d bytes are still taken of the memory of what is in flight", n)
		}
	})
	es := enginetest.New(t, nil, svc)
	s.exec = transport.NewExecutor(transport.ExecutorConfig{
		Engine: es, Named: documents, Documents: newDocuments(es.Schema()),
		Accounts: accounts(func() { s.answered.Add(1) }),
		Present: func(ctx context.Context, err error) *gqlerror.Error {
			e := graphql.DefaultErrorPresenter(ctx, err)
			if known, ok := e.Err.(*failure.Error); ok {
				e.Extensions = map[string]any{"code": known.Code, "cursor": known.Cursor}
			}
			return e
		},
		Recover: graphql.DefaultRecover, Memory: s.memory,
	})
	return s
}

func (s *store) create(t testing.TB, name string) {
	t.Helper()
	_, err := s.Writer.Create(administrator(t.Context()), service.CreateRequest{
		Identity: kind.Identity{Kind: "Network", Name: name},
		Spec:     map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{}},
	})
	if err != nil {
		t.Error(err)
	}
}

// serve starts a gateway over the store.
func (s *store) serve(t testing.TB) *gateway { return s.serveWith(t, transport.Config{}) }

func (s *store) serveWith(t testing.TB, cfg transport.Config) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, caller: s.reader, dial: func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }}
	cfg.Memory = s.memory
	g.start(l, s.exec, cfg)
	return g
}

// change is an event of a subscription to networks.
type change struct {
	Type, Cursor string
	Network      struct{ Metadata struct{ Name string } }
}

func parseChange(t testing.TB, payload []byte) change {
	t.Helper()
	var m struct {
		Data struct{ NetworkChanges change }
	}
	if err := json.Unmarshal(payload, &m); err != nil || m.Data.NetworkChanges.Type == "" {
		t.Fatalf("%s: %v", payload, err)
	}
	return m.Data.NetworkChanges
}

// lagged reports whether a payload ends the stream of a listener that was too slow.
// It goes on from where it was, as after a lost connection.
func lagged(t testing.TB, payload []byte) bool {
	t.Helper()
	var m struct{ Errors gqlerror.List }
	list := any(&m)
	if bytes.HasPrefix(payload, []byte("[")) { // what a socket's error message has
		list = &m.Errors
	}
	if err := json.Unmarshal(payload, list); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return len(m.Errors) == 1 && m.Errors[0].Extensions["code"] == "LAGGED"
}

// client follows the changes after a cursor. next returns false when the
// connection is lost or the client was too slow; cut loses it.
type client func(g *gateway, after string) (next func() (change, bool), cut func())

func overSocket(g *gateway, after string) (func() (change, bool), func()) {
	p := g.open()
	var variable *string
	if after != "" {
		variable = &after
	}
	payload, _ := json.Marshal(map[string]any{
		"query":     `subscription($after: String) { networkChanges(after: $after) { type cursor network { metadata { name } } } }`,
		"variables": map[string]any{"after": variable},
	})
	p.say(fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload))
	return func() (change, bool) {
		_, data, err := p.ReadMessage()
		if err != nil {
			return change{}, false
		}
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(data, &m); err != nil {
			g.t.Fatalf("%s %v", data, err)
		}
		if lagged(g.t, m.Payload) {
			return change{}, false
		}
		if m.Type != "next" {
			g.t.Fatalf("%s", data)
		}
		return parseChange(g.t, m.Payload), true
	}, func() { _ = p.NetConn().Close() }
}

// byEventSource asks the same again each time, as a browser does, and says where it was.
func byEventSource(g *gateway, after string) (func() (change, bool), func()) {
	header := map[string]string{}
	if after != "" {
		header["Last-Event-ID"] = after
	}
	s := g.listen("GET", "/graphql?query=subscription{networkChanges{type,cursor,network{metadata{name}}}}", header, "")
	return func() (change, bool) {
		e, ok := s.read()
		if !ok {
			return change{}, false
		}
		if lagged(g.t, []byte(e.data)) {
			return change{}, false
		}
		c := parseChange(g.t, []byte(e.data))
		if c.Cursor != e.id {
			g.t.Errorf("%+v has the id %q", c, e.id)
		}
		return c, true
	}, func() { _ = s.conn.Close() }
}

// TestEvents_AStreamThatIsCutAgainAndAgainMissesNothing has a writer and a listener
// whose connection is lost many times, half of them while the gateway restarts.
func TestEvents_AStreamThatIsCutAgainAndAgainMissesNothing(t *testing.T) {
	total := 10_000
	if small() {
		total = 2000
	}
	for name, follow := range map[string]client{"over a socket": overSocket, "by EventSource": byEventSource} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			rnd := rand.New(rand.NewPCG(seed, 0))
			s := openStore(t, memory.Config{})
			g := s.serve(t)
			next, cut := follow(g, "")
			first, ok := next()
			if !ok || first.Type != "IN_SYNC" {
				t.Fatalf("%+v %v", first, ok)
			}
			var writer sync.WaitGroup
			defer writer.Wait() // also where the listener gives the test up
			writer.Go(func() {
				for i := range total {
					s.create(t, fmt.Sprintf("n-%05d", i))
				}
			})
			cursor, cuts, left := first.Cursor, 0, rnd.IntN(total/10)
			for seen := 0; seen < total; {
				c, ok := next()
				if left--; !ok || left < 0 {
					// What was on its way is lost with the connection.
					if cut(); cuts%2 == 0 {
						g.stop()
						g = s.serve(t)
					}
					cuts++
					next, cut = follow(g, cursor)
					left = rnd.IntN(total / 10)
					continue
				}
				cursor = c.Cursor
				if c.Type == "IN_SYNC" || c.Type == "BOOKMARK" {
					continue
				}
				if want := fmt.Sprintf("n-%05d", seen); c.Type != "ADDED" || c.Network.Metadata.Name != want {
					t.Fatalf("event %d after %d cuts, seed %d: %+v", seen, cuts, seed, c)
				}
				seen++
			}
			writer.Wait()
			cut()
			g.stop()
			noGoroutines(t)
			t.Logf("%d events in order over %d connections", total, cuts+1)
		})
	}
}

func TestEvents_ACursorThatIsOlderThanTheLogIsRefusedOrBeginsAnew(t *testing.T) {
	s := openStoreForAll(t, memory.Config{LogEntries: 5})
	g := s.serve(t)
	defer noGoroutines(t)
	defer g.stop()
	next, cut := overSocket(g, "")
	first, _ := next()
	cut()
	for i := range 20 {
		s.create(t, fmt.Sprintf("n-%d", i))
	}
	p := g.open()
	payload, _ := json.Marshal(map[string]any{"query": `subscription($after: String) { networkChanges(after: $after) { type } }`, "variables": map[string]any{"after": first.Cursor}})
	p.say(fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload))
	if code := p.hearError("1"); code != "POSITION_EXPIRED" {
		t.Errorf("over a socket: %s", code)
	}
	header := map[string]string{"Last-Event-ID": first.Cursor}
	e := g.listen("GET", "/graphql?query=subscription{networkChanges{type}}", header, "")
	var answer struct{ Errors gqlerror.List }
	if got := e.next(); json.Unmarshal([]byte(got.data), &answer) != nil || len(answer.Errors) == 0 || answer.Errors[0].Extensions["code"] != "POSITION_EXPIRED" {
		t.Errorf("as server-sent event: %+v", got)
	}
	e.hear(sent{"complete", "", ""})
	e.ends()
	e = g.listen("GET", "/graphql?query=subscription{networkChanges(snapshot:true){type,cursor,network{metadata{name}}}}", header, "")
	state := map[string]bool{}
	for i := 0; ; i++ {
		got := e.next()
		c := parseChange(t, []byte(got.data))
		if i == 0 && c.Type != "RESET" || i > 0 && c.Type != "SNAPSHOT" && c.Type != "IN_SYNC" {
			t.Fatalf("event %d: %+v", i, c)
		}
		if (got.id == "") != (c.Type != "IN_SYNC") {
			t.Errorf("%s has the id %q", c.Type, got.id)
		}
		if c.Type == "IN_SYNC" {
			break
		}
		if c.Type == "SNAPSHOT" {
			state[c.Network.Metadata.Name] = true
		}
	}
	if len(state) != 20 {
		t.Errorf("%d resources", len(state))
	}
	_ = e.conn.Close()
	_ = p.Close()
}

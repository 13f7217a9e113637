package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/transport"
)

// guarded is a store behind a gateway that judges its callers.
type guarded struct {
	*store
	*gateway
	t testing.TB
}

func newGuarded(t testing.TB, cfg transport.Config) *guarded {
	t.Helper()
	s := openStoreFor(t, memory.Config{}, func(m backend.Store) service.Config {
		return service.Config{Store: m, Access: judging()}
	})
	if err := s.Index().Filled(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.Init = func(ctx context.Context, payload json.RawMessage) (context.Context, error) {
		var who struct{ As string }
		err := json.Unmarshal(payload, &who)
		return access.WithCaller(ctx, access.Caller{Identity: &access.Identity{Name: "token:" + who.As, Source: "token"}}), err
	}
	return &guarded{s, s.serveWith(t, cfg), t}
}

// as opens a socket of a user.
func (g *guarded) as(user string) *peer {
	p := g.connect("graphql-transport-ws")
	p.say(`{"type":"connection_init","payload":{"as":"` + user + `"}}`)
	p.hear(`{"type":"connection_ack"}`)
	return p
}

func (g *guarded) write(id kind.Identity, spec any) {
	g.t.Helper()
	raw, err := json.Marshal(spec)
	if err == nil {
		_, err = g.Writer.Upsert(administrator(context.Background()), service.UpsertRequest{Identity: id, Spec: json.RawMessage(raw)})
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// give lets a user read some kinds in some namespaces, and nothing else.
func (g *guarded) give(user string, kinds []string, namespaces ...string) {
	g.t.Helper()
	role := strings.ToLower(strings.Join(kinds, "-"))
	g.write(kind.Identity{Kind: access.RoleKind, Name: role}, map[string]any{"rules": []any{map[string]any{"kinds": kinds, "verbs": []string{"GET", "LIST", "WATCH"}}}})
	g.write(kind.Identity{Kind: access.BindingKind, Name: user}, map[string]any{"roles": []string{role}, "users": []string{"token:" + user}, "namespaces": namespaces})
}

func (g *guarded) network(namespace, name string) {
	g.t.Helper()
	g.write(kind.Identity{Kind: "Network", Namespace: &namespace, Name: name}, map[string]any{
		"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"}, "resource": map[string]any{},
	})
}

func (g *guarded) subnet(namespace, name, network, description string) {
	g.t.Helper()
	g.write(kind.Identity{Kind: "Subnet", Namespace: &namespace, Name: name}, map[string]any{
		"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"},
		"resource":            map[string]any{"cidr": "10.0.0.0/24", "ipVersion": 4, "networkRef": network, "description": description},
	})
}

const nestedChanges = `subscription { subnetChanges { type subnet { metadata { namespace name } spec { resource { description } } network { metadata { name } } } } }`

// hears takes events until one has a text, and fails if one before it has another.
func (p *peer) hears(want, never string) {
	p.t.Helper()
	for {
		got := p.payload("1")
		if never != "" && strings.Contains(got, never) {
			p.t.Fatalf("heard %s", got)
		}
		if strings.Contains(got, want) {
			return
		}
	}
}

// TestEvents_CallersWithEqualRightsShareAndOthersDoNot, before and after their rights change, and what an event shows besides
// its resource is read by the rights of each.
func TestEvents_CallersWithEqualRightsShareAndOthersDoNot(t *testing.T) {
	g := newGuarded(t, transport.Config{})
	defer g.stop()
	both := []string{"Subnet", "Network"}
	g.give("u1", both, "a", "b")
	g.give("u2", both, "a", "b")
	g.give("u3", []string{"Subnet"}, "a", "b")
	g.network("a", "net")
	g.network("b", "net")
	peers := map[string]*peer{}
	for _, user := range []string{"u1", "u2", "u3"} {
		p := g.as(user)
		defer func() { _ = p.Close() }()
		p.subscribe("1", nestedChanges)
		p.hears("IN_SYNC", "")
		peers[user] = p
	}
	g.allParked(t, 3)
	const shown, hidden = `"network":{"metadata":{"name":"net"}}`, `"network":null`
	before := g.answered.Load()
	g.subnet("a", "s", "net", "first")
	peers["u1"].hears(shown, hidden)
	peers["u2"].hears(shown, hidden)
	peers["u3"].hears(hidden, shown)
	if n := g.answered.Load() - before; n != 2 {
		t.Errorf("executed %d times for two rights", n)
	}
	// One of two who share may see less from now on: the other goes on as before.
	g.give("u2", []string{"Subnet"}, "a", "b")
	g.subnet("a", "s", "net", "second")
	peers["u1"].hears(shown, hidden)
	peers["u2"].hears(hidden, shown)
	peers["u3"].hears(hidden, shown)
	g.allParked(t, 3)
	before = g.answered.Load()
	g.subnet("a", "s", "net", "third")
	peers["u1"].hears("third", hidden)
	peers["u2"].hears("third", shown)
	peers["u3"].hears("third", shown)
	if n := g.answered.Load() - before; n != 2 {
		t.Errorf("executed %d times for two rights, u2 is with u3", n)
	}
	// One of a group gains what others do not have.
	g.give("u3", both, "a", "b")
	g.subnet("a", "s", "net", "fourth")
	peers["u3"].hears(shown, hidden)
	peers["u2"].hears("fourth", shown)
	peers["u1"].hears("fourth", hidden)
	// All of a group lose a namespace.
	g.subnet("b", "t", "net", "fifth")
	for _, user := range []string{"u1", "u2", "u3"} {
		peers[user].hears("fifth", "")
	}
	for _, user := range []string{"u1", "u3"} {
		g.give(user, both, "a")
		peers[user].hears(`"type":"DELETED","subnet":null`, "")
		peers[user].hears("BOOKMARK", "")
	}
	g.subnet("b", "t", "net", "sixth")
	g.subnet("a", "s", "net", "seventh")
	peers["u1"].hears("seventh", "sixth")
	peers["u3"].hears("seventh", "sixth")
	peers["u2"].hears("sixth", "")
	g.allParked(t, 3)
}

// TestEvents_SlowFollowersAreToldNothingThatTheyLost, though it waited for them.
func TestEvents_SlowFollowersAreToldNothingThatTheyLost(t *testing.T) {
	g := newGuarded(t, transport.Config{Queue: 2})
	defer g.stop()
	kinds := []string{"Subnet", "Network"}
	const n = 300
	for i := range 4 {
		g.give(fmt.Sprint("u", i), kinds, "a", "b")
	}
	g.network("a", "net")
	g.network("b", "net")
	var peers []*peer
	for i := range 4 {
		p := g.as(fmt.Sprint("u", i))
		defer func() { _ = p.Close() }()
		p.subscribe("1", `subscription { subnetChanges(snapshot: true) { type subnet { metadata { namespace name } manifest } } }`)
		p.hears("IN_SYNC", "")
		peers = append(peers, p)
	}
	g.allParked(t, 4)
	for i := range n {
		g.subnet("b", fmt.Sprint("s", i), "net", strings.Repeat("x", 250))
	}
	for i := range 3 {
		g.give(fmt.Sprint("u", i), kinds, "a")
	}
	g.subnet("b", "hush", "net", "hush")
	g.subnet("a", "end", "net", "end")
	for i, p := range peers {
		known := 0
		for ended, settled := false, i == 3; !ended || !settled; {
			got := p.payload("1")
			switch {
			case strings.Contains(got, `"ADDED"`), strings.Contains(got, `"SNAPSHOT"`):
				known++
			case strings.Contains(got, `"DELETED"`):
				known--
			case strings.Contains(got, `"RESET"`):
				known = 0
			}
			if i < 3 && strings.Contains(got, "hush") {
				t.Fatalf("u%d heard %s", i, got)
			}
			ended = ended || strings.Contains(got, `"name":"end"`)
			settled = settled || strings.Contains(got, `"BOOKMARK"`)
		}
		if want := map[bool]int{true: 1, false: n + 2}[i < 3]; known != want {
			t.Errorf("u%d knows %d subnets, want %d", i, known, want)
		}
	}
}

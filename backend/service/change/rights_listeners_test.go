package change_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestRights_ListenersKnowWhatThePolicyAllows changes resources and policies at random, and holds what listeners know
// from their streams against what an administrator sees, filtered by the policy.
func TestRights_ListenersKnowWhatThePolicyAllows(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	rounds := uint64(6)
	if testing.Short() {
		rounds = 2
	}
	for name, open := range stores() {
		for round := range rounds {
			rnd := rand.New(rand.NewPCG(seed, round))
			t.Run(fmt.Sprintf("%s, round %d", name, round), func(t *testing.T) {
				t.Parallel()
				listenAtRandom(t, rnd, open(t))
			})
		}
	}
}

// stores open stores by their names.
func stores() map[string]func(t *testing.T) backend.Store {
	opened := func(t *testing.T, s interface {
		backend.Store
		Close() error
	}, err error) backend.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	onRedis := func(shards int) func(t *testing.T) backend.Store {
		return func(t *testing.T) backend.Store {
			s, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Prefix: "t", Shards: shards})
			return opened(t, s, err)
		}
	}
	return map[string]func(t *testing.T) backend.Store{
		"memory": func(t *testing.T) backend.Store { return servicetest.OpenMemory(t) },
		"bolt": func(t *testing.T) backend.Store {
			s, err := bolt.Open(bolt.Config{Path: t.TempDir() + "/store"})
			return opened(t, s, err)
		},
		"redis":                  onRedis(1),
		"redis with four shards": onRedis(4),
	}
}

func listenAtRandom(t *testing.T, rnd *rand.Rand, store backend.Store) {
	cart := servicetest.Widget()
	cart.Name, cart.Singular, cart.Plural = "Cart", "cart", "carts"
	gateways := []*servicetest.Fixture{watched(t, store, 0), watched(t, store, 0, cart)} // of two catalogues
	f := gateways[0]
	models := map[string]servicetest.PolicyModel{}
	policy := func() {
		user := fmt.Sprint("token:u", rnd.IntN(2))
		m := servicetest.RandomPolicy(rnd)
		for i := range m.Rules {
			m.Rules[i].Verbs = append(m.Rules[i].Verbs, descriptor.VerbWatch)
		}
		if rnd.IntN(3) == 0 { // part of the rules that were
			m.Rules = models[user].Rules[:rnd.IntN(len(models[user].Rules)+1)]
			if len(m.Rules) == 0 {
				m.Rules = []access.Rule{{Kinds: []string{"Nothing"}, Verbs: []descriptor.Verb{descriptor.VerbGet}}}
			}
		}
		if m.Namespaces == nil {
			m.Namespaces = []string{"*"}
		}
		models[user] = m
		f.Role("r"+user[6:], m.Rules...)
		f.Bind("b"+user[6:], access.Binding{Roles: []string{"r" + user[6:]}, Users: []string{user}, Namespaces: m.Namespaces})
	}
	write := func() {
		id := servicetest.WidgetIn(fmt.Sprint("ns", rnd.IntN(3)), fmt.Sprint("n", rnd.IntN(6)))
		if rnd.IntN(5) == 0 {
			id = kind.Identity{Kind: "Site", Name: []string{"a", "b"}[rnd.IntN(2)]}
		}
		if rnd.IntN(3) == 0 {
			if _, err := f.Writer.Delete(access.WithCaller(t.Context(), servicetest.Admin()), service.DeleteRequest{Identity: id}); err != nil && servicetest.CodeOf(err) != "NOT_FOUND" {
				t.Fatal(err)
			}
			return
		}
		f.UpsertWidget(id, string(rune('A'+rnd.IntN(3))))
	}
	for _, user := range []string{"token:u0", "token:u1"} {
		models[user] = servicetest.PolicyModel{Rules: []access.Rule{reads(nil, nil)}, Namespaces: []string{"*"}}
		f.Role("r"+user[6:], models[user].Rules...)
		f.Bind("b"+user[6:], access.Binding{Roles: []string{"r" + user[6:]}, Users: []string{user}, Namespaces: []string{"*"}})
	}
	start := positionOf(t, f)
	var listeners []*rebuilt
	for _, user := range []string{"token:u0", "token:u1"} {
		after := query.ChangeCursor(start, stampOf(t, f, user))
		for _, req := range []change.Request{
			{Snapshot: true}, {After: &after}, {After: &after, Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}},
			{Snapshot: true, Namespace: new("ns1")}, {After: &after, Kinds: []string{"Widget"}, Name: new("n1"), Namespace: new("ns1")},
		} {
			listeners = append(listeners, listen(t, gateways[rnd.IntN(2)], servicetest.As(user), req))
		}
	}
	for step := range 40 {
		for range rnd.IntN(6) {
			if rnd.IntN(4) == 0 {
				policy()
			} else {
				write()
			}
			for range rnd.IntN(2) * rnd.IntN(12) { // somewhere in the middle
				if err := listeners[rnd.IntN(len(listeners))].take(); err != nil {
					t.Fatal(err)
				}
			}
		}
		all := map[backend.Key]string{}
		titles := map[backend.Key]string{}
		for _, k := range []string{"Widget", "Site", access.RoleKind, access.BindingKind} {
			p, err := f.Reader.List(access.WithCaller(t.Context(), servicetest.Admin()), query.ListRequest{Kind: k, First: new(1000)})
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Edges {
				r := p.Edges[i].Resource
				all[r.Stored.Key] = r.Stored.Revision.String()
				if k == "Widget" {
					titles[r.Stored.Key] = servicetest.Title(r.Body)
				}
			}
		}
		for i, l := range listeners {
			if rnd.IntN(4) == 0 { // it resumes at the other gateway
				resumed := l.req
				if l.cursor != "" {
					resumed.After = &l.cursor
				}
				l.stream.Close()
				l.req = resumed
				err := l.begin(gateways[rnd.IntN(2)])
				if c := servicetest.CodeOf(err); c == "POSITION_EXPIRED" || c == "FORBIDDEN" {
					clear(l.has)
					l.req.After, l.req.Snapshot = nil, true
					if err = l.begin(f); servicetest.CodeOf(err) == "FORBIDDEN" {
						l.caller = servicetest.Admin() // for whom it is easier
						err = l.begin(f)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			l.settle(f)
			want := map[backend.Key]string{}
			for key, revision := range all {
				m, global := models[l.caller.Identity.Name], key.Namespace == ""
				sees := l.caller.Identity.Name == servicetest.Admin().Identity.Name || m.Allows(descriptor.VerbWatch, key.Kind, key.Namespace, key.Name, global) && m.Allows(descriptor.VerbGet, key.Kind, key.Namespace, key.Name, global)
				in := (l.req.Namespace == nil || *l.req.Namespace == key.Namespace) && (l.req.Name == nil || *l.req.Name == key.Name) &&
					(len(l.req.Kinds) == 0 || key.Kind == "Widget") && (l.req.Filter == nil || titles[key] == "A")
				if sees && in {
					want[key] = revision
				}
			}
			if d := cmp.Diff(want, l.has); d != "" {
				t.Fatalf("step %d, listener %d (%s, %s) (-want +got):\n%s", step, i, l.caller.Identity, asJSON(t, l.req), d)
			}
		}
	}
}

// asJSON returns a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

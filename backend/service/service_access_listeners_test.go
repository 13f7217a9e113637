package service_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestService_ListenersKnowWhatThePolicyAllows changes resources and policies at random, and holds what listeners know from
// their streams against what an administrator sees, filtered by the policy.
func TestService_ListenersKnowWhatThePolicyAllows(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	stores := storesOfOneShard()
	stores["redis with four shards"] = func(t *testing.T) backend.Store { return openRedis(t, 4) }
	for name, open := range stores {
		for round := range sized(6, 2) {
			rnd := rand.New(rand.NewPCG(seed, round))
			t.Run(fmt.Sprintf("%s, round %d", name, round), func(t *testing.T) {
				t.Parallel()
				listenAtRandom(t, rnd, open(t))
			})
		}
	}
}

func listenAtRandom(t *testing.T, rnd *rand.Rand, store backend.Store) {
	cart := servicetest.Widget()
	cart.Name, cart.Singular, cart.Plural = "Cart", "cart", "carts"
	gateways := []*fixture{watched(t, store, 0), watched(t, store, 0, cart)} // of two catalogues
	f := gateways[0]
	models := map[string]model{}
	policy := func() {
		user := fmt.Sprint("token:u", rnd.IntN(2))
		m := randomModel(rnd)
		for i := range m.rules {
			m.rules[i].Verbs = append(m.rules[i].Verbs, descriptor.VerbWatch)
		}
		if rnd.IntN(3) == 0 { // part of the rules that were
			m.rules = models[user].rules[:rnd.IntN(len(models[user].rules)+1)]
			if len(m.rules) == 0 {
				m.rules = []access.Rule{{Kinds: []string{"Nothing"}, Verbs: []descriptor.Verb{descriptor.VerbGet}}}
			}
		}
		if m.namespaces == nil {
			m.namespaces = []string{"*"}
		}
		models[user] = m
		f.role("r"+user[6:], m.rules...)
		f.bind("b"+user[6:], access.Binding{Roles: []string{"r" + user[6:]}, Users: []string{user}, Namespaces: m.namespaces})
	}
	write := func() {
		id := widgetIn(fmt.Sprint("ns", rnd.IntN(3)), fmt.Sprint("n", rnd.IntN(6)))
		if rnd.IntN(5) == 0 {
			id = kind.Identity{Kind: "Site", Name: []string{"a", "b"}[rnd.IntN(2)]}
		}
		if rnd.IntN(3) == 0 {
			if _, err := f.Writer.Delete(access.WithCaller(t.Context(), admin()), service.DeleteRequest{Identity: id}); err != nil && code(err) != "NOT_FOUND" {
				t.Fatal(err)
			}
			return
		}
		f.upsert(id, string(rune('A'+rnd.IntN(3))))
	}
	for _, user := range []string{"token:u0", "token:u1"} {
		models[user] = model{rules: []access.Rule{reads(nil, nil)}, namespaces: []string{"*"}}
		f.role("r"+user[6:], models[user].rules...)
		f.bind("b"+user[6:], access.Binding{Roles: []string{"r" + user[6:]}, Users: []string{user}, Namespaces: []string{"*"}})
	}
	start := positionOf(t, f)
	var listeners []*rebuilt
	for _, user := range []string{"token:u0", "token:u1"} {
		after := query.ChangeCursor(start, stampOf(t, f, user))
		for _, req := range []change.Request{
			{Snapshot: true}, {After: &after}, {After: &after, Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}},
			{Snapshot: true, Namespace: new("ns1")}, {After: &after, Kinds: []string{"Widget"}, Name: new("n1"), Namespace: new("ns1")},
		} {
			listeners = append(listeners, listen(t, gateways[rnd.IntN(2)], as(user), req))
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
			p, err := f.Reader.List(access.WithCaller(t.Context(), admin()), query.ListRequest{Kind: k, First: new(1000)})
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
				if c := code(err); c == "POSITION_EXPIRED" || c == "FORBIDDEN" {
					clear(l.has)
					l.req.After, l.req.Snapshot = nil, true
					if err = l.begin(f); code(err) == "FORBIDDEN" {
						l.caller = admin() // for whom it is easier
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
				sees := l.caller.Identity.Name == admin().Identity.Name || m.allows(descriptor.VerbWatch, key.Kind, key.Namespace, key.Name, global) && m.allows(descriptor.VerbGet, key.Kind, key.Namespace, key.Name, global)
				in := (l.req.Namespace == nil || *l.req.Namespace == key.Namespace) && (l.req.Name == nil || *l.req.Name == key.Name) &&
					(len(l.req.Kinds) == 0 || key.Kind == "Widget") && (l.req.Filter == nil || titles[key] == "A")
				if sees && in {
					want[key] = revision
				}
			}
			if d := cmp.Diff(want, l.has); d != "" {
				t.Fatalf("step %d, listener %d (%s, %s) (-want +got):\n%s", step, i, l.caller.Identity, text(l.req), d)
			}
		}
	}
}

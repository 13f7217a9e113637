package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	answers "github.com/sluicegw/sluice/graph/answer"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/internal/redistest"
)

// primary is a store in whose place another can be put, which has lost a part of what it had.
type primary struct {
	now atomic.Pointer[memory.Store]
}

func (p *primary) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	return p.now.Load().Apply(ctx, b)
}

func (p *primary) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	return p.now.Load().Get(ctx, keys...)
}

func (p *primary) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	return p.now.Load().Range(ctx, r)
}

func (p *primary) Position(ctx context.Context) (backend.Position, error) {
	return p.now.Load().Position(ctx)
}

func (p *primary) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	out, err := p.now.Load().Watch(ctx, w)
	return interrupted{out}, err
}

func (p *primary) Now() time.Time { return p.now.Load().Now() }

// interrupted is a watch of a store that may be replaced.
type interrupted struct{ backend.Watcher }

func (i interrupted) Next(ctx context.Context) (backend.Delivery, error) {
	d, err := i.Watcher.Next(ctx)
	if errors.Is(err, backend.ErrClosed) {
		err = backend.ErrUnavailable
	}
	return d, err
}

// keeping is gateways over one store. Each keeps answers, and has an engine beside it that does not.
type keeping struct {
	*testing.T
	catalogue *kinds.Schema
	store     primary
	clock     atomic.Int64
	rnd       *rand.Rand
	gateways  []*keepingGateway
	stats     answers.Stats
	// authorizes reports whether access control is on.
	authorizes bool
}

type keepingGateway struct {
	kept, fresh *gateway
	stop        func()
}

func (k *keeping) open() *memory.Store {
	k.Helper()
	s, err := memory.Open(memory.Config{Clock: func() time.Time { return time.Unix(k.clock.Load(), 0) }, Rand: k.rnd})
	if err != nil {
		k.Fatal(err)
	}
	return s
}

// start begins a gateway.
func (k *keeping) start() *keepingGateway {
	k.Helper()
	follower, err := hub.New(hub.Config{Store: &k.store})
	if err != nil {
		k.Fatal(err)
	}
	svc, err := service.New(service.Config{
		Kinds: k.catalogue.Descriptors(), Store: &k.store, Hub: follower,
		Access: access.Config{Enabled: k.authorizes, AdminGroup: "token:admins"},
	})
	if err != nil {
		k.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- follower.Run(ctx) }()
	go func() { ended <- svc.Run(ctx) }()
	out := &keepingGateway{stop: func() {
		cancel()
		<-ended
		<-ended
	}}
	cache := answers.New(answers.Config{Bytes: 1 << 20, MinSteps: 1, Stats: &k.stats})
	executes := func(change func(*engine.Config)) *gateway {
		g := &gateway{t: k, svc: svc, engine: enginetest.New(k, k.catalogue, svc, change)}
		g.exec = executor.New(g.engine)
		g.exec.SetQueryCache(&remembered{g: g, docs: map[string]*ast.QueryDocument{}})
		return g
	}
	out.kept = executes(func(cfg *engine.Config) { cfg.Answers = cache })
	out.fresh = executes(func(*engine.Config) {})
	return out
}

// failOver puts another store in the place of the one that is used: some of the resources are lost, and the log.
func (k *keeping) failOver() {
	k.Helper()
	replica := k.open()
	before := k.store.now.Load()
	var names []string
	for _, kind := range k.catalogue.Kinds {
		names = append(names, kind.Name)
	}
	for _, name := range names {
		for page, err := range backend.Pages(k.Context(), before, backend.Range{Kind: name, Limit: backend.MaxLimit}) {
			if err != nil {
				k.Fatal(err)
			}
			for _, r := range page.Resources {
				if k.rnd.IntN(5) > 0 {
					k.restore(replica, r)
				}
			}
		}
	}
	k.store.now.Store(replica)
	_ = before.Close()
}

func (k *keeping) restore(to *memory.Store, r *backend.Resource) {
	k.Helper()
	put := backend.Put{
		UID: r.UID, Deleting: r.Deleting, Finalizers: &r.Finalizers, ExpiresAt: r.ExpiresAt, Declared: r.Declared,
		Refs: r.Refs, Body: r.Body,
	}
	batch := backend.Batch{
		RequestID: fmt.Sprint(r.Key, k.rnd.Uint64())[:20], Deadline: to.Now().Add(time.Hour),
		Actions: []backend.Action{{Key: r.Key, Op: backend.OpPut, Put: put}},
	}
	if _, err := to.Apply(k.Context(), batch); err != nil {
		k.Fatal(err)
	}
}

// ask executes a query as somebody, and says what was answered.
func (g *gateway) ask(ctx context.Context, query string, variables map[string]any) (string, bool) {
	oc, errs := g.prepare(query, variables)
	if errs != nil {
		return errs.Error(), false
	}
	return g.answerIn(budget.With(ctx, budget.New(budget.Limits{})), oc)
}

// maxUnsettled is how often a query is asked again because background work changes what it reads.
const maxUnsettled = 200

// check asks a query several times, and expects each kept answer to be what is executed in the same state.
func (k *keeping) check(g *keepingGateway, caller access.Caller, query string, variables map[string]any) {
	k.Helper()
	ctx := access.WithCaller(k.Context(), caller)
	for range 3 {
		for tries := 0; ; tries++ {
			before, clean := g.fresh.ask(ctx, query, variables)
			kept, keptClean := g.kept.ask(ctx, query, variables)
			after, stillClean := g.fresh.ask(ctx, query, variables)
			if kept == before && keptClean == clean || kept == after && keptClean == stillClean {
				break
			}
			if before == after && tries > 3 || tries == maxUnsettled {
				k.Fatalf("%s\n%v\nas %v\nkept  %s\nfresh %s\nafter %s", query, variables, caller.Identity, kept, before, after)
			}
		}
	}
}

// TestAnswers_AreThoseOfTheStateTheyAreAskedIn asks random queries through two gateways as callers of different
// rights, between random writes through both, changes of rights, expiries, restarts and fail-overs that lose writes.
// Each answer is what an engine without kept answers says.
func TestAnswers_AreThoseOfTheStateTheyAreAskedIn(t *testing.T) {
	embedded, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, catalogue := range map[string]*kinds.Schema{"every annotation": shelves(t), "embedded": embedded} {
		t.Run(name, func(t *testing.T) {
			total := uint64(700)
			if testing.Short() {
				total = 500
			}
			askRandom(t, catalogue, int(setting(t, "SLUICE_TEST_OPERATIONS", total)))
		})
	}
}

func askRandom(t *testing.T, catalogue *kinds.Schema, total int) {
	seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	k := &keeping{T: t, catalogue: catalogue, rnd: rand.New(rand.NewPCG(seed, 0))}
	k.clock.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Unix())
	k.store.now.Store(k.open())
	k.authorizes = slices.ContainsFunc(catalogue.Kinds, func(one kinds.Kind) bool { return one.Name == access.RoleKind })
	for range 2 {
		k.gateways = append(k.gateways, k.start())
	}
	defer func() {
		for _, g := range k.gateways {
			g.stop()
		}
	}()
	k.ready()
	values := newPool(k.rnd, catalogue)
	valid := func(list []string, not ...string) []string {
		return slices.DeleteFunc(list, func(one string) bool { return slices.Contains(not, one) })
	}
	values.names, values.ids = valid(values.names, "Bad Name"), valid(values.ids, "", "rubbish")
	values.kinds = valid(values.kinds, "Nothing")
	source := &enginetest.Source{Schema: k.gateways[0].kept.engine.Schema(), Rand: k.rnd, Values: func(path string, t *ast.Type) (any, bool) {
		if strings.HasSuffix(path, ".expiresAt") {
			return time.Unix(k.clock.Load()+k.rnd.Int64N(900), 0).UTC().Format(time.RFC3339), true
		}
		return values.value(path, t)
	}, Skip: func(_, field string) bool {
		if slices.Contains(byHand, field) {
			return k.rnd.IntN(50) > 0
		}
		return field == "updateKind" || field == "reveal"
	}}
	related := k.related()
	var queries []enginetest.Operation
	for requests := 0; requests < total; {
		g := k.gateways[k.rnd.IntN(len(k.gateways))]
		switch n := k.rnd.IntN(1000); {
		case n < 2:
			k.failOver()
			k.ready()
		case n < 4:
			i := k.rnd.IntN(len(k.gateways))
			k.gateways[i].stop()
			k.gateways[i] = k.start()
			k.ready()
		case n < 30:
			k.clock.Add(int64(k.rnd.IntN(600)))
		case n < 80 && k.authorizes:
			k.changeRights(g)
		case n < 350:
			op := source.Next(ast.Mutation)
			data, _ := g.kept.ask(access.WithCaller(t.Context(), administrator), op.Query, decoded(t, op.Variables))
			values.learn([]byte(data))
		default:
			if len(queries) == 0 || k.rnd.IntN(10) == 0 {
				queries = append(queries, source.Next(ast.Query))
			}
			op := queries[max(0, len(queries)-1-k.rnd.IntN(40))]
			if k.rnd.IntN(3) == 0 {
				op = related[k.rnd.IntN(len(related))]
			}
			k.check(g, callers[max(0, k.rnd.IntN(2*len(callers))-len(callers))], op.Query, k.varied(op.Variables, values))
			requests++
		}
	}
	hits := k.stats[answers.Hit].Load()
	for o := range answers.Outcomes {
		t.Logf("%s: %d", o, k.stats[o].Load())
	}
	if hits < uint64(total)/4 {
		t.Errorf("%d of %d answers were kept: the test shows little", hits, total)
	}
}

// related returns queries for the resources of each kind, with what refers to them and what they refer to.
func (k *keeping) related() (out []enginetest.Operation) {
	const nodes = `{ totalCount nodes { path guarded resource { id } } }`
	for _, kind := range k.catalogue.Kinds {
		if !slices.Contains(kind.Verbs, descriptor.VerbList) {
			continue
		}
		out = append(out, enginetest.Operation{
			Variables: map[string]any{"n": 20},
			Query: fmt.Sprintf(`query($n: Int) { %s(first: $n) { totalCount nodes { id dependencies %s dependents %s blockedBy %s } } }`,
				kind.Plural, nodes, nodes, nodes),
		})
	}
	return out
}

// varied returns variables of which a text or a number may be another.
func (k *keeping) varied(variables map[string]any, values *pool) map[string]any {
	k.Helper()
	out := decoded(k, variables)
	for name, v := range out {
		text, isText := v.(string)
		switch {
		case k.rnd.IntN(3) > 0:
		case isText && slices.Contains(values.names, text):
			out[name] = values.names[k.rnd.IntN(len(values.names))]
		case isText && slices.Contains(values.ids, text):
			out[name] = values.ids[k.rnd.IntN(len(values.ids))]
		case name == "n":
			out[name] = json.Number(fmt.Sprint(k.rnd.IntN(5)))
		}
	}
	return out
}

// byHand are fields whose answers are never kept.
var byHand = []string{"kinds", "dependencyTree", "viewer", "access", "accessGrants", "unreadables"}

// administrator may do everything; callers have the rights that changeRights gives them, if any.
var (
	administrator = access.Caller{Identity: &access.Identity{Name: "token:root", Source: "token", Groups: []string{"token:admins"}}}
	callers       = []access.Caller{
		administrator,
		{Identity: &access.Identity{Name: "token:a", Source: "token"}},
		{Identity: &access.Identity{Name: "token:b", Source: "token"}},
		{Identity: &access.Identity{Name: "token:c", Source: "token", Groups: []string{"token:readers"}}},
	}
)

// ready waits until every gateway answers from memory.
func (k *keeping) ready() {
	k.Helper()
	for _, g := range k.gateways {
		ctx := access.WithCaller(k.Context(), administrator)
		redistest.Await(k, "the index", func() error {
			if _, err := g.fresh.svc.Reader.RightsNow(ctx); err != nil {
				return err
			}
			return g.fresh.svc.Index().Filled(ctx)
		})
	}
}

// changeRights gives a caller a role, changes one, or takes one away.
func (k *keeping) changeRights(g *keepingGateway) {
	k.Helper()
	ctx := access.WithCaller(k.Context(), administrator)
	pick := func(list ...string) string { return list[k.rnd.IntN(len(list))] }
	name := pick("one", "two", "three")
	var m string
	switch k.rnd.IntN(3) {
	case 0:
		kind := k.catalogue.Kinds[k.rnd.IntN(len(k.catalogue.Kinds))].Name
		m = role(name, fmt.Sprintf(`{"kinds": [%q], "verbs": ["GET", %q]}`, pick(kind, "*"), pick("LIST", "LIST", "WATCH")))
	case 1:
		m = binding(name, pick("token:a", "token:b", "token:c"), pick("one", "two", "viewer"), pick("default", "*", "other"))
	default:
		query := fmt.Sprintf(`mutation { deleteAccessBinding(input: {name: %q}) { outcome } }`, name)
		g.kept.ask(ctx, query, nil)
		return
	}
	g.kept.ask(ctx, `mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": m})
}

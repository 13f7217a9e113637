package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// randomRoles gives some users random verbs on kinds, the first ones a single verb on all kinds, and returns the users.
func randomRoles(g *gateway, rnd *rand.Rand, catalogue *kinds.Schema) (users []string) {
	g.t.Helper()
	var names []string
	for _, k := range catalogue.Descriptors() {
		if k.Name != access.RoleKind && k.Name != access.BindingKind {
			names = append(names, k.Name)
		}
	}
	verbs := access.Verbs()[:slices.Index(access.Verbs(), descriptor.VerbReveal)]
	const roles = 36
	for i := range roles {
		var may, on []string
		for _, v := range verbs {
			if rnd.IntN(2) == 0 {
				may = append(may, string(v))
			}
		}
		for _, name := range names {
			if rnd.IntN(3) > 0 {
				on = append(on, name)
			}
		}
		if i < len(verbs) || len(may) == 0 || len(on) == 0 {
			may, on = []string{string(verbs[i%len(verbs)])}, names
		}
		name := fmt.Sprint("u", i)
		rules := fmt.Sprintf(`{"kinds": ["%s"], "verbs": ["%s"]}`, strings.Join(on, `", "`), strings.Join(may, `", "`))
		g.apply(role(name, rules), binding(name, "token:"+name, name, "*"))
		users = append(users, name)
	}
	return users
}

// things is a catalogue with all verbs, of which most random inputs are valid.
const things = `type Owner @resource(plural: "owners", group: "example.org", version: "v1", scope: NAMESPACED) { spec: OwnerSpec!  status: OwnerStatus }
type OwnerSpec { n: Int }
type OwnerStatus { count: Int }
type Thing @resource(plural: "things", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ThingSpec!  status: ThingStatus }
type ThingSpec {
  n: Int
  old: Int @deprecated(reason: "use n")
  ownerRef: String @ref(kind: "Owner", inverse: "things", guarded: true)
  otherRefs: [String!] @list(type: SET) @constraint(maxItems: 3) @ref(kind: "Owner", inverse: "others")
}
type ThingStatus { count: Int  conditions: [Condition!] }
`

// TestPayload_UnderRandomRights executes random mutations, with random selections, for callers with random rights. None may
// panic.
func TestPayload_UnderRandomRights(t *testing.T) {
	catalogue, err := kinds.ReadTexts(map[string]string{"things.graphqls": things}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{"bolt", "redis"} {
		t.Run(driver, func(t *testing.T) {
			seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
			t.Logf("SLUICE_TEST_SEED=%d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			g := authorizedOver(t, catalogue, driver)
			users := randomRoles(g.asAdmin(), rnd, catalogue)
			g.exec.SetRecoverFunc(func(_ context.Context, v any) error {
				t.Errorf("panic: %v", v)
				return fmt.Errorf("panic: %v", v)
			})
			values := newPool(rnd, catalogue)
			source := &enginetest.Source{Schema: g.engine.Schema(), Rand: rnd, Values: values.value, Skip: func(_, field string) bool {
				return strings.Contains(field, "AccessRole") || strings.Contains(field, "AccessBinding")
			}}
			total := setting(t, "SLUICE_TEST_OPERATIONS", 1000)
			if testing.Short() {
				total /= 2
			}
			for range total {
				op := source.Next(ast.Mutation)
				variables := decoded(t, op.Variables)
				if _, errs := g.prepare(op.Query, variables); errs != nil {
					continue
				}
				g.as("token:root", "token:admins")
				if rnd.IntN(4) > 0 { // else an administrator makes something that others find
					g.as("token:" + users[rnd.IntN(len(users))])
				}
				got := g.do(op.Query, variables)
				values.learn(got.Data)
				if t.Failed() {
					t.Fatalf("%s\n%v as %s", op.Query, op.Variables, g.caller.Identity.Name)
				}
			}
		})
	}
}

// TestPayload_OfWhatTheCallerMayNotRead creates a resource of each kind that has CREATE, and applies a manifest, for a
// caller who has CREATE alone.
func TestPayload_OfWhatTheCallerMayNotRead(t *testing.T) {
	for _, driver := range []string{"bolt", "redis"} {
		t.Run(driver, func(t *testing.T) {
			g := authorizedOver(t, networks(t), driver)
			g.asAdmin().apply(role("ci", `{"kinds": ["Network"], "verbs": ["CREATE"]}`), binding("ci", "token:ci", "ci", "*"))
			g.as("token:ci")
			const payload = `dryRun created: __typename network { id metadata { name } } preview { name } warnings { code message field path }`
			const warned = `"warnings":[{"code":"NOT_READABLE","message":"the resource %s created, and you may not read it: that needs the verb GET","field":null,"path":null}]`
			spec := `spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}`
			g.wants(`mutation { createNetwork(input: {name: "a", dryRun: true, `+spec+`}) { `+payload+` } }`,
				`{"createNetwork":{"dryRun":true,"created":"CreateNetworkPayload","network":null,"preview":null,`+fmt.Sprintf(warned, "would be")+`}}`)
			g.wants(`mutation { createNetwork(input: {name: "a", `+spec+`}) { `+payload+` } b: createNetwork(input: {name: "b", `+spec+`}) { network { id } } }`,
				`{"createNetwork":{"dryRun":false,"created":"CreateNetworkPayload","network":null,"preview":null,`+fmt.Sprintf(warned, "was")+`},"b":{"network":null}}`)
			manifest := `"apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: c}\nspec: {cloudCredentialsRef: {secretName: s, cloudName: c}, resource: {}}"`
			g.wants(`mutation { applyManifest(input: {manifest: `+manifest+`}) { outcome resource { id } warnings { code } } }`,
				`{"applyManifest":{"outcome":"CREATED","resource":null,"warnings":[{"code":"NOT_READABLE"}]}}`)
			got := g.do(`mutation { createNetwork(input: {name: "a", `+spec+`}) { network { id } } }`, nil)
			if len(got.Errors) != 1 || got.Errors[0].Extensions["outcome"] != nil || !strings.Contains(got.Errors[0].Message, "exists") {
				t.Errorf("again: %s %v", got.Data, got.Errors)
			}
			g.asAdmin().wants(`{ networks { totalCount } }`, `{"networks":{"totalCount":3}}`)
		})
	}
}

// panicking is a store that panics once: after a batch was applied, or when a resource is read by its key after that.
type panicking struct {
	backend.Store
	// batch is the number of the batch, from 1; reading waits for the next read.
	batch   int
	reading bool

	applied int
	done    bool
}

func (p *panicking) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	if p.reading {
		p.panicOnce("while it is read")
	}
	return p.Store.Get(ctx, keys...)
}

func (p *panicking) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	out, err := p.Store.Apply(ctx, b)
	p.applied++
	if !p.reading {
		p.panicOnce("after it was applied")
	}
	return out, err
}

func (p *panicking) panicOnce(text string) {
	if p.applied == p.batch && !p.done {
		p.done = true
		panic(text)
	}
}

// TestMutation_ThatPanics is told as an error of its field, with what is known of its change. The fields beside it are
// answered.
func TestMutation_ThatPanics(t *testing.T) {
	const write = `mutation {
  a: createService(input: {name: "a", spec: {}}) { service { id } }
  b: createDesk(input: {name: "b", spec: {besideRef: "other"}}) { desk { beside { id } } }
  c: createService(input: {name: "c", spec: {}}) { dryRun }
}`
	for name, c := range map[string]struct {
		reading bool
		outcome string
	}{
		"when its answer is read": {true, failure.OutcomeApplied},
		"while it is written":     {false, failure.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			store := &panicking{batch: 2, reading: c.reading}
			g := newGateway(t, shelves(t), func(s backend.Store) backend.Store {
				store.Store = s
				return store
			})
			var panics []string
			g.exec.SetRecoverFunc(func(_ context.Context, v any) error {
				panics = append(panics, fmt.Sprint(v))
				return &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
			})
			got := g.do(write, nil)
			if want := `{"a":{"service":{"id":"`; !strings.HasPrefix(string(got.Data), want) || !strings.HasSuffix(string(got.Data), `"}},"b":null,"c":{"dryRun":false}}`) {
				t.Errorf("%s", got.Data)
			}
			if len(got.Errors) != 1 || len(panics) != 1 {
				t.Fatalf("%v, panics %q", got.Errors, panics)
			}
			err := got.Errors[0]
			outcome, _ := err.Extensions["outcome"].(string)
			if known, ok := err.Err.(*failure.Error); ok && outcome == "" {
				outcome = known.Outcome
			}
			if outcome != c.outcome || err.Path.String() != "b" || err.Message != "internal error" {
				t.Errorf("%v, outcome %s", err, outcome)
			}
			g.wants(`{ desk(name: "b") { metadata { name } } service(name: "c") { metadata { name } } }`, `{"desk":{"metadata":{"name":"b"}},"service":{"metadata":{"name":"c"}}}`)
		})
	}
}

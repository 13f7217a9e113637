package engine_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/schema"
)

// catalogueTexts returns the files of the embedded catalogue.
func catalogueTexts(t *testing.T) map[string]string {
	t.Helper()
	v1, err := fs.Sub(schema.Files, "v1")
	if err != nil {
		t.Fatal(err)
	}
	texts, err := kinds.Files(v1, "schema/v1")
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	objectHead = regexp.MustCompile(`(?m)^type \w+( [^\n]*)?\{$`)
	// generatedIDs are numbered by the services of a world, of which one has more.
	generatedIDs = regexp.MustCompile(`"id-[0-9]+"`)

	enumBody = regexp.MustCompile(`(?m)^enum \w+ [^}]*\n\}`)
)

// hiddenKind is a kind that the embedded catalogue does not have.
const hiddenKind = `type Hidden @resource(plural: "hiddens", group: "example.org", version: "v1", scope: NAMESPACED) { spec: HiddenSpec! }
type HiddenSpec {
  networkRef: String @ref(kind: "Network", inverse: "hiddens", guarded: true) @constraint(maxLength: 253)
}
`

// grownTexts returns the files with a field more in each object, a value more in each enum, and a kind more.
func grownTexts(texts map[string]string) map[string]string {
	out := map[string]string{"hidden.graphqls": hiddenKind}
	for name, text := range texts {
		text = objectHead.ReplaceAllStringFunc(text, func(head string) string {
			if strings.Contains(head, "@resource") || strings.Contains(head, "Properties") {
				return head
			}
			return head + "\n  hiddenField: Int"
		})
		out[name] = enumBody.ReplaceAllStringFunc(text, func(body string) string {
			return strings.TrimSuffix(body, "}") + "  HIDDEN_VALUE\n}"
		})
	}
	return out
}

func readTexts(t *testing.T, texts map[string]string) (*kinds.Schema, *ast.Schema) {
	t.Helper()
	catalogue, err := kinds.ReadTexts(texts, "kinds")
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	return catalogue, api
}

// versionWorld is a store with a service of a catalogue, and an engine of an earlier form of it: that of an older gateway,
// or of a released version.
type versionWorld struct {
	now             time.Time
	newest, earlier *gateway
}

// open opens a store, and returns what makes services over it.
func (w *versionWorld) open(t *testing.T) func(*kinds.Schema) *service.Service {
	w.now = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	store := drivers["memory"](t, func() time.Time { return w.now })
	var ids atomic.Int64
	return func(catalogue *kinds.Schema) *service.Service {
		svc, err := service.New(service.Config{
			Kinds: catalogue.Descriptors(), Store: store, NewID: func() string { return fmt.Sprint("id-", ids.Add(1)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return svc
	}
}

func gatewayOf(t *testing.T, e *engine.Engine, svc *service.Service) *gateway {
	return &gateway{t: t, svc: svc, engine: e, exec: executor.New(e)}
}

// TestEngine_AVersionAnswersAsAnOlderGateway executes random operations by an older gateway over one store, and by the
// released version of a newer one over another. Between them, the newer catalogue changes both stores.
func TestEngine_AVersionAnswersAsAnOlderGateway(t *testing.T) {
	total := uint64(1500)
	if testing.Short() {
		total = 150
	}
	texts := catalogueTexts(t)
	old, oldAPI := readTexts(t, texts)
	grown, grownAPI := readTexts(t, grownTexts(texts))
	files := map[string]string{"v1.0/" + release.APIFile: kinds.PrintBare(oldAPI)}
	for name, text := range texts {
		files["v1.0/"+name] = text
	}
	versions, err := release.Read(files, "kinds")
	if err != nil {
		t.Fatal(err)
	}
	if err := release.Check(versions, release.Newest{Schema: grown, API: grownAPI, Dir: "kinds"}); err != nil {
		t.Fatal(err)
	}
	view, _ := versions[0].View(grownAPI)
	if kinds.PrintBare(view) != versions[0].API {
		t.Error("the version has another API than it had")
	}
	var one, two versionWorld
	serve := one.open(t)
	newest, older := serve(grown), serve(old)
	one.newest = gatewayOf(t, enginetest.New(t, grown, newest), newest)
	one.earlier = gatewayOf(t, enginetest.New(t, old, older), older)
	newest = two.open(t)(grown)
	released := newest.View(release.Names{Schema: view})
	two.newest = gatewayOf(t, enginetest.New(t, grown, newest), newest)
	two.earlier = gatewayOf(t, enginetest.NewOf(t, view, released), released)

	seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	values := newPool(rnd, grown)
	sources := map[bool]*enginetest.Source{}
	for hidden, api := range map[bool]*ast.Schema{true: grownAPI, false: oldAPI} {
		sources[hidden] = &enginetest.Source{Schema: api, Rand: rnd, Values: values.value, Skip: func(_, field string) bool {
			return field == "updateKind" // services learn of controllers from each other after a while
		}}
	}
	clean, executed := 0, uint64(0)
	for executed < total {
		kind := ast.Query
		hidden := rnd.IntN(4) == 0
		if hidden || rnd.IntN(3) == 0 {
			kind = ast.Mutation
		}
		op := sources[hidden].Next(kind)
		variables := decoded(t, op.Variables)
		first, second := one.earlier, two.earlier
		if hidden {
			first, second = one.newest, two.newest
		}
		_, errs := first.prepare(op.Query, variables)
		_, alike := second.prepare(op.Query, variables)
		if diff := cmp.Diff(told(errs), told(alike)); diff != "" {
			t.Fatalf("%s\n%v\nrefusals (-older +version):\n%s", op.Query, op.Variables, diff)
		}
		if errs != nil {
			continue
		}
		executed++
		one.now, two.now = one.now.Add(time.Second), two.now.Add(time.Second)
		want, got := first.do(op.Query, variables), second.do(op.Query, variables)
		values.learn(got.Data)
		if string(generatedIDs.ReplaceAll(got.Data, nil)) != string(generatedIDs.ReplaceAll(want.Data, nil)) {
			t.Fatalf("hidden: %t\n%s\n%v\nolder   %s\nversion %s", hidden, op.Query, op.Variables, want.Data, got.Data)
		}
		if diff := cmp.Diff(told(want.Errors), told(got.Errors)); diff != "" {
			t.Fatalf("hidden: %t\n%s\n%v\nerrors (-older +version):\n%s", hidden, op.Query, op.Variables, diff)
		}
		if len(got.Errors) == 0 {
			clean++
		}
	}
	t.Logf("%d operations, %d without errors", executed, clean)
	if clean < int(total)/10 {
		t.Errorf("only %d of %d operations had no errors", clean, executed)
	}
}

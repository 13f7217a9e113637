package engine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
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
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/release"
)

// generatedIDs are numbered by the services of a world, of which one has more.
var generatedIDs = regexp.MustCompile(`"id-[0-9]+"`)

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

// releasedVersions returns versions of files and their API, v1.0 and so on.
func releasedVersions(t *testing.T, texts map[string]string, api *ast.Schema, count int) []*release.Version {
	t.Helper()
	files := map[string]string{}
	for minor := range count {
		folder := release.Number{Major: 1, Minor: minor}.String() + "/"
		files[folder+release.APIFile] = kinds.PrintBare(api)
		for name, text := range texts {
			files[folder+name] = text
		}
	}
	versions, err := release.Read(files, "kinds")
	if err != nil {
		t.Fatal(err)
	}
	return versions
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
	total := uint64(700)
	if testing.Short() {
		total = 150
	}
	texts := kindstest.Texts(t)
	old, oldAPI := readTexts(t, texts)
	grown, grownAPI := readTexts(t, kindstest.Grown(texts))
	versions := releasedVersions(t, texts, oldAPI, 1)
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
	released := newest.View(versions[0].Names(view))
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
		if diff := cmp.Diff(errorTexts(errs), errorTexts(alike)); diff != "" {
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
		if diff := cmp.Diff(errorTexts(want.Errors), errorTexts(got.Errors)); diff != "" {
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

// recordedOperation is an operation of a corpus with its answer.
type recordedOperation struct {
	query     string
	variables map[string]any
	refused   []string
	data      string
	errors    []string
}

// record executes random operations of a schema until so many were executed, and returns all with their answers.
func (w *versionWorld) record(
	t *testing.T, api *ast.Schema, rnd *rand.Rand, values *pool, total int,
) (out []recordedOperation) {
	source := &enginetest.Source{Schema: api, Rand: rnd, Values: values.value, Skip: func(on, field string) bool {
		return field == "updateKind" || field == "description" && on != "Metadata" // descriptions are the newest ones
	}}
	for executed := 0; executed < total; {
		kind := ast.Query
		if rnd.IntN(2) == 0 {
			kind = ast.Mutation
		}
		op := source.Next(kind)
		one := recordedOperation{query: op.Query, variables: decoded(t, op.Variables)}
		if w.answer(&one) {
			executed++
			values.learn([]byte(one.data))
		}
		out = append(out, one)
	}
	return out
}

// answer sets what the version answers to an operation, and reports whether the operation was executed.
func (w *versionWorld) answer(op *recordedOperation) (executed bool) {
	_, errs := w.earlier.prepare(op.query, op.variables)
	if op.refused = errorTexts(errs); errs != nil {
		return false
	}
	w.now = w.now.Add(time.Second)
	got := w.earlier.do(op.query, op.variables)
	op.data = string(generatedIDs.ReplaceAll(got.Data, nil))
	op.errors = errorTexts(got.Errors)
	return true
}

// TestEngine_AVersionReplaysACorpus records random operations when v1.0 is the only version, and replays them with ten
// more versions and reloads, and with catalogues that have gained kinds, fields, values and descriptions in files of other
// names.
func TestEngine_AVersionReplaysACorpus(t *testing.T) {
	total := 1200
	if testing.Short() {
		total = 150
	}
	seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	texts := kindstest.Texts(t)
	old, oldAPI := readTexts(t, texts)
	var catalogues []*kinds.Schema
	var apis []*ast.Schema
	for _, grown := range []map[string]string{
		kindstest.Grown(texts), kindstest.Reordered(kindstest.Grown(texts)), kindstest.Reordered(texts),
	} {
		catalogue, api := readTexts(t, grown)
		catalogues = append(catalogues, catalogue)
		apis = append(apis, api)
	}
	versions := releasedVersions(t, texts, oldAPI, 11)
	serve := func(w *versionWorld, svc *service.Service, api *ast.Schema, released []*release.Version) {
		for _, v := range released {
			view, missing := v.View(api)
			if len(missing) > 0 {
				t.Fatalf("%s: %v", v, missing)
			}
			one := svc.View(v.Names(view))
			if v.Minor == 0 {
				w.earlier = gatewayOf(t, enginetest.NewOf(t, view, one), one)
			}
		}
	}
	var first, second versionWorld
	serve(&first, first.open(t)(old), oldAPI, versions[:1])
	rnd := rand.New(rand.NewPCG(seed, 0))
	corpus := first.record(t, oldAPI, rnd, newPool(rnd, old), total)
	open := second.open(t)
	for i, want := range corpus {
		if i%(len(corpus)/9) == 0 {
			next := i / (len(corpus) / 9) % len(catalogues)
			serve(&second, open(catalogues[next]), apis[next], versions)
		}
		got := recordedOperation{query: want.query, variables: want.variables}
		second.answer(&got)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(recordedOperation{})); diff != "" {
			t.Fatalf("operation %d (-recorded +now):\n%s", i, diff)
		}
	}
	t.Logf("%d operations, of which %d were executed", len(corpus), total)
}

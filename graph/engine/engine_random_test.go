package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// setting is a number that the environment may give, such as a seed.
func setting(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// pool are values with which operations meet resources that are there.
type pool struct {
	rnd                         *rand.Rand
	names, ids, kinds, revision []string
}

func newPool(rnd *rand.Rand, catalogue *kinds.Schema) *pool {
	p := &pool{rnd: rnd, names: []string{"a", "b", "c", "t", "gone", "Bad Name"}, ids: []string{"", "rubbish"}, kinds: []string{"Nothing"}}
	for _, k := range catalogue.Kinds {
		p.kinds = append(p.kinds, k.Name, k.Plural)
		for _, name := range p.names[:4] {
			key := backend.Key{Kind: k.Name, Name: name}
			if k.Scope == descriptor.Namespaced {
				key.Namespace = descriptor.DefaultNamespace
			}
			p.ids = append(p.ids, kind.GlobalID(key))
		}
	}
	return p
}

func (p *pool) value(path string, t *ast.Type) (any, bool) {
	pick := func(list []string) (any, bool) { return list[p.rnd.IntN(len(list))], true }
	switch last := path[strings.LastIndex(path, ".")+1:]; {
	case !slices.Contains([]string{"String", "ID", "Int"}, t.NamedType), p.rnd.IntN(20) == 0:
		return nil, false
	case last == "expectedRevision" && len(p.revision) > 0:
		return pick(p.revision)
	case strings.Contains(path, "labels"), strings.Contains(path, "annotations"):
		return pick([]string{"a", "b", "c"})
	case last == "name" && !strings.Contains(path, "spec"), strings.HasSuffix(last, "Ref"), strings.HasSuffix(last, "Refs"):
		return pick(p.names)
	case last == "namespace":
		return pick([]string{"default", "default", "other"})
	case last == "id" || last == "ids":
		return pick(p.ids)
	case last == "kind" || last == "kinds":
		return pick(p.kinds)
	case last == "first" || last == "last":
		return p.rnd.IntN(4), true
	case last == "after" || last == "before":
		return "", true
	case strings.HasSuffix(path, "Finalizers"):
		return pick([]string{"x.org/a", "b"})
	case last == "subKind":
		return pick([]string{"human", "robot", "ghost"})
	case last == "cidr":
		return "10.0.0.0/24", true
	case last == "secretName" || last == "cloudName" || last == "clientMutationId":
		return "m", true
	}
	return nil, false
}

var revisions = regexp.MustCompile(`"revision":"([^"]+)"`)

// learn takes note of the revisions that an answer tells.
func (p *pool) learn(data []byte) {
	for _, m := range revisions.FindAllSubmatch(data, -1) {
		p.revision = append(p.revision, string(m[1]))
	}
	p.revision = p.revision[max(len(p.revision)-20, 0):]
}

// decoded is what a request of these variables carries.
func decoded(t testing.TB, variables map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(variables)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// errorTexts returns the messages and paths of errors in an order that does not depend on the executor.
func errorTexts(list gqlerror.List) []string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprint(e.Message, " ", e.Path))
	}
	slices.Sort(out)
	return out
}

func TestRandomOperationsAreAnsweredAsTheSpecificationSays(t *testing.T) {
	embedded, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, catalogue := range map[string]*kinds.Schema{"every annotation": shelves(t), "embedded": embedded} {
		for driver, total := range map[string]uint64{"memory": 500, "bolt": 300, "redis": 200} {
			if testing.Short() {
				total /= 5
			}
			t.Run(name+" over "+driver, func(t *testing.T) {
				executeRandom(t, catalogue, driver, setting(t, "SLUICE_TEST_OPERATIONS", total))
			})
		}
	}
}

// executeRandom compares the engine over a store with the reference over one in memory.
func executeRandom(t *testing.T, catalogue *kinds.Schema, driver string, total uint64) {
	seed := setting(t, "SLUICE_TEST_SEED", rand.Uint64())
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ours, twin := gatewayOver(t, catalogue, drivers[driver]), newGateway(t, catalogue, nil)
	reference := &enginetest.Reference{Schema: ours.engine.Schema(), Catalogue: catalogue, Service: twin.svc}
	values := newPool(rnd, catalogue)
	source := &enginetest.Source{
		Schema: ours.engine.Schema(), Rand: rnd, Values: values.value,
		Skip: func(_, field string) bool {
			return slices.Contains([]string{"kinds", "dependencyTree", "updateKind", "reveal", "viewer", "access", "accessGrants", "unreadables"}, field)
		},
	}
	executed, clean := 0, 0
	for executed < int(total) {
		kind := ast.Query
		if rnd.IntN(3) == 0 || executed < 100 {
			kind = ast.Mutation
		}
		op := source.Next(kind)
		variables := decoded(t, op.Variables)
		oc, errs := ours.prepare(op.Query, variables)
		if errs != nil {
			continue
		}
		executed++
		ours.now, twin.now = ours.now.Add(time.Second), twin.now.Add(time.Second)
		wantData, wantErrors := reference.Execute(t.Context(), oc)
		got := ours.do(op.Query, variables)
		values.learn(got.Data)
		if len(got.Errors) == 0 {
			clean++
		}
		if string(got.Data) != string(wantData) {
			t.Fatalf("%s\n%v\ngot  %s\nwant %s", op.Query, op.Variables, got.Data, wantData)
		}
		if diff := cmp.Diff(errorTexts(wantErrors), errorTexts(got.Errors)); diff != "" {
			t.Fatalf("%s\n%v\nerrors (-want +got):\n%s", op.Query, op.Variables, diff)
		}
	}
	t.Logf("%d operations, %d without errors", executed, clean)
}

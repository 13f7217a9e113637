package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/server"
	v1 "github.com/sluicegw/sluice/graph/v1"
	"github.com/sluicegw/sluice/graph/v1/catalogue"
)

// twin is one of two gateways to which the same happens: their stores, clocks
// and ids are the same.
type twin struct {
	edge
	store *memory.Store
	now   *atomic.Int64
}

func newTwin(t testing.TB, isEngine bool) *twin {
	t.Helper()
	tw := &twin{now: &atomic.Int64{}}
	tw.now.Store(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, tw.now.Load()).UTC() }
	var err error
	if tw.store, err = memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2)), Clock: clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tw.store.Close() })
	kinds := catalogue.Kinds()
	if isEngine {
		for i := range kinds {
			kinds[i].Decode = nil
		}
	}
	n := 0
	svc, err := service.New(service.Config{Kinds: kinds, Store: tw.store, NewID: func() string { n++; return fmt.Sprint("id-", n) }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Service: svc, Engine: isEngine, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	tw.edge = edge{Handler: s.Handler()}
	return tw
}

var revisionsTold = regexp.MustCompile(`"revision":"([^"]+)"`)

var requestIDs = regexp.MustCompile(`"requestId":"[^"]*"`)

// parted is an answer in two: its errors in an order of their own, without request ids, and its data.
func parted(t testing.TB, answer string) (errors []string, data string) {
	t.Helper()
	var out struct {
		Errors []json.RawMessage
		Data   json.RawMessage
	}
	answer = requestIDs.ReplaceAllString(answer, `"requestId":""`)
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	for _, e := range out.Errors {
		errors = append(errors, string(e))
	}
	slices.Sort(errors)
	return errors, string(out.Data)
}

// values are those that make operations meet something.
func values(rnd *rand.Rand, names, ids []string, revisions *[]string) func(string, *ast.Type) (any, bool) {
	pick := func(list []string) any { return list[rnd.IntN(len(list))] }
	return func(path string, t *ast.Type) (any, bool) {
		switch last := path[strings.LastIndex(path, ".")+1:]; {
		case !slices.Contains([]string{"String", "ID", "Int"}, t.NamedType), rnd.IntN(15) == 0:
			return nil, false
		case last == "expectedRevision" && len(*revisions) > 0:
			return pick(*revisions), true
		case strings.Contains(path, "labels"), strings.Contains(path, "annotations"):
			return pick([]string{"a", "b", "c"}), true
		case last == "name" && !strings.Contains(path, "spec"), strings.HasSuffix(last, "Ref"), strings.HasSuffix(last, "Refs"):
			return pick(names), true
		case last == "namespace" && t.NamedType == "String":
			return []any{"default", "default", "other"}[rnd.IntN(3)], true
		case last == "id" || last == "ids":
			return pick(ids), true
		case last == "kind" || last == "kinds":
			return pick([]string{"Network", "Subnet", "ports", "router", "Nothing"}), true
		case last == "first", last == "last":
			return rnd.IntN(4), true
		case last == "after" || last == "before":
			return "", true
		case last == "cidr":
			return "10.0.0.0/24", true
		case last == "resyncPeriod":
			return "10m", true
		case last == "clientMutationId":
			return "m", true
		case last == "manifest":
			return fmt.Sprintf("apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: %s}\nspec: {cloudCredentialsRef: {secretName: s, cloudName: c}, resource: {mtu: %d}}\n", pick(names), 1000+rnd.IntN(5)), true
		}
		return nil, false
	}
}

const operationsVariable = "SLUICE_TEST_OPERATIONS"

// operations is how many random operations a test tries.
func operations(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(operationsVariable))
	if os.Getenv(operationsVariable) != "" && err != nil {
		t.Fatalf("%s: %v", operationsVariable, err)
	}
	return max(n, 2000)
}

func TestTheEngineAnswersAsTheGeneratedExecutor(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SLUICE_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	old, ours := newTwin(t, false), newTwin(t, true)
	both := func(query string, vars any) (string, string) {
		for _, tw := range []*twin{old, ours} {
			tw.now.Add(int64(time.Second))
		}
		return old.post(t, query, vars), ours.post(t, query, vars)
	}
	names := []string{"n0", "n1", "n2", "n3", "s0", "s1", "p0", "p1", "absent", "Bad Name"}
	ids := []string{"", "rubbish"}
	for _, k := range []string{"Network", "Subnet", "Port", "Project", "Router", "SecurityGroup"} {
		for _, n := range []string{"n0", "n1", "s0", "p0", "p1"} {
			ids = append(ids, service.GlobalID(backend.Key{Kind: k, Namespace: "default", Name: n}))
		}
	}
	spec := map[string]string{
		"Network": `resource: {mtu: 1500, tags: ["a", "b"], projectRef: "n1"}`, "Subnet": `resource: {networkRef: "n0", cidr: "10.0.0.0/24", ipVersion: 4}`,
		"Port": `resource: {networkRef: "n0", securityGroupRefs: ["n1", "n0", "absent"], addresses: [{subnetRef: "s0"}, {subnetRef: "absent"}]}`,
		"Project": `resource: {}`, "Router": `resource: {externalGateways: [{networkRef: "n0"}]}`, "SecurityGroup": `resource: {rules: [{direction: INGRESS, ethertype: IPV4}]}`,
	}
	for kind, fields := range spec {
		for _, n := range []string{"n0", "n1", "s0", "p0", "p1"} {
			q := fmt.Sprintf(`mutation { create%s(input: {name: %q, labels: [{key: "b", value: "1"}, {key: "a", value: "2"}], spec: {cloudCredentialsRef: {secretName: "s<", cloudName: "c"}, %s}}) { %s { metadata { revision } } } }`, kind, n, fields, strings.ToLower(kind[:1])+kind[1:])
			a, b := both(q, nil)
			if strings.Contains(a, "errors") {
				t.Fatal(a)
			}
			if a != b {
				t.Fatalf("%s\n%s", a, b)
			}
		}
	}
	var revisions []string // the latest that were told
	source := &enginetest.Source{Schema: v1.NewExecutableSchema(v1.Config{}).Schema(), Rand: rnd, Values: values(rnd, names, ids, &revisions)}
	failed, withErrors, invalid := 0, 0, 0
	total := operations(t)
	for i := range total {
		kind := ast.Query
		if rnd.IntN(4) == 0 {
			kind = ast.Mutation
		}
		op := source.Next(kind)
		a, b := both(op.Query, op.Variables)
		for _, m := range revisionsTold.FindAllStringSubmatch(a, -1) {
			revisions = append(revisions, m[1])
		}
		revisions = revisions[max(len(revisions)-30, 0):]
		wantErrors, wantData := parted(t, a)
		gotErrors, gotData := parted(t, b)
		if len(wantErrors) > 0 {
			withErrors++
			if wantData == "" {
				invalid++
			}
		}
		if wantData == gotData && slices.Equal(wantErrors, gotErrors) {
			continue
		}
		raw, _ := json.Marshal(op.Variables)
		t.Errorf("operation %d: %s\n%s\ngenerated %.2000s %.1500s\nengine    %.2000s %.1500s", i, op.Query, raw, wantData, wantErrors, gotData, gotErrors)
		if failed++; failed == 3 {
			t.FailNow()
		}
	}
	t.Logf("%d operations, %d with errors, %d not executed", total, withErrors, invalid)
}

// put stores a body behind the service's back.
func (tw *twin) put(t testing.TB, name string, text []byte) {
	t.Helper()
	if _, err := tw.store.Apply(t.Context(), backend.Batch{
		RequestID: "put", Deadline: tw.store.Now().Add(time.Minute),
		Actions: []backend.Action{{
			Key: backend.Key{Kind: "Network", Namespace: "default", Name: name}, Do: backend.DeedPut,
			Put: backend.Put{UID: name, Body: backend.EncodeBody(text)},
		}},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestTheEngineReadsTheBodiesThatTheGeneratedExecutorReads(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	whole := `{"subKind":"s","version":"v1","metadata":{"generation":2,"labels":{"b":"1","a":"2"},"annotations":{"x":"y"},"description":"d\u003c"},"spec":{"cloudCredentialsRef":{"cloudName":"c","secretName":"s"},"managementPolicy":"managed","resource":{"mtu":1500,"tags":["a","b<"],"external":true,"name":"n"},"newer":{"a":[1,"}"]}},"status":{"id":"i","conditions":[{"type":"A","status":"True","observedGeneration":3}],"resource":{"revisionNumber":9007199254740993,"mtu":1450}}}`
	values := []string{`null`, `1`, `-0`, `1.0`, `1e3`, `4294967296`, `"x"`, `"\u0041\ud83d\ude00"`, `"\ud800"`, `true`, `[]`, `{}`, `["a",null]`, `[ "a" , "\u003c" ]`, `[{}]`, `{"a":"b","c":null}`, `"managed"`, `"strange"`, ` 7 `, `"`, `tru`, `01`, "\"\xff\"", "\"\x01\""}
	const all = `{ id subKind version metadata { name generation description labels { key value } annotations { key value } } spec { managementPolicy cloudCredentialsRef { secretName cloudName } resource { mtu tags external name } } status { id conditions { type status observedGeneration } resource { revisionNumber mtu } } }`
	old, ours := newTwin(t, false), newTwin(t, true)
	readable := 0
	for i := range operations(t) / 2 {
		text := []byte(whole)
		for range 1 + rnd.IntN(3) {
			switch rnd.IntN(6) {
			case 0:
				text = text[:rnd.IntN(len(text)+1)]
			case 1:
				if len(text) > 0 {
					text[rnd.IntN(len(text))] = byte(` "{}[],:0an\`[rnd.IntN(12)])
				}
			default: // another value of some name
				names := regexp.MustCompile(`"[a-zA-Z]+":`).FindAllIndex(text, -1)
				if len(names) == 0 {
					break
				}
				at := names[rnd.IntN(len(names))][1]
				end := at
				for depth := 0; end < len(text); end++ {
					if c := text[end]; c == '{' || c == '[' {
						depth++
					} else if c == '}' || c == ']' {
						if depth--; depth < 0 {
							break
						}
					} else if c == ',' && depth == 0 {
						break
					}
				}
				text = []byte(string(text[:at]) + values[rnd.IntN(len(values))] + string(text[end:]))
			}
		}
		for _, tw := range []*twin{old, ours} {
			tw.put(t, "b", text)
		}
		for _, query := range []string{`{ network(name: "b") ` + all + ` }`, `{ networks { totalCount nodes ` + all + ` } }`} {
			wantErrors, wantData := parted(t, old.post(t, query, nil))
			gotErrors, gotData := parted(t, ours.post(t, query, nil))
			if len(wantErrors) == 0 {
				readable++
			}
			if wantData != gotData || !slices.Equal(wantErrors, gotErrors) {
				t.Fatalf("body %d: %s\ngenerated %s %s\nengine    %s %s", i, text, wantData, wantErrors, gotData, gotErrors)
			}
		}
	}
	t.Logf("%d answers without errors", readable)
}

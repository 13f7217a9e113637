//go:build clients

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
)

// executed is the result of an operation: it is refused before anything is executed, or answered. Errors are compared
// by their paths, because their texts differ between executors.
type executed struct {
	Refused []string
	Data    json.RawMessage
	Errors  []answerError
}

type answerError struct {
	Message string
	Path    []any
}

// paths are those of the errors.
func (j executed) paths() (out []string) {
	for _, e := range j.Errors {
		out = append(out, fmt.Sprint(e.Path))
	}
	return out
}

// nulls are the places of the data that are null for the errors, each once. Of
// several errors that make one place null, graphql-js tells the first and the
// gateway all: the specification leaves that open (October 2021, section 6.4.4).
func (j executed) nulls(t *testing.T) []string {
	t.Helper()
	var data any
	if err := json.Unmarshal(j.Data, &data); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range j.Errors {
		v, n, path := data, 0, e.Path
		for ; v != nil && n < len(path); n++ {
			switch step := path[n].(type) {
			case string:
				v = v.(map[string]any)[step]
			case float64:
				v = v.([]any)[int(step)]
			}
		}
		if v != nil {
			t.Errorf("there is an error at %v and a value, too", path)
		}
		out = append(out, fmt.Sprint(path[:n]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refusedByGateway is what the gateway says of requests that graphql-js executes: descriptions of variables are newer
// (September 2025) than gqlparser, and a variable that is null where no null may be, or a forgotten one that guards
// something, refuses the request instead of its field.
var refusedByGateway = regexp.MustCompile(`^Expected \$, found (Block)?String$|: the variable \$\w+ (is null; .*! is wanted|has no value; give it one, or null for none)$`)

// nullForDefault reports whether a variable is null that has a default, where no null
// may be. Validation has to let it pass (October 2021, section 6.4.1); graphql-js
// then refuses the field, and the gateway the request.
func (j executed) nullForDefault() bool {
	return slices.ContainsFunc(j.Errors, func(e answerError) bool {
		return strings.HasPrefix(e.Message, "Argument ") && strings.HasSuffix(e.Message, "must not be null.")
	})
}

// unlimited takes those limits of documents away that can be set: they are no matter of
// the specification.
var unlimited = []string{"--limit-aliases=100000", "--limit-depth=1000", "--limit-fields=1000000"}

// beyondLimits matches what the gateway says of an operation that exceeds one of the others.
var beyondLimits = regexp.MustCompile(`\(limit-[a-z-]+\)`)

func TestClientsGraphQLJSAnswersTheSame(t *testing.T) {
	needClients(t)
	for name, sources := range map[string][]string{
		"every annotation": {"../graph/kinds/testdata/shelf.graphqls"},
		"embedded":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			if sources == nil {
				sources, _ = filepath.Glob("../schema/v1/*.graphqls")
			}
			r := newReferee(t, sources)
			r.fill()
			r.reopen()
			r.compare()
		})
	}
}

// referee holds a gateway against graphql-js.
type referee struct {
	t         *testing.T
	rnd       *rand.Rand
	gateway   *gateway
	folder    string
	catalogue string
	api       string
	source    *enginetest.Source
	ids       []string
	names     []string
	kinds     []string
	resources []map[string]any
}

func newReferee(t *testing.T, sources []string) *referee {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SLUICE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	r := &referee{
		t: t, rnd: rand.New(rand.NewPCG(seed, 0)), folder: t.TempDir(), ids: []string{"", "rubbish"},
		names: []string{"a", "b", "c", "d", "e", "gone", "Bad Name"}, kinds: []string{"Nothing"},
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r.catalogue += string(text)
		if err := os.WriteFile(filepath.Join(r.folder, filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	product, err := os.ReadFile("../schema/access/access.graphqls") // which every catalogue has
	if err != nil {
		t.Fatal(err)
	}
	r.catalogue += string(product)
	for _, m := range regexp.MustCompile(`(?s)type (\w+)\s+@resource\(\s*plural: "(\w+)"`).FindAllStringSubmatch(r.catalogue, -1) {
		r.kinds = append(r.kinds, m[1], strings.ToUpper(m[2]))
	}
	var stderr string
	if r.api, stderr, _ = sluice(t, "", "catalogue", "print", r.folder); stderr != "" {
		t.Fatal(stderr)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "api", Input: r.api})
	if err != nil {
		t.Fatal(err)
	}
	r.source = &enginetest.Source{Schema: schema, Rand: r.rnd, Values: r.value}
	r.gateway = r.start(t.TempDir())
	return r
}

func (r *referee) start(data string) *gateway {
	return start(r.t, data, append([]string{"--catalogue", r.folder, "--data", data}, unlimited...)...)
}

// fill puts random resources into the store.
func (r *referee) fill() {
	r.source.Skip = func(_, field string) bool { return strings.HasPrefix(field, "delete") || field == "updateKind" }
	r.source.Fields = 10
	for range 600 {
		op := r.source.Next(ast.Mutation)
		r.ask(op.Query, op.Variables)
	}
}

// reopen reads what is stored and starts the gateway anew on it.
func (r *referee) reopen() {
	t := r.t
	if code := r.gateway.stop(); code != 0 {
		t.Fatalf("the gateway ended with %d:\n%s", code, r.gateway.log)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(r.gateway.data, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(r.kinds); i += 2 {
		page, err := store.Range(t.Context(), backend.Range{Kind: r.kinds[i], Limit: backend.MaxLimit})
		if err != nil || page.More {
			t.Fatal(page, err)
		}
		for _, s := range page.Resources {
			body, err := backend.DecodeBody(s.Body)
			if err != nil {
				t.Fatal(err)
			}
			at := func(t time.Time) any {
				if t.IsZero() {
					return nil
				}
				return t.Format(time.RFC3339Nano)
			}
			r.resources = append(r.resources, map[string]any{
				"kind": s.Kind, "namespace": s.Namespace, "name": s.Name, "uid": s.UID, "revision": s.Revision.String(),
				"createdAt": at(s.CreatedAt), "updatedAt": at(s.UpdatedAt), "expiresAt": at(s.ExpiresAt), "body": json.RawMessage(body),
			})
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	r.gateway = r.start(r.gateway.data)
	for _, one := range r.resources {
		namespace := any(one["namespace"])
		if namespace == "" {
			namespace = nil
		}
		a := r.ask(`query ($kind: String!, $namespace: String, $name: String!) { resource(kind: $kind, namespace: $namespace, name: $name) { id } }`,
			map[string]any{"kind": one["kind"], "namespace": namespace, "name": one["name"]})
		var got struct{ Resource struct{ ID string } }
		if err := json.Unmarshal(a.Data, &got); err != nil || got.Resource.ID == "" {
			t.Fatalf("%v: %s, %v", one, a.Data, a.Errors)
		}
		one["id"] = got.Resource.ID
		r.ids = append(r.ids, got.Resource.ID)
	}
	t.Logf("%d resources", len(r.resources))
	if len(r.resources) < 10 {
		t.Errorf("these are too few resources to tell anything")
	}
}

// ask executes an operation at the gateway.
func (r *referee) ask(query string, variables map[string]any) (out executed) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.gateway.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		r.t.Fatalf("%s: %v", raw, err)
	}
	if out.Data == nil {
		for _, e := range out.Errors {
			out.Refused = append(out.Refused, e.Message)
		}
		if out.Refused == nil {
			r.t.Fatalf("%s: neither data nor errors: %s", query, raw)
		}
	}
	return out
}

// compare executes random operations by both.
func (r *referee) compare() {
	t := r.t
	r.source.Fields = 80
	r.source.Skip = func(on, field string) bool {
		switch field {
		case "cursor", "startCursor", "endCursor", "changeCursor", "manifest", "allowed": // made by the gateway alone
			return true
		case "kinds", "dependencyTree", "reveal", "viewer", "access", "accessGrants", "unreadables": // resolved by hand
			return on == "Query"
		}
		// enginetest.Reference has the summaries and the namespaces.
		return on == "Query" && (field == "namespaces" || strings.HasSuffix(field, "Summary"))
	}
	total := 1000
	if text := os.Getenv("SLUICE_TEST_OPERATIONS"); text != "" {
		total, _ = strconv.Atoi(text)
	}
	var operations []enginetest.Operation
	for len(operations) < total {
		op := r.source.Next(ast.Query)
		operations = append(operations, op, enginetest.Operation{Query: r.spoil(op.Query), Variables: op.Variables},
			enginetest.Operation{Query: op.Query, Variables: r.spoilVariables(op.Variables)},
			enginetest.Operation{Query: r.defaults(op.Query), Variables: r.spoilVariables(op.Variables)})
	}
	// Of mutations both say only whether they are valid; they come last, as they
	// change what is stored.
	for range total / 4 {
		op := r.source.Next(ast.Mutation)
		operations = append(operations, op, enginetest.Operation{Query: op.Query, Variables: r.spoilVariables(op.Variables)})
	}
	counts := map[string]int{}
	for i, want := range r.graphqljs(operations) {
		op := operations[i]
		got := r.ask(op.Query, op.Variables)
		text := func() string { raw, _ := json.Marshal(op.Variables); return op.Query + "\n" + string(raw) }
		switch {
		case beyondLimits.MatchString(fmt.Sprint(got.Refused, got.Errors)):
			counts["beyond limits"]++
		case want.Refused != nil && got.Refused != nil:
			counts["refused by both"]++
		case want.Refused != nil:
			t.Errorf("%s\nthe gateway executes what graphql-js refuses: %q\nit answers %s %v", text(), want.Refused, got.Data, got.Errors)
		case got.Refused != nil:
			counts["refused by the gateway alone"]++
			if !refusedByGateway.MatchString(got.Refused[0]) {
				t.Errorf("%s\nthe gateway refuses what graphql-js executes: %q", text(), got.Refused)
			}
		case want.nullForDefault():
			t.Errorf("%s\nthe gateway executes what has null for a default: %s %v", text(), got.Data, got.Errors)
		case want.Data == nil:
			counts["mutations valid for both"]++
		default:
			counts["executed by both"]++
			if len(want.Errors) == 0 {
				counts["without errors"]++
			}
			if diff := cmp.Diff(ordered(t, want.Data), ordered(t, got.Data)); diff != "" {
				t.Errorf("%s\ndata (-graphql-js +gateway):\n%s", text(), diff)
			}
			diff := cmp.Diff(want.nulls(t), got.nulls(t))
			if paths := got.paths(); diff != "" || slices.ContainsFunc(want.paths(), func(p string) bool { return !slices.Contains(paths, p) }) {
				t.Errorf("%s\nnull for errors (-graphql-js +gateway):\n%s\n%v\n%v", text(), diff, want.Errors, got.Errors)
			}
		}
	}
	t.Log(counts)
	if n := counts["beyond limits"]; n > len(operations)/20 {
		t.Errorf("%d of %d operations are beyond the limits", n, len(operations))
	}
}

// graphqljs executes all operations by graphql-js.
func (r *referee) graphqljs(operations []enginetest.Operation) []executed {
	t := r.t
	type operation struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	var list []operation
	for _, op := range operations {
		list = append(list, operation(op))
	}
	in, err := json.Marshal(map[string]any{"api": r.api, "catalogue": r.catalogue, "resources": r.resources, "operations": list})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), clientPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, "node", "reference.mjs")
	cmd.Dir = clients
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, stderr.String())
	}
	out := make([]executed, 0, len(operations))
	for dec := json.NewDecoder(&stdout); dec.More(); {
		var one executed
		if err := dec.Decode(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	if len(out) != len(operations) {
		t.Fatalf("%d answers to %d operations\n%s", len(out), len(operations), stderr.String())
	}
	return out
}

// ordered is JSON with one token a line, in the order of the keys; numbers are
// compared by their value.
func ordered(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var out []string
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		out = append(out, fmt.Sprintf("%T %v", tok, tok))
	}
}

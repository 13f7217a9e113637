package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// sortedErrors are errors in a form and an order in which they can be compared.
func sortedErrors(list gqlerror.List) []string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%s %v %v", e.Message, e.Path, e.Locations))
	}
	slices.Sort(out)
	return out
}

// The answers in golden.jsonl are those that the executor gave that gqlgen
// generated for these kinds, before there was an engine: random operations, one
// after the other on one store. Where the API has changed on purpose since, they are
// the engine's: filters whose operators have no value, nodes with a bad id, payloads
// whose resource is not null, warnings, conditions that say what a resource waits for,
// and the paths and places of errors. That executor took any text for a reference.
func TestTheAnswersAreThoseOfAGeneratedExecutor(t *testing.T) {
	catalogue := shelves(t)
	for _, k := range catalogue.Kinds {
		for _, r := range k.References {
			f, _ := k.FieldAt(r.Path)
			f.Constraint.Format = ""
		}
	}
	g := newGateway(t, catalogue, nil)
	file, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n, ids := 0, uids{}
	for ; lines.Scan(); n++ {
		var want struct {
			Query     string
			Variables map[string]any
			answer
		}
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		g.now = g.now.Add(time.Second)
		got := g.do(want.Query, want.Variables)
		if string(got.Data) != string(ids.renamed(want.Data, got.Data)) {
			t.Errorf("line %d: %s\ngot  %s\nwant %s", n+1, want.Query, got.Data, want.Data)
		}
		if diff := cmp.Diff(sortedErrors(want.Errors), sortedErrors(got.Errors)); diff != "" {
			t.Errorf("line %d: %s\nerrors (-want +got):\n%s", n+1, want.Query, diff)
		}
	}
	if lines.Err() != nil || n < 300 {
		t.Errorf("%d lines, %v", n, lines.Err())
	}
}

// uids are the uids of resources, by those that the other executor gave them: it drew
// request ids from the same sequence.
type uids map[string]string

var uid = regexp.MustCompile(`"id-[0-9]+"`)

// renamed is want with the uids of got. Each has one other for the whole test.
func (u uids) renamed(want, got []byte) []byte {
	seen, n := uid.FindAllString(string(got), -1), -1
	return uid.ReplaceAllFunc(want, func(w []byte) []byte {
		n++
		if _, known := u[string(w)]; !known && n < len(seen) && !slices.Contains(slices.Collect(maps.Values(u)), seen[n]) {
			u[string(w)] = seen[n]
		}
		return []byte(u[string(w)])
	})
}

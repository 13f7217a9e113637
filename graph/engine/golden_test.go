package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
// and the paths and places of errors.
func TestTheAnswersAreThoseOfAGeneratedExecutor(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	file, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
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
		if string(got.Data) != string(want.Data) {
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

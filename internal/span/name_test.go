package span_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/internal/span"
)

var update = flag.Bool("update", false, "write the tables of docs/observability.md")

// own reports whether the tables have an attribute. The others are described by OpenTelemetry.
func own(attribute string) bool {
	return strings.HasPrefix(attribute, "sluice.") || attribute == string(span.ErrorType)
}

// markdown returns the tables of spans and attributes.
func markdown() string {
	var b strings.Builder
	b.WriteString("| span | kind | what it covers | attributes |\n|---|---|---|---|\n")
	for _, s := range span.Spans() {
		var attributes []string
		for _, a := range s.Attributes {
			if own(string(a)) {
				attributes = append(attributes, "`"+string(a)+"`")
			}
		}
		name := "`" + strings.ReplaceAll(s.Name, ", ", "`, `") + "`"
		_, _ = fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, s.Kind, s.Meaning, strings.Join(attributes, ", "))
	}
	b.WriteString("\nSpans also have the attributes of OpenTelemetry's " +
		"[conventions](https://opentelemetry.io/docs/specs/semconv/) for HTTP,\nGraphQL, RPC and databases.\n")
	b.WriteString("\n| attribute | meaning |\n|---|---|\n")
	for _, a := range span.Attributes() {
		if !own(a.Name) {
			continue
		}
		_, _ = fmt.Fprintf(&b, "| `%s` | %s |\n", a.Name, a.Meaning)
	}
	return b.String()
}

func TestSpans_AreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "observability.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "go test ./internal/span -run AreDocumented -update -->\n", "<!-- end -->"
	before, rest, ok1 := strings.Cut(string(raw), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the marks of the tables are missing")
	}
	want := markdown()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, was); diff != "" {
		t.Errorf("go test ./internal/span -run AreDocumented -update\n%s", diff)
	}
}

// constants returns the values of the string constants of name.go: names of spans, and keys of attributes.
func constants(t *testing.T) (names, keys []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "name.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, s := range block.Specs {
			value := s.(*ast.ValueSpec)
			text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if value.Type == nil {
				names = append(names, text)
			} else {
				keys = append(keys, text)
			}
		}
	}
	return names, keys
}

func TestSpans_AllNamesAndAttributesAreInTheTables(t *testing.T) {
	names, keys := constants(t)
	if len(names) < 5 || len(keys) < 20 {
		t.Fatalf("only %d names and %d attributes were found", len(names), len(keys))
	}
	for _, name := range names {
		if !slices.ContainsFunc(span.Spans(), func(d span.Described) bool { return d.Name == name }) {
			t.Errorf("the span %q is missing", name)
		}
	}
	used := map[string]bool{}
	for _, s := range span.Spans() {
		for _, a := range s.Attributes {
			used[string(a)] = true
		}
	}
	described := map[string]bool{}
	for _, a := range span.Attributes() {
		described[a.Name] = true
	}
	for _, key := range keys {
		if !used[key] || !described[key] {
			t.Errorf("%s: of a span %t, described %t", key, used[key], described[key])
		}
	}
	if len(described) != len(keys) {
		t.Errorf("%d attributes are described, and there are %d", len(described), len(keys))
	}
}

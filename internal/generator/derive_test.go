package generator_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	sdl "github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/internal/generator"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func derive(t *testing.T, files ...string) []*ast.Source {
	t.Helper()
	var sources []*ast.Source
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: filepath.Base(f), Input: string(raw)})
	}
	schema, err := sdl.Load(sources...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := generator.Derive(schema, "")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheDerivedSchemaIsTheGoldenOne(t *testing.T) {
	var b strings.Builder
	for _, s := range derive(t, "testdata/shelf.graphqls") {
		if s.Name != "zz_api.graphqls" {
			b.WriteString("# file: " + s.Name + "\n" + s.Input + "\n")
		}
	}
	const golden = "testdata/shelf.golden.graphqls"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("derived (-want +got):\n%s", diff)
	}
}

func TestTheDerivedSchemaKeepsThePromisesOfEverySchema(t *testing.T) {
	schema, err := gqlparser.LoadSchema(derive(t, "testdata/shelf.graphqls", "../../schema/v1/network.graphqls", "../../schema/v1/project.graphqls", "../../schema/v1/managed.graphqls")...)
	if err != nil {
		t.Fatal(err)
	}
	for name, def := range schema.Types {
		if strings.HasPrefix(name, "__") || def.BuiltIn {
			continue
		}
		t.Run(name, func(t *testing.T) { promises(t, schema, def) })
	}
	for name := range schema.Directives {
		switch name {
		case "include", "skip", "deprecated", "specifiedBy", "defer", "oneOf":
		default:
			t.Errorf("directive @%s is published", name)
		}
	}
}

func promises(t *testing.T, schema *ast.Schema, def *ast.Definition) {
	for _, f := range def.Fields {
		where := def.Name + "." + f.Name
		if def.Kind == ast.InputObject {
			if f.DefaultValue != nil {
				t.Errorf("%s has a default, which would be stored", where)
			}
			states(t, where, f.Type, f.Description)
		}
		if def == schema.Query || def == schema.Subscription {
			for _, a := range f.Arguments {
				states(t, where+"("+a.Name+")", a.Type, a.Description)
			}
		}
		if f.Type.Elem != nil && !f.Type.Elem.NonNull && where != "Query.nodes" {
			t.Errorf("%s: elements may be null", where)
		}
		if def == schema.Mutation && f.Type.NonNull {
			t.Errorf("%s: an error in it would take the other mutations' answers along", where)
		}
	}
}

// states asks that the description of something unbounded in itself states its limit.
func states(t *testing.T, where string, typ *ast.Type, description string) {
	if name := typ.Name(); typ.Elem == nil && name != "String" && name != "ID" || strings.HasPrefix(where, "Query.__") {
		return
	}
	for _, sign := range []string{"characters", "opaque", "Opaque", "elements", "KiB", "MiB", "At most", "One of", "one of", "Format: "} {
		if strings.Contains(description, sign) {
			return
		}
	}
	t.Errorf("%s states no limit: %q", where, description)
}

func TestEveryNameThatIsDerivedIsReserved(t *testing.T) {
	known := map[string]bool{}
	for _, kind := range []string{"Shelf", "Box", "Service", "Token"} {
		known[kind] = true
		for _, name := range sdl.DerivedTypes(kind) {
			known[name] = true
		}
	}
	// Authors' types with derived fields go to the files of kinds.
	raw, err := os.ReadFile("testdata/shelf.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:type|enum) (\w+)`).FindAllStringSubmatch(string(raw), -1) {
		known[m[1]] = true
	}
	for _, s := range derive(t, "testdata/shelf.graphqls") {
		if !strings.HasPrefix(s.Name, "zz_") || s.Name == "zz_api.graphqls" {
			continue
		}
		for line := range strings.Lines(s.Input) {
			words := strings.Fields(line)
			if len(words) > 2 && (words[0] == "type" || words[0] == "input" || words[0] == "enum") && !known[words[1]] {
				t.Errorf("%s declares %s, which authors may take", s.Name, words[1])
			}
		}
	}
}

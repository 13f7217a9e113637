package kinds_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/graph/kinds"
)

const shelf = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { size: Int }
`

func manual(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// reserved are the names of one table of the manual.
func reserved(t *testing.T, table string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(manual(t), "<!-- reserved: "+table+" -->")
	names, _, _ := strings.Cut(rest, "<!-- end -->")
	if !ok {
		t.Fatalf("no table %q", table)
	}
	return strings.Fields(strings.ReplaceAll(names, "`", ""))
}

func TestTheExamplesOfTheManualAreAccepted(t *testing.T) {
	parts := strings.Split(manual(t), "```graphql\n")[1:]
	if len(parts) < 4 {
		t.Fatalf("%d examples", len(parts))
	}
	for _, part := range parts {
		text, _, _ := strings.Cut(part, "```")
		if _, err := kinds.Load(&ast.Source{Name: "shelf.graphqls", Input: text}); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

func TestEveryAnnotationHasAnExampleInTheManual(t *testing.T) {
	doc, err := parser.ParseSchema(&ast.Source{Input: kinds.Directives()})
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, part := range strings.Split(manual(t), "```graphql\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		examples.WriteString(text)
	}
	for _, d := range doc.Directives {
		if !regexp.MustCompile(`@` + d.Name + `\b`).MatchString(examples.String()) {
			t.Errorf("@%s has no example", d.Name)
		}
	}
}

func TestReservedNamesAreThoseOfTheManual(t *testing.T) {
	types := slices.Concat(reserved(t, "types of a kind"), reserved(t, "types"))
	for _, name := range types {
		_, err := kinds.Load(&ast.Source{Name: "shelf.graphqls", Input: shelf + "type " + name + " { size: Int }"})
		if err == nil || !strings.Contains(err.Error(), "type "+name+": the name is reserved") {
			t.Errorf("type %s: %v", name, err)
		}
	}
	for _, name := range reserved(t, "kinds") {
		kind := strings.NewReplacer("Shelf ", name+" ", "shelves", "others").Replace(shelf)
		if _, err := kinds.Load(&ast.Source{Name: "shelf.graphqls", Input: kind}); err == nil || !strings.Contains(err.Error(), "the name is reserved: payloads") {
			t.Errorf("kind %s: %v", name, err)
		}
	}
	sources, err := kinds.APISources()
	if err != nil {
		t.Fatal(err)
	}
	api, err := parser.ParseSchemas(sources...)
	if err != nil {
		t.Fatal(err)
	}
	names := kinds.DerivedTypes("Shelf")
	for _, def := range api.Definitions {
		names = append(names, def.Name)
	}
	for _, name := range names {
		if !slices.Contains(types, name) {
			t.Errorf("%s is reserved and not in the manual", name)
		}
	}
}

func TestTheManualNamesEveryAnnotationAndItsArguments(t *testing.T) {
	doc, err := parser.ParseSchema(&ast.Source{Input: kinds.Directives()})
	if err != nil {
		t.Fatal(err)
	}
	text := manual(t)
	for _, d := range doc.Directives {
		rows := regexp.MustCompile("(?m)^\\| `@"+d.Name+"[(`].*$").FindAllString(text, -1)
		for _, a := range d.Arguments {
			if !slices.ContainsFunc(rows, func(row string) bool { return regexp.MustCompile(`[(, ]` + a.Name + `[,)]`).MatchString(row) }) {
				t.Errorf("@%s(%s) is not in the manual", d.Name, a.Name)
			}
		}
		if len(rows) == 0 {
			t.Errorf("@%s is not in the manual", d.Name)
		}
	}
}

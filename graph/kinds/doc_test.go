package kinds_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/graph/kinds"
)

const shelf = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { size: Int }
`

func manual(t *testing.T) string {
	t.Helper()
	return document(t, "kinds.md")
}

// document returns the text of a page of the documentation.
func document(t *testing.T, page string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// reserved returns the names of one table of docs/reserved-names.md.
func reserved(t *testing.T, table string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(document(t, "reserved-names.md"), "<!-- reserved: "+table+" -->")
	names, _, _ := strings.Cut(rest, "<!-- end -->")
	if !ok {
		t.Fatalf("docs/reserved-names.md has no table %q", table)
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
	want := kinds.Reserved()
	sources, err := kinds.APISources()
	if err != nil {
		t.Fatal(err)
	}
	api, err := parser.ParseSchemas(sources...)
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range api.Definitions {
		want["types"] = append(want["types"], def.Name)
	}
	want["types"] = append(want["types"], "String", "Int", "Float", "Boolean", "ID")
	vocabulary, err := parser.ParseSchema(&ast.Source{Input: kinds.Directives()})
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range vocabulary.Definitions {
		want["types"] = append(want["types"], def.Name)
	}
	for _, def := range slices.Concat(api.Definitions, api.Extensions) {
		if def.Name == "Query" {
			for _, f := range def.Fields {
				want["fields of Query"] = append(want["fields of Query"], f.Name)
			}
		}
	}
	for table, names := range want {
		slices.Sort(names)
		got := reserved(t, table)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Compact(names), got); diff != "" {
			t.Errorf("table %q of the manual (-code +manual):\n%s", table, diff)
		}
	}
}

func TestEveryReservedNameIsRefused(t *testing.T) {
	refused := func(text, says string) {
		t.Helper()
		if _, err := kinds.Load(&ast.Source{Name: "shelf.graphqls", Input: text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	kind := func(name, plural string) string {
		return strings.NewReplacer("Shelf ", name+" ", "shelves", plural).Replace(shelf)
	}
	for _, name := range slices.Concat(reserved(t, "types of a kind"), reserved(t, "types"), reserved(t, "beginnings of types")) {
		refused(shelf+"type "+name+" { size: Int }", "type "+name+": the name is reserved")
	}
	for _, beginning := range reserved(t, "beginnings of types") {
		refused(shelf+"enum "+beginning+"Anything { A }", "type "+beginning+"Anything: the name is reserved")
	}
	for _, field := range reserved(t, "kinds") {
		refused(kind(strings.ToUpper(field[:1])+field[1:], "others"), "the name is reserved: payloads and events have a field "+field)
	}
	for _, field := range reserved(t, "fields of every kind") {
		refused(shelf+strings.NewReplacer("Shelf", "Box", "shelves", "boxes", "size: Int", `shelfRef: String @ref(kind: "Shelf", inverse: "`+field+`")`).Replace(shelf), "Shelf."+field)
		refused(strings.Replace(shelf, "size: Int", `shelf: String @ref(kind: "Shelf", as: "`+field+`")`, 1), "Shelf."+field)
	}
	for _, word := range reserved(t, "words") {
		refused(strings.Replace(shelf, "plural:", `shortNames: ["`+word+`"], plural:`, 1), `short name "`+word+`" is a word of the command line`)
		refused(kind("Thing", word), `"`+word+`" is a word of the command line`)
	}
	for _, name := range reserved(t, "columns") {
		refused(strings.Replace(shelf, ") {", `) @column(title: "`+name+`", path: "spec.size") {`, 1), `column "`+name+`": the title is reserved`)
	}
	for _, field := range reserved(t, "fields of Query") {
		refused(kind("Thing", field), "Query."+field+" of kind Thing: Query."+field+" of the API has that name too")
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

package deprecation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/deprecation"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

const sdl = `
type Query {
  box(size: Int @deprecated, of: BoxFilter): Box
  plain: Int
}
type Box { id: ID, old: Int @deprecated(reason: "use id"), colour: Colour, inner: Box }
enum Colour { RED BLUE @deprecated }
input BoxFilter { colour: [Colour], and: [BoxFilter!], size: IntFilter, width: Int @deprecated }
input IntFilter { eq: Int }
`

// uses returns the coordinates that a document with these variables uses, in order, joined by blanks.
func uses(t *testing.T, document string, variables map[string]any) string {
	t.Helper()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: sdl})
	doc, errs := gqlparser.LoadQueryWithRules(schema, document, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var out []string
	deprecation.New(schema).Document(doc).Each(doc.Operations[0], variables, func(c string) { out = append(out, c) })
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestDocument_HasWhatIsDeprecatedOnce(t *testing.T) {
	for document, want := range map[string]string{
		`{ plain box { id inner { __typename } } }`:                                     "",
		`{ box { old again: old inner { old @skip(if: true) } } }`:                      "Box.old",
		`{ box { ...F ... on Box { ...F } } } fragment F on Box { inner { old } }`:      "Box.old",
		`{ box(size: 1) { id } }`:                                                       "Query.box(size:)",
		`query($n: Int) { box(size: $n) { id } }`:                                       "Query.box(size:)",
		`{ box(of: {size: {eq: 1}, and: [{width: 2}]}) { id } }`:                        "BoxFilter.width",
		`{ box(of: {colour: BLUE}) { old } }`:                                           "Box.old Colour.BLUE",
		`{ box(of: {colour: [RED]}) { id } }`:                                           "",
		`query($c: Colour) { box(of: {colour: [$c], and: {colour: [RED, BLUE]}}) {id}}`: "Colour.BLUE",
		`query One { box { __typename } } query Other { box { old } }`:                  "",
	} {
		if got := uses(t, document, nil); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}

func TestDocument_LooksIntoVariables(t *testing.T) {
	const document = `query($of: BoxFilter, $c: Colour) { box(of: $of) { old } more: box(of: {colour: [$c]}) { id } }`
	for want, variables := range map[string]map[string]any{
		"Box.old":                 {"of": map[string]any{"colour": []any{"RED"}, "size": map[string]any{"eq": 1}}, "c": nil},
		"Box.old BoxFilter.width": {"of": map[string]any{"and": []any{map[string]any{"width": 1}, map[string]any{"width": nil}}}},
		"Box.old Colour.BLUE":     {"c": "BLUE", "of": map[string]any{"colour": []any{"BLUE", nil}}},
	} {
		if got := uses(t, document, variables); got != want {
			t.Errorf("%v: %q, want %q", variables, got, want)
		}
	}
}

func TestNew_IsNilWithoutDeprecatedParts(t *testing.T) {
	schema := kindstest.API(t)
	if deprecation.New(schema) != nil {
		t.Error("the embedded catalogue has deprecated parts")
	}
	deprecation.New(schema).Document(&ast.QueryDocument{}).Each(nil, nil, func(c string) { t.Error(c) })
}

package release_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

// editedFile returns a version of shop with another file.
func editedFile(t *testing.T, api string) []*release.Version {
	t.Helper()
	out, err := release.Read(map[string]string{"v1.0/shop.graphqls": shop, "v1.0/api.graphql": api}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// definition matches a definition of a file.
var definition = regexp.MustCompile(`(?ms)^(directive|scalar|type|input|interface|enum|union) @?(\w+)[^\n{]*(\{.*?^\})?\n`)

// TestVersion_AFileWithoutADefinitionIsRefusedOrASchema: whatever definition somebody removes from a file, the version is
// refused, or what is served is a schema without dangling names.
func TestVersion_AFileWithoutADefinitionIsRefusedOrASchema(t *testing.T) {
	next := newest(t, grown)
	api := kinds.PrintBare(newest(t, shop).API)
	all := definition.FindAllStringSubmatch(api, -1)
	refused := 0
	for _, of := range all {
		versions := editedFile(t, strings.Replace(api, of[0], "", 1))
		if err := release.Check(versions, next); err != nil {
			refused++
			if !strings.Contains(err.Error(), "sluice catalogue release has not written this; put the file of v1.0 back") {
				t.Errorf("without %s: %v", of[2], err)
			}
			continue
		}
		view, _ := versions[0].View(next.API)
		if _, err := gqlparser.LoadSchema(&ast.Source{Input: kinds.PrintBare(view)}); err != nil {
			t.Errorf("without %s: %v", of[2], err)
		}
	}
	if len(all) < 50 || refused < len(all)/2 {
		t.Errorf("%d definitions, %d refused", len(all), refused)
	}
}

func TestVersion_AFileThatSomebodyHasEditedIsRefused(t *testing.T) {
	next := newest(t, shop)
	api := kinds.PrintBare(next.API)
	for name, edited := range map[string]string{
		"empty":               "",
		"an extension":        api + "\nextend type Part { weight: Int }\n",
		"root types":          api + "\nschema { query: Query }\n",
		"root types more":     api + "\nextend schema { subscription: Part }\n",
		"a type twice":        api + "\ntype Part { size: Int! }\n",
		"a field twice":       strings.Replace(api, "type Part {\n", "type Part {\n  size: Int!\n", 1),
		"no fields":           regexp.MustCompile(`type Part \{[^}]*\}`).ReplaceAllString(api, "type Part"),
		"no values":           regexp.MustCompile(`enum Colour \{[^}]*\}`).ReplaceAllString(api, "enum Colour"),
		"an interface less":   strings.Replace(api, "  id: ID!\n", "", 1),
		"an unknown type":     strings.Replace(api, "size: Int!", "size: Size!", 1),
		"a directive":         strings.Replace(api, "type Part {", "type Part @hidden {", 1),
		"a scalar of GraphQL": api + "\nscalar Int\n",
	} {
		err := release.Check(editedFile(t, edited), next)
		if err == nil || !strings.HasPrefix(err.Error(), "shop/versions/v1.0/api.graphql:") ||
			!strings.Contains(err.Error(), "has not written this") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

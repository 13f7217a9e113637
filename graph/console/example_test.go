package console_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func examples(t *testing.T, kinds []*backend.Kind) []console.Example {
	t.Helper()
	out, err := console.Examples(kinds)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryExampleOfTheCatalogueIsValid(t *testing.T) {
	schema := kindstest.API(t)
	var kinds []*backend.Kind
	for _, k := range kindstest.Kinds(t) {
		kinds = append(kinds, &k)
	}
	all := examples(t, kinds)
	for _, e := range all {
		document, errs := gqlparser.LoadQueryWithRules(schema, e.Query, nil)
		if errs != nil {
			t.Errorf("%s: %v", e.Title, errs)
			continue
		}
		if len(document.Operations) != 1 || document.Operations[0].Name == "" {
			t.Errorf("%s: not one operation with a name", e.Title)
		}
		var given map[string]any
		if e.Variables != "" {
			if err := json.Unmarshal([]byte(e.Variables), &given); err != nil {
				t.Errorf("%s: %v", e.Title, err)
			}
		}
		for _, v := range document.Operations[0].VariableDefinitions {
			if _, ok := given[v.Variable]; !ok && v.Type.NonNull {
				t.Errorf("%s: nothing for $%s", e.Title, v.Variable)
			}
		}
		// The page resumes streams by this variable and this field.
		if o := document.Operations[0]; o.Operation == ast.Subscription && (o.VariableDefinitions.ForName("after") == nil || !strings.Contains(e.Query, "cursor")) {
			t.Errorf("%s: the page cannot resume it", e.Title)
		}
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(all, func(e console.Example) bool { return e.Group == k.Plural }) {
			t.Errorf("no example of %s", k.Plural)
		}
	}
}

func TestKindsThatNobodyWroteExamplesForHaveAListAndTheirChanges(t *testing.T) {
	var got []string
	for _, e := range examples(t, kinds()) {
		if e.Group == "networks" {
			continue
		}
		document, err := parser.ParseQuery(&ast.Source{Input: e.Query})
		if err != nil {
			t.Fatalf("%s: %v", e.Title, err)
		}
		o := document.Operations[0]
		got = append(got, e.Group+": "+string(o.Operation)+" "+o.Name+" "+o.SelectionSet[0].(*ast.Field).Name)
	}
	want := []string{
		"clouds: query Clouds clouds",
		"bookShelves: query BookShelves bookShelves",
		"bookShelves: subscription BookShelfChanges bookShelfChanges",
		"all kinds: query Kinds kinds",
		"all kinds: subscription ResourceChanges resourceChanges",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, e := range examples(t, kinds()) {
		if e.Group == "clouds" && strings.Contains(e.Query, "namespace") {
			t.Errorf("a GLOBAL kind has no namespace:\n%s", e.Query)
		}
	}
}

func TestAKindThatIsGoneTakesItsExamplesAlong(t *testing.T) {
	for _, e := range examples(t, kinds()[2:]) {
		if regexp.MustCompile(`(?i)network`).MatchString(e.Query + e.Title) {
			t.Errorf("%s", e.Title)
		}
	}
}

func TestThePageOpensWithFourExamples(t *testing.T) {
	first := 0
	for i, e := range examples(t, kinds()) {
		if e.First {
			first++
			if i >= 4 || e.Group != "networks" {
				t.Errorf("%d: %s", i, e.Title)
			}
		}
	}
	if first != 4 {
		t.Errorf("%d examples come first", first)
	}
}

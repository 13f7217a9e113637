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

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func examples(t *testing.T, kinds []*descriptor.Kind) []console.Example {
	t.Helper()
	return examplesOf(t, kindstest.API(t), kinds)
}

func examplesOf(t *testing.T, schema *ast.Schema, kinds []*descriptor.Kind) []console.Example {
	t.Helper()
	return console.Examples(schema, kinds)
}

func TestEveryExampleOfTheCatalogueIsValid(t *testing.T) {
	schema := kindstest.API(t)
	var kinds []*descriptor.Kind
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
		if title, _, _ := strings.Cut(e.Query, "\n"); !strings.HasPrefix(title, "# "+e.Title) {
			t.Errorf("%s: the first line is no comment that says what the example shows: %s", e.Title, title)
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

// otherNetworks is an API whose networks are not those that somebody wrote examples for.
const otherNetworks = `
type Query { networks(first: Int, after: String): Networks! kinds: [Kind!] }
type Subscription { networkChanges(after: String, snapshot: Boolean): Change! resourceChanges(after: String): Change! }
type Networks { totalCount: Int nodes: [Network!]! pageInfo: PageInfo! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Network { id: ID! kind: String! metadata: Metadata! spec: Spec! }
type Metadata { namespace: String name: String! revision: String! }
type Spec { stations: Int }
type Change { type: String! cursor: String revision: String network: Network resource: Network }
type Kind { name: String! plural: String! scope: String! verbs: [String!]! description: String! }`

func TestAKindOfAnotherCatalogueHasExamplesThatAreItsOwn(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Name: "api", Input: otherNetworks})
	var got []string
	for _, e := range examplesOf(t, schema, kinds()[1:2]) {
		if _, errs := gqlparser.LoadQueryWithRules(schema, e.Query, nil); errs != nil {
			t.Errorf("%s: %v", e.Title, errs)
		}
		got = append(got, e.Title)
	}
	want := []string{"List networks, a page at a time", "Watch networks: the state, then every change", "What kinds there are", "Watch everything"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestManifestsInExamplesAreOfTheCataloguesVersion(t *testing.T) {
	network := *kinds()[1]
	network.Group, network.Version = "example.org", "v7"
	all := examples(t, []*descriptor.Kind{&network})
	if !slices.ContainsFunc(all, func(e console.Example) bool { return strings.Contains(e.Variables, "apiVersion: example.org/v7") }) {
		t.Errorf("%+v", all)
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

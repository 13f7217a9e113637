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
	"github.com/vektah/gqlparser/v2/validator"

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

func TestExample_EveryExampleOfTheCatalogueIsValid(t *testing.T) {
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
		if _, err := validator.VariableValues(schema, document.Operations[0], given); err != nil {
			t.Errorf("%s: %v\n%s", e.Title, err, e.Variables)
		}
		// The page resumes streams by this variable and this field.
		if o := document.Operations[0]; o.Operation == ast.Subscription && (o.VariableDefinitions.ForName("after") == nil || !strings.Contains(e.Query, "cursor")) {
			t.Errorf("%s: the page cannot resume it", e.Title)
		}
	}
	for _, k := range kinds {
		for verb, field := range map[descriptor.Verb]string{
			descriptor.VerbList: k.Plural + "(", descriptor.VerbCreate: "create" + k.Name + "(",
			descriptor.VerbWatch: k.Singular + "Changes(", descriptor.VerbPatch: "patch" + k.Name + "(",
		} {
			has := func(e console.Example) bool { return e.Group == k.Plural && strings.Contains(e.Query, field) }
			if k.Has(verb) != slices.ContainsFunc(all, has) {
				t.Errorf("%s: an example of %s is there: %t", k.Name, verb, !k.Has(verb))
			}
		}
	}
}

func TestExamples_TheCataloguesOwnKindsComeBeforeThoseOfEveryCatalogue(t *testing.T) {
	verbs := []descriptor.Verb{descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbPatch}
	kind := func(name, singular, plural string) *descriptor.Kind {
		return &descriptor.Kind{Name: name, Singular: singular, Plural: plural, Scope: descriptor.Namespaced, Verbs: verbs}
	}
	all := examples(t, []*descriptor.Kind{
		kind("AccessBinding", "accessBinding", "accessBindings"), kind("AccessRole", "accessRole", "accessRoles"), kind("Pallet", "pallet", "pallets"),
	})
	var groups, first []string
	for _, e := range all {
		if !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
		if e.First {
			first = append(first, e.Title)
		}
	}
	if want := []string{"pallets", "accessBindings", "accessRoles", "all kinds"}; !slices.Equal(groups, want) {
		t.Errorf("got  %q\nwant %q", groups, want)
	}
	want := []string{
		"List pallets, a page at a time", "Create a Pallet", "Watch pallets: the state, then every change",
		"Patch a Pallet at the revision that was read",
	}
	if !slices.Equal(first, want) {
		t.Errorf("got  %q\nwant %q", first, want)
	}
}

func TestExamples_ACreateHasWhatTheSpecNeedsAndAPatchChangesAField(t *testing.T) {
	two := 2
	low, high := 10.0, 10.5
	k := descriptor.Kind{
		Name: "Pallet", Singular: "pallet", Plural: "pallets", Scope: descriptor.Namespaced,
		Verbs:      []descriptor.Verb{descriptor.VerbCreate, descriptor.VerbPatch},
		References: []descriptor.Reference{{Path: "spec.hallRef", Kind: "Hall"}},
		Spec: &descriptor.Shape{Fields: []descriptor.Field{
			{Name: "hallRef", Type: descriptor.TypeString, Required: true},
			{Name: "code", Type: descriptor.TypeString, Required: true, Immutable: true, Constraint: descriptor.Constraint{Pattern: "^[A-Z]+$"}},
			{Name: "color", Type: descriptor.TypeEnum, Required: true, Immutable: true, Enum: &descriptor.Enum{Values: []descriptor.EnumValue{{Name: "RED", Stored: "red"}}}},
			{Name: "tags", Type: descriptor.TypeString, List: true, Required: true, Constraint: descriptor.Constraint{MinItems: &two}},
			{Name: "height", APIName: "tall", Type: descriptor.TypeInt, Required: true, Constraint: descriptor.Constraint{Min: &low, Max: &high}},
			{Name: "weight", Type: descriptor.TypeFloat, Required: true, Default: json.Number("5")},
			{Name: "note", Type: descriptor.TypeString},
		}},
	}
	var got []string
	for _, e := range examples(t, []*descriptor.Kind{&k}) {
		if e.Group == "pallets" {
			got = append(got, regexp.MustCompile(`\s+`).ReplaceAllString(e.Variables, ""))
		}
	}
	want := []string{
		`{"input":{"name":"my-pallet","spec":{"code":"EXAMPLE","color":"RED","hallRef":"example","tags":["example","example1"],"tall":10}}}`,
		`{"input":{"expectedRevision":"metadata.revisionoftheresource","name":"my-pallet","spec":{"tall":10}}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestExample_KindsThatNobodyWroteExamplesForHaveAListAndTheirChanges(t *testing.T) {
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

func TestExample_AKindOfAnotherCatalogueHasExamplesThatAreItsOwn(t *testing.T) {
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

func TestExample_ManifestsInExamplesAreOfTheCataloguesVersion(t *testing.T) {
	network := *kinds()[1]
	network.Group, network.Version = "example.org", "v7"
	all := examples(t, []*descriptor.Kind{&network})
	if !slices.ContainsFunc(all, func(e console.Example) bool { return strings.Contains(e.Variables, "apiVersion: example.org/v7") }) {
		t.Errorf("%+v", all)
	}
}

func TestExample_AKindThatIsGoneTakesItsExamplesAlong(t *testing.T) {
	for _, e := range examples(t, kinds()[2:]) {
		if regexp.MustCompile(`(?i)network`).MatchString(e.Query + e.Title) {
			t.Errorf("%s", e.Title)
		}
	}
}

func TestExample_ThePageOpensWithFourExamples(t *testing.T) {
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

package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
)

// written has the handwritten examples. An example is a file examples/KIND/NUMBER-NAME.graphql, whose first line is a
// comment with the title. Its variables, if there are any, are in a file with the same name and the extension .json. In
// variables, {apiVersion} stands for the apiVersion of the kind's manifests. The file examples/KIND/spec.json, if there
// is one, has a spec for examples that create a resource. It is for kinds with rules that a derived spec does not
// satisfy.
//
//go:embed examples
var written embed.FS

// Example is an operation that can be run as it is.
type Example struct {
	// Title describes the example in a few words.
	Title string `json:"title"`
	// Group is the plural of the kind, or "all kinds".
	Group string `json:"group"`
	// Query is a document with one operation.
	Query string `json:"query"`
	// Variables is a JSON object, indented; empty if there are no variables.
	Variables string `json:"variables"`
	// First reports whether the page opens the example on the first visit.
	First bool `json:"first"`
}

// Examples returns the examples for the kinds of a catalogue. If all handwritten examples of a kind are valid in the
// API, it returns those. They may be invalid, because the kind of that name may be another one in this catalogue.
// Otherwise it derives examples from the kind: a list, a create, a stream of changes and a patch, as far as the kind
// offers these.
//
// The order is: kinds with handwritten examples, other kinds of the catalogue, kinds that every catalogue has, and at
// last the examples for all kinds.
func Examples(schema *ast.Schema, kinds []*descriptor.Kind) []Example {
	var wrote, made, builtIn []Example
	for _, k := range kinds {
		own := writtenFor(k)
		switch {
		case len(own) > 0 && valid(schema, own):
			wrote = append(wrote, own...)
		case k.Name == access.RoleKind || k.Name == access.BindingKind:
			builtIn = append(builtIn, madeFor(schema, k)...)
		default:
			made = append(made, madeFor(schema, k)...)
		}
	}
	out := slices.Concat(wrote, made, builtIn)
	for i := range out {
		out[i].First = i < firstExamples
	}
	return append(out, forAll()...)
}

// firstExamples is the number of examples that the page opens on the first visit.
const firstExamples = 4

// valid reports whether all examples are valid in the API.
func valid(schema *ast.Schema, examples []Example) bool {
	return !slices.ContainsFunc(examples, func(e Example) bool {
		_, errs := gqlparser.LoadQueryWithRules(schema, e.Query, nil)
		return errs != nil
	})
}

// writtenFor returns the handwritten examples of a kind. It ignores errors, because embedded files can always be read.
func writtenFor(k *descriptor.Kind) (out []Example) {
	names, _ := fs.Glob(written, "examples/"+k.Name+"/*.graphql")
	for _, name := range names {
		query, _ := written.ReadFile(name)
		variables, _ := written.ReadFile(strings.TrimSuffix(name, ".graphql") + ".json") // or there are none
		title, _, _ := strings.Cut(strings.TrimPrefix(string(query), "# "), "\n")
		text := strings.ReplaceAll(string(variables), "{apiVersion}", k.APIVersion())
		out = append(
			out,
			Example{
				Title:     strings.TrimSuffix(title, "."),
				Group:     k.Plural,
				Query:     string(query),
				Variables: strings.TrimSpace(text),
			},
		)
	}
	return out
}

// madeFor returns examples derived from a kind.
func madeFor(schema *ast.Schema, k *descriptor.Kind) []Example {
	m := maker{schema: schema, kind: k, names: "name revision", title: strings.ToUpper(k.Plural[:1]) + k.Plural[1:]}
	if k.Scope == descriptor.Namespaced {
		m.names = "namespace name revision"
	}
	var out []Example
	if k.Has(descriptor.VerbList) {
		out = append(out, m.list())
	}
	if k.Has(descriptor.VerbCreate) {
		out = append(out, m.create())
	}
	if k.Has(descriptor.VerbWatch) {
		out = append(out, m.changes())
	}
	if k.Has(descriptor.VerbPatch) {
		out = append(out, m.patch())
	}
	return out
}

// maker derives examples from a kind.
type maker struct {
	schema *ast.Schema
	kind   *descriptor.Kind
	// names are the metadata fields that examples select.
	names string
	// title is the plural of the kind with a capital letter, as operation names have it, such as Networks.
	title string
}

func (m maker) list() Example {
	title := "List " + m.kind.Plural + ", a page at a time"
	return Example{Title: title, Group: m.kind.Plural, Variables: "{\n  \"first\": 10\n}", Query: fmt.Sprintf(`# %s.
query %s($first: Int, $after: String) {
  %s(first: $first, after: $after) {
    totalCount
    nodes {
      id
      metadata { %s }
    }
    pageInfo { hasNextPage endCursor }
  }
}
`, title, m.title, m.kind.Plural, m.names)}
}

func (m maker) create() Example {
	title := "Create " + m.article()
	query := fmt.Sprintf(`# %s.
# Once more with the same name is refused: ALREADY_EXISTS. What may be in the spec is in the documentation of the schema.
mutation Create%s($input: Create%sInput!) {
  create%s(input: $input) {
    %s {
      id
      metadata { %s }
    }
  }
}
`, title, m.kind.Name, m.kind.Name, m.kind.Name, m.kind.Singular, m.names)
	return Example{Title: title, Group: m.kind.Plural, Variables: variables(m.createInput(query)), Query: query}
}

// createInput returns the input of a create. It uses the handwritten spec if query is valid with it, otherwise a spec
// derived from the kind.
func (m maker) createInput(query string) map[string]any {
	input := map[string]any{"name": m.name(), "spec": sample(m.kind.Spec, 0)}
	text, err := written.ReadFile("examples/" + m.kind.Name + "/spec.json")
	if err != nil { // there is none
		return input
	}
	var spec map[string]any
	if json.Unmarshal(text, &spec) != nil {
		return input
	}
	document, errs := gqlparser.LoadQueryWithRules(m.schema, query, nil)
	if errs != nil {
		return input
	}
	own := map[string]any{"name": m.name(), "spec": spec}
	if _, err := validator.VariableValues(m.schema, document.Operations[0], map[string]any{"input": own}); err != nil {
		return input
	}
	return own
}

func (m maker) changes() Example {
	title := "Watch " + m.kind.Plural + ": the state, then every change"
	return Example{Title: title, Group: m.kind.Plural, Query: fmt.Sprintf(`# %s.
subscription %sChanges($after: String) {
  %sChanges(after: $after, snapshot: true) {
    type
    cursor
    revision
    %s { metadata { %s } }
  }
}
`, title, m.title[:1]+m.kind.Singular[1:], m.kind.Singular, m.kind.Singular, m.names)}
}

func (m maker) patch() Example {
	title := "Patch " + m.article() + " at the revision that was read"
	input := map[string]any{"name": m.name(), "expectedRevision": "metadata.revision of the resource"}
	spec := samplePatch(m.kind, m.kind.Spec, "spec.", 0)
	if spec != nil {
		input["spec"] = spec
	} else {
		input["labels"] = []any{map[string]any{"key": "team", "value": "blue"}}
	}
	return Example{Title: title, Group: m.kind.Plural, Variables: variables(input), Query: fmt.Sprintf(`# %s.
# A change since then is a CONFLICT, and its extensions.currentRevision is the one to look at.
mutation Patch%s($input: Patch%sInput!) {
  patch%s(input: $input) {
    %s {
      id
      metadata { %s generation }
    }
  }
}
`, title, m.kind.Name, m.kind.Name, m.kind.Name, m.kind.Singular, m.names)}
}

// article returns the name of the kind with "a" or "an".
func (m maker) article() string {
	if strings.Contains("AEIO", m.kind.Name[:1]) {
		return "an " + m.kind.Name
	}
	return "a " + m.kind.Name
}

// name returns the name of the resource in the examples.
func (m maker) name() string { return "my-" + strings.ToLower(m.kind.Name) }

// variables returns the variables of an operation with an input, as indented JSON.
func variables(input map[string]any) string {
	text, err := json.MarshalIndent(map[string]any{"input": input}, "", "  ")
	if err != nil { // strings, numbers and booleans can be written
		return ""
	}
	return string(text)
}

// forAll returns the examples for all kinds.
func forAll() []Example {
	return []Example{
		{Title: "What kinds there are", Group: "all kinds", Query: `# What kinds there are, and what can be done with them.
query Kinds {
  kinds {
    name
    plural
    scope
    verbs
    description
  }
}
`},
		{Title: "Watch everything", Group: "all kinds", Query: `# Watch everything: the changes of all kinds, from now on.
subscription ResourceChanges($after: String) {
  resourceChanges(after: $after) {
    type
    cursor
    revision
    resource { kind metadata { namespace name } }
  }
}
`},
	}
}

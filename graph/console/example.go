package console

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// written holds handwritten examples, examples/<Kind>/<number>-<what>.graphql, each
// with its variables in a .json file of the same name, if it has any. The
// first line is a comment with the title. In variables, {apiVersion}
// stands for the apiVersion of the kind's manifests.
//
//go:embed examples
var written embed.FS

// Example is an operation that is ready to run.
type Example struct {
	// Title describes the example in a few words.
	Title string `json:"title"`
	// Group is the plural of the kind that it is about; "all kinds" for others.
	Group string `json:"group"`
	// Query is a document of one operation.
	Query string `json:"query"`
	// Variables is a JSON object, as a person writes it; empty if there are none.
	Variables string `json:"variables"`
	// First: the page opens it at the first visit.
	First bool `json:"first"`
}

// Examples returns the examples of the kinds: the handwritten ones if all of them are
// valid in the API, since another catalogue may have another kind of that name, else a list and a stream of changes.
// Kinds with handwritten examples come first, and the examples for all kinds last.
func Examples(schema *ast.Schema, kinds []*descriptor.Kind) []Example {
	var wrote, made []Example
	for _, k := range kinds {
		if own := writtenFor(k); len(own) > 0 && valid(schema, own) {
			wrote = append(wrote, own...)
		} else {
			made = append(made, madeFor(k)...)
		}
	}
	out := append(wrote, made...)
	for i := range out {
		out[i].First = i < firstExamples
	}
	return append(out, forAll()...)
}

// firstExamples is how many tabs the page opens at the first visit.
const firstExamples = 4

// valid reports whether all examples are valid in the API.
func valid(schema *ast.Schema, examples []Example) bool {
	return !slices.ContainsFunc(examples, func(e Example) bool {
		_, errs := gqlparser.LoadQueryWithRules(schema, e.Query, nil)
		return errs != nil
	})
}

// writtenFor returns the handwritten examples of a kind. What is embedded can be read.
func writtenFor(k *descriptor.Kind) (out []Example) {
	names, _ := fs.Glob(written, "examples/"+k.Name+"/*.graphql")
	for _, name := range names {
		query, _ := written.ReadFile(name)
		variables, _ := written.ReadFile(strings.TrimSuffix(name, ".graphql") + ".json") // or there are none
		title, _, _ := strings.Cut(strings.TrimPrefix(string(query), "# "), "\n")
		text := strings.ReplaceAll(string(variables), "{apiVersion}", k.APIVersion())
		out = append(out, Example{Title: strings.TrimSuffix(title, "."), Group: k.Plural, Query: string(query), Variables: strings.TrimSpace(text)})
	}
	return out
}

// madeFor returns the examples that any kind can have.
func madeFor(k *descriptor.Kind) []Example {
	names := "name revision"
	if k.Scope == descriptor.Namespaced {
		names = "namespace name revision"
	}
	upper := strings.ToUpper(k.Plural[:1]) + k.Plural[1:]
	var out []Example
	if k.Has(descriptor.VerbList) {
		title := "List " + k.Plural + ", a page at a time"
		out = append(out, Example{Title: title, Group: k.Plural, Variables: "{\n  \"first\": 10\n}", Query: fmt.Sprintf(`# %s.
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
`, title, upper, k.Plural, names)})
	}
	if k.Has(descriptor.VerbWatch) {
		title := "Watch " + k.Plural + ": the state, then every change"
		out = append(out, Example{Title: title, Group: k.Plural, Query: fmt.Sprintf(`# %s.
subscription %sChanges($after: String) {
  %sChanges(after: $after, snapshot: true) {
    type
    cursor
    revision
    %s { metadata { %s } }
  }
}
`, title, upper[:1]+k.Singular[1:], k.Singular, k.Singular, names)})
	}
	return out
}

// forAll returns the examples that name no kind.
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

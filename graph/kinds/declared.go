package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Declared is the part of a kind's @resource that cannot be seen in the derived API.
type Declared struct {
	ShortNames, SubKinds []string
	// verbs are the verbs that the kind names. If it is nil, the kind offers all verbs except those in except.
	verbs, except []string
}

// DeclaredIn returns what a catalogue file declares about its kinds, by name. It checks only the syntax of the file.
// name is used in errors.
func DeclaredIn(name, text string) (map[string]Declared, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		return nil, err
	}
	out := map[string]Declared{}
	for _, def := range doc.Definitions {
		d := def.Directives.ForName("resource")
		if d == nil {
			continue
		}
		out[def.Name] = Declared{
			ShortNames: wordsOf(d, "shortNames"),
			SubKinds:   wordsOf(d, "subKinds"),
			verbs:      wordsOf(d, "verbs"),
			except:     wordsOf(d, "exceptVerbs"),
		}
	}
	return out, nil
}

// Offers reports whether the declaration includes a verb. Whether the verb applies to the kind at all is not
// considered.
func (d Declared) Offers(verb descriptor.Verb) bool {
	if d.verbs != nil {
		return slices.Contains(d.verbs, string(verb))
	}
	return !slices.Contains(d.except, string(verb))
}

// wordsOf returns the elements of a list argument. A single value counts as a list of one.
func wordsOf(d *ast.Directive, argument string) (out []string) {
	a := d.Arguments.ForName(argument)
	switch {
	case a == nil || a.Value.Kind == ast.NullValue:
		return nil
	case a.Value.Kind != ast.ListValue:
		return []string{a.Value.Raw}
	}
	for _, e := range a.Value.Children {
		out = append(out, e.Value.Raw)
	}
	return out
}

package generator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/sdl"
)

// inputsOf derives an input from each object type of a spec, by the name of
// the type. Inputs have the fields of their types, no defaults, and descriptions
// that state the limits.
func inputsOf(schema *sdl.Schema) map[string]*ast.Definition {
	out := map[string]*ast.Definition{}
	for _, k := range schema.Kinds {
		addInput(out, schema, k.Spec)
	}
	return out
}

func addInput(out map[string]*ast.Definition, schema *sdl.Schema, s *backend.Shape) {
	if out[s.Name] != nil {
		return
	}
	def := &ast.Definition{Kind: ast.InputObject, Name: sdl.InputType(s.Name)}
	out[s.Name] = def
	if of := definition(schema, s.Name); of != nil {
		def.Description = of.Description
	}
	for _, r := range s.Rules {
		def.Description = paragraph(def.Description, sentence(r.Message))
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		def.Fields = append(def.Fields, &ast.FieldDefinition{
			Name: f.Name, Type: inputType(f), Description: paragraph(f.Description, limits(f)), Directives: deprecated(f.Deprecated),
		})
		if f.Shape != nil {
			addInput(out, schema, f.Shape)
		}
	}
}

func definition(schema *sdl.Schema, name string) *ast.Definition {
	for _, d := range schema.Documents {
		if def := d.Definitions.ForName(name); def != nil {
			return def
		}
	}
	return nil
}

func inputType(f *backend.Field) *ast.Type {
	name := string(f.Type)
	switch f.Type {
	case backend.TypeObject:
		name = sdl.InputType(f.Shape.Name)
	case backend.TypeEnum:
		name = f.Enum.Name
	}
	if f.List {
		return &ast.Type{Elem: ast.NonNullNamedType(name, nil), NonNull: f.Required}
	}
	return &ast.Type{NamedType: name, NonNull: f.Required}
}

func deprecated(reason string) ast.DirectiveList {
	if reason == "" {
		return nil
	}
	return ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{
		{Name: "reason", Value: &ast.Value{Raw: reason, Kind: ast.StringValue}},
	}}}
}

func paragraph(text, more string) string {
	switch {
	case more == "":
		return text
	case text == "":
		return more
	}
	return strings.TrimRight(text, "\n") + "\n\n" + more
}

// sentence makes one of a rule's message.
func sentence(message string) string {
	if message == "" || strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// limits says in words what a field accepts.
func limits(f *backend.Field) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	c := f.Constraint
	if f.List {
		if r := interval(c.MinItems, c.MaxItems); r != "" {
			add("%s elements%s.", r, map[bool]string{true: ", no two equal"}[c.Unique || f.ListType == backend.ListSet])
		}
		if f.ListType == backend.ListMap {
			add("No two elements agree in %s.", strings.Join(f.Keys, ", "))
		}
	}
	each := map[bool]string{true: " each"}[f.List]
	if r := interval(c.MinLength, c.MaxLength); r != "" {
		add("%s characters%s.", r, each)
	}
	if c.Min != nil || c.Max != nil {
		add("%s%s.", between(c.Min, c.Max), each)
	}
	if c.Pattern != "" {
		add("Matches `%s`.", c.Pattern)
	}
	if c.Format != "" {
		add("Format: %s.", c.Format)
	}
	if len(c.In) > 0 {
		add("One of %s.", strings.Join(c.In, ", "))
	}
	if f.Shape != nil && !f.List {
		least, most := f.Shape.MinProperties, f.Shape.MaxProperties
		if r := interval(nonzero(least), nonzero(most)); r != "" {
			add("%s of its fields.", r)
		}
	}
	if f.Default != nil {
		add("Absent means %s.", effective(f))
	}
	if f.Immutable {
		add("Cannot be changed once it is set.")
	}
	return strings.Join(out, " ")
}

func nonzero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// interval says "1 to 255", "Exactly 1", "At most 64" or "At least 1".
func interval(least, most *int) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return "Exactly " + thousands(*least)
	case least != nil && most != nil:
		return thousands(*least) + " to " + thousands(*most)
	case most != nil:
		return "At most " + thousands(*most)
	case least != nil:
		return "At least " + thousands(*least)
	}
	return ""
}

func between(least, most *float64) string {
	number := func(x *float64) string { return strconv.FormatFloat(*x, 'f', -1, 64) }
	switch {
	case least == nil:
		return "At most " + number(most)
	case most == nil:
		return "At least " + number(least)
	}
	return number(least) + " to " + number(most)
}

// thousands writes 1,024.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// effective is the default as the API shows it: of an enum its name.
func effective(f *backend.Field) string {
	switch v := f.Default.(type) {
	case string:
		if f.Enum == nil {
			return strconv.Quote(v)
		}
		for _, e := range f.Enum.Values {
			if e.Stored == v {
				return e.Name
			}
		}
	case json.Number:
		return v.String()
	}
	return fmt.Sprint(f.Default)
}

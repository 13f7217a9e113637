// Package enginetest generates random operations on a schema, and executes operations with a simple reference
// implementation, so that tests can compare the engine with it.
package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Operation is a document with its variables.
type Operation struct {
	Query     string
	Variables map[string]any
}

// Source makes random operations on a schema. Their documents are valid, but some have values that are refused. It is
// not safe for concurrent use.
type Source struct {
	Schema *ast.Schema
	Rand   *rand.Rand
	// Values returns the value of an argument or an input field or, for a list, of an element. path is the path from
	// the root field, such as "input.spec.resource.mtu". If Values is nil or returns false, the value is random.
	Values func(path string, t *ast.Type) (any, bool)
	// Skip reports whether to leave out a field; on is the name of the type that has it. Default: no field is left out.
	Skip func(on, field string) bool
	// Depth is the maximum depth of nested selections. Default 7.
	Depth int
	// Fields is the approximate maximum number of fields in a document. Default 120.
	Fields int

	variables map[string]any
	declared  []string
	fragments []string
	// aliases is the number of aliases so far. Fields with arguments get one, so that they are never merged.
	aliases int
	// budget is the number of fields that may still be added to the document.
	budget int
}

// Next returns a new operation: a query, a mutation or a subscription.
func (s *Source) Next(kind ast.Operation) Operation {
	s.variables = map[string]any{}
	s.declared = nil
	s.fragments = nil
	s.aliases = 0
	s.budget = s.Fields
	if s.budget == 0 {
		s.budget = 120
	}
	root := map[ast.Operation]*ast.Definition{ast.Query: s.Schema.Query, ast.Mutation: s.Schema.Mutation, ast.Subscription: s.Schema.Subscription}[kind]
	var fields []*ast.FieldDefinition
	for _, f := range root.Fields {
		if !strings.HasPrefix(f.Name, "__") && (s.Skip == nil || !s.Skip(root.Name, f.Name)) {
			fields = append(fields, f)
		}
	}
	var b strings.Builder
	n := 1
	if kind != ast.Subscription {
		n += s.Rand.IntN(3)
	}
	for range n {
		f := fields[s.Rand.IntN(len(fields))]
		s.field(&b, root, f, 1)
	}
	if kind == ast.Query && s.Rand.IntN(10) == 0 {
		b.WriteString(" __typename")
	}
	head := string(kind)
	if len(s.declared) > 0 {
		head += "(" + strings.Join(s.declared, ", ") + ")"
	}
	return Operation{Query: head + " {" + b.String() + " }" + strings.Join(s.fragments, ""), Variables: s.variables}
}

// one returns true at random, on average once in n calls.
func (s *Source) one(n int) bool { return s.Rand.IntN(n) == 0 }

// likely decides at random whether to give an argument or input field that can be left out. It includes most names and
// few ids, since most requests identify a resource by its name.
func (s *Source) likely(name string) bool {
	switch name {
	case "name":
		return !s.one(16)
	case "id":
		return s.one(20)
	}
	return s.one(3)
}

func (s *Source) depth() int {
	if s.Depth > 0 {
		return s.Depth
	}
	return 7
}

// field writes a field with its arguments, its directives and the selection below it.
func (s *Source) field(b *strings.Builder, on *ast.Definition, f *ast.FieldDefinition, depth int) {
	if s.budget--; s.budget < 0 && depth > 1 {
		return
	}
	b.WriteByte(' ')
	if len(f.Arguments) > 0 || s.one(8) {
		s.aliases++
		fmt.Fprintf(b, "a%d: ", s.aliases)
	}
	b.WriteString(f.Name)
	var args []string
	for _, a := range f.Arguments {
		if !a.Type.NonNull && !s.likely(a.Name) || a.Type.NonNull && a.DefaultValue != nil && s.one(2) {
			continue
		}
		args = append(args, a.Name+": "+s.argument(a.Name, a.Type))
	}
	if len(args) > 0 {
		b.WriteString("(" + strings.Join(args, ", ") + ")")
	}
	s.directive(b)
	s.below(b, s.Schema.Types[f.Type.Name()], depth)
}

func (s *Source) directive(b *strings.Builder) {
	if !s.one(25) {
		return
	}
	name := []string{"skip", "include"}[s.Rand.IntN(2)]
	truth := s.one(2)
	if s.one(2) {
		fmt.Fprintf(b, " @%s(if: %v)", name, truth)
		return
	}
	fmt.Fprintf(b, " @%s(if: %s)", name, s.variable("Boolean!", truth))
}

func (s *Source) below(b *strings.Builder, def *ast.Definition, depth int) {
	if def.Kind != ast.Object && def.Kind != ast.Interface {
		return
	}
	b.WriteString(" {")
	s.selection(b, def, depth+1)
	b.WriteString(" }")
}

// selection writes some fields of a type, some of them in fragments.
func (s *Source) selection(b *strings.Builder, def *ast.Definition, depth int) {
	var leaves, objects []*ast.FieldDefinition
	for _, f := range def.Fields {
		if strings.HasPrefix(f.Name, "__") || s.Skip != nil && s.Skip(def.Name, f.Name) {
			continue
		}
		if t := s.Schema.Types[f.Type.Name()]; t.Kind == ast.Object || t.Kind == ast.Interface {
			objects = append(objects, f)
		} else {
			leaves = append(leaves, f)
		}
	}
	before := b.Len()
	for range 1 + s.Rand.IntN(3) {
		if len(leaves) > 0 {
			s.field(b, def, leaves[s.Rand.IntN(len(leaves))], depth)
		}
	}
	if depth < s.depth() {
		for range 1 + s.Rand.IntN(3) {
			if len(objects) > 0 {
				s.field(b, def, objects[s.Rand.IntN(len(objects))], depth)
			}
		}
	}
	if s.one(6) {
		b.WriteString(" __typename")
	}
	if depth < s.depth() && s.one(3) {
		s.fragment(b, def, depth)
	}
	if b.Len() == before {
		b.WriteString(" __typename")
	}
}

// fragment writes an inline fragment or a fragment spread. Its type condition is the type def, an interface that def
// implements or, if def is an interface, a type that implements it.
func (s *Source) fragment(b *strings.Builder, def *ast.Definition, depth int) {
	on := []*ast.Definition{def}
	for _, name := range def.Interfaces {
		on = append(on, s.Schema.Types[name])
	}
	if def.Kind == ast.Interface {
		on = append(on, s.Schema.GetPossibleTypes(def)...)
	}
	target := on[s.Rand.IntN(len(on))]
	var inner strings.Builder
	s.selection(&inner, target, depth+1)
	if s.one(2) {
		b.WriteString(" ...")
		if target != def || s.one(2) {
			b.WriteString(" on " + target.Name)
		}
		s.directive(b)
		b.WriteString(" {" + inner.String() + " }")
		return
	}
	name := fmt.Sprintf("F%d", len(s.fragments))
	s.fragments = append(s.fragments, fmt.Sprintf(" fragment %s on %s {%s }", name, target.Name, inner.String()))
	b.WriteString(" ..." + name)
	s.directive(b)
	if s.one(4) {
		b.WriteString(" ..." + name)
	}
}

// argument returns the text of an argument's value: a literal or a variable.
func (s *Source) argument(path string, t *ast.Type) string {
	if s.one(3) {
		v := s.value(path, t, 0)
		if v == nil && t.NonNull {
			v = s.value(path, t, 0)
		}
		return s.variable(t.String(), v)
	}
	return literal(s.value(path, t, 0), s.Schema, t)
}

func (s *Source) variable(t string, v any) string {
	name := fmt.Sprintf("v%d", len(s.declared))
	s.declared = append(s.declared, "$"+name+": "+t)
	if v != nil || s.one(2) || strings.HasSuffix(t, "!") {
		s.variables[name] = v
	}
	return "$" + name
}

// value returns a random value of a type, in the form of decoded JSON; enum values have the type enumValue.
func (s *Source) value(path string, t *ast.Type, depth int) any {
	if !t.NonNull && s.one(12) {
		return nil
	}
	if t.Elem != nil {
		n := s.Rand.IntN(3)
		if depth > 6 {
			n = 0
		}
		out := []any{}
		for range n {
			out = append(out, s.value(path, t.Elem, depth+1))
		}
		return out
	}
	if s.Values != nil {
		if v, ok := s.Values(path, t); ok {
			return v
		}
	}
	def := s.Schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Enum:
		return enumValue(def.EnumValues[s.Rand.IntN(len(def.EnumValues))].Name)
	case ast.InputObject:
		out := map[string]any{}
		for _, f := range def.Fields {
			if !f.Type.NonNull && (depth > 5 || !s.likely(f.Name)) {
				continue
			}
			out[f.Name] = s.value(path+"."+f.Name, f.Type, depth+1)
		}
		return out
	}
	switch t.NamedType {
	case "Int":
		return []any{0, 1, 2, 3, 5, 68, 1500, 9216, -1, 2147483647}[s.Rand.IntN(10)]
	case "SafeInt":
		return []any{0, 7, 9007199254740991, -5}[s.Rand.IntN(4)]
	case "Float":
		return []any{0, 1.5, -2, 1e21, 0.001}[s.Rand.IntN(5)]
	case "Boolean":
		return s.one(2)
	case "Time":
		return []any{"2026-01-01T00:00:00Z", "2030-06-01T12:00:00.5+02:00", "1999-12-31T23:59:59Z"}[s.Rand.IntN(3)]
	}
	return []any{"", "a", "b", "text \"quoted\" <&> \\ \n\t é \U0001F600", "\u2028\u0001", "net-0", "default"}[s.Rand.IntN(7)]
}

// enumValue is the name of an enum value. In a document it is written without quotes.
type enumValue string

// literal returns a value of a type as a literal in a document.
func literal(v any, schema *ast.Schema, t *ast.Type) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case enumValue:
		return string(v)
	case string:
		if def := schema.Types[t.Name()]; def != nil && def.Kind == ast.Enum {
			return v
		}
		return quote(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			elem := t
			if t.Elem != nil {
				elem = t.Elem
			}
			parts[i] = literal(e, schema, elem)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		def := schema.Types[t.Name()]
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		parts := make([]string, len(keys))
		for i, k := range keys {
			ft := t
			if f := def.Fields.ForName(k); f != nil {
				ft = f.Type
			}
			parts[i] = k + ": " + literal(v[k], schema, ft)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// quote returns a string as a literal in a document (GraphQL, October 2021, section 2.9.4).
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7F || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

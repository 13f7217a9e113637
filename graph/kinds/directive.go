package kinds

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// checkDirectives checks the directives in one place against their declarations. It reports unknown, misplaced and
// repeated directives, and wrong arguments.
func (l *loader) checkDirectives(list ast.DirectiveList, at ast.DirectiveLocation) {
	for i, d := range list {
		if d.Name == "deprecated" {
			l.checkDeprecated(d)
			continue
		}
		def := l.directives[d.Name]
		if def == nil {
			l.report(d.Position, "directive @%s is not known; known are %s", d.Name, listed(l.directiveNames()))
			continue
		}
		if !slices.Contains(def.Locations, at) {
			l.report(d.Position, "directive @%s does not go here; it goes on %s", d.Name, locations(def))
			l.malformed = append(l.malformed, d)
			continue
		}
		if !def.IsRepeatable && slices.ContainsFunc(list[:i], func(o *ast.Directive) bool { return o.Name == d.Name }) {
			l.report(d.Position, "directive @%s is here twice", d.Name)
		}
		if !l.checkArguments(d, def) {
			l.malformed = append(l.malformed, d)
		}
	}
}

func (l *loader) checkDeprecated(d *ast.Directive) {
	for _, a := range d.Arguments {
		if a.Name != "reason" || a.Value.Kind != ast.StringValue && a.Value.Kind != ast.BlockValue {
			l.report(a.Position, "directive @deprecated takes reason, a string")
		}
	}
}

func (l *loader) directiveNames() []string {
	names := textsOf(slices.Sorted(maps.Keys(l.directives)), func(name string) string { return "@" + name })
	return append(names, "@deprecated")
}

func locations(def *ast.DirectiveDefinition) string {
	names := map[ast.DirectiveLocation]string{
		ast.LocationObject: "object types", ast.LocationFieldDefinition: "fields", ast.LocationEnumValue: "enum values",
	}
	return strings.Join(textsOf(def.Locations, func(at ast.DirectiveLocation) string { return names[at] }), " and ")
}

func (l *loader) checkArguments(d *ast.Directive, def *ast.DirectiveDefinition) bool {
	ok := true
	bad := func(at *ast.Position, format string, args ...any) {
		l.report(at, "directive @%s: "+format, append([]any{d.Name}, args...)...)
		ok = false
	}
	for i, a := range d.Arguments {
		decl := def.Arguments.ForName(a.Name)
		switch {
		case decl == nil:
			bad(a.Position, "argument %s is not known; known are %s", a.Name, argumentNames(def))
		case slices.ContainsFunc(d.Arguments[:i], func(o *ast.Argument) bool { return o.Name == a.Name }):
			bad(a.Position, "argument %s is here twice", a.Name)
		default:
			if wanted := l.literal(a.Value, decl.Type); wanted != "" {
				bad(a.Position, "argument %s is %s; %s is accepted", a.Name, a.Value, wanted)
			}
		}
	}
	for _, decl := range def.Arguments {
		if decl.Type.NonNull && d.Arguments.ForName(decl.Name) == nil {
			bad(d.Position, "argument %s is missing", decl.Name)
		}
	}
	return ok
}

func argumentNames(def *ast.DirectiveDefinition) listed {
	if len(def.Arguments) == 0 {
		return listed{"none"}
	}
	return textsOf(def.Arguments, func(a *ast.ArgumentDefinition) string { return a.Name })
}

// textsOf returns the texts of the elements of a list.
func textsOf[T any](list []T, text func(T) string) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = text(one)
	}
	return out
}

// literal returns a description of what a type accepts if it does not accept the value; otherwise "".
func (l *loader) literal(v *ast.Value, t *ast.Type) string {
	if t.Elem != nil {
		if v.Kind != ast.ListValue {
			return "a list"
		}
		for _, e := range v.Children {
			if wanted := l.literal(e.Value, t.Elem); wanted != "" {
				return "a list in which each element is " + wanted
			}
		}
		return ""
	}
	wanted, accepted := "", false
	switch t.NamedType {
	case "Literal":
		accepted = true
	case "String":
		wanted, accepted = "a string", v.Kind == ast.StringValue || v.Kind == ast.BlockValue
	case "Boolean":
		wanted, accepted = "true or false", v.Kind == ast.BooleanValue
	case "Int":
		_, err := strconv.ParseInt(v.Raw, 10, 32)
		wanted, accepted = "a whole number of 32 bits", v.Kind == ast.IntValue && err == nil
	case "Float":
		wanted, accepted = "a number", v.Kind == ast.IntValue || v.Kind == ast.FloatValue
	default:
		def := l.enums[t.NamedType]
		wanted, accepted = "one of "+enumNames(def), v.Kind == ast.EnumValue && def.EnumValues.ForName(v.Raw) != nil
	}
	if accepted {
		return ""
	}
	return wanted
}

func enumNames(def *ast.Definition) string {
	return strings.Join(textsOf(def.EnumValues, func(v *ast.EnumValueDefinition) string { return v.Name }), ", ")
}

// directive is a valid directive. All methods except at accept nil, which stands for an absent directive.
type directive struct{ *ast.Directive }

// read returns the directive with a name; nil if there is none or it is malformed.
func (l *loader) read(list ast.DirectiveList, name string) *directive {
	d := list.ForName(name)
	if d == nil || slices.Contains(l.malformed, d) {
		return nil
	}
	return &directive{d}
}

// readAll returns the directives with a name, except malformed ones.
func (l *loader) readAll(list ast.DirectiveList, name string) (out []*directive) {
	for _, d := range list.ForNames(name) {
		if !slices.Contains(l.malformed, d) {
			out = append(out, &directive{d})
		}
	}
	return out
}

// isMalformed reports whether the directive with a name is malformed.
func (l *loader) isMalformed(list ast.DirectiveList, name string) bool {
	d := list.ForName(name)
	return d != nil && slices.Contains(l.malformed, d)
}

// has reports whether the directive has an argument.
func (d *directive) has(arg string) bool { return d != nil && d.Arguments.ForName(arg) != nil }

// at returns the position of an argument, which must be present.
func (d *directive) at(arg string) *ast.Position { return d.Arguments.ForName(arg).Position }

func (d *directive) text(arg string) string {
	if !d.has(arg) {
		return ""
	}
	return d.Arguments.ForName(arg).Value.Raw
}

func (d *directive) texts(arg string) []string {
	if !d.has(arg) {
		return nil
	}
	var out []string
	for _, e := range d.Arguments.ForName(arg).Value.Children {
		out = append(out, e.Value.Raw)
	}
	return out
}

func (d *directive) integer(arg string) *int {
	n, err := strconv.Atoi(d.text(arg))
	if err != nil {
		return nil
	}
	return &n
}

func (d *directive) number(arg string) *float64 {
	x, err := strconv.ParseFloat(d.text(arg), 64)
	if err != nil {
		return nil
	}
	return &x
}

package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// deprecated is the name of the directive for deprecated parts.
const deprecated = "deprecated"

// Missing is a part of a version that the newest API does not have, or has in another form.
type Missing struct {
	// Type is the type with the part. If the part is a field, or an argument of a field, then Field is the name of the
	// field, and Of is the name of the field's type.
	Type, Field, Of string
	// Line is the line of the part in the file of the version.
	Line int
	// What describes the part, and how the newest API differs.
	What string
}

// View returns the newest API reduced to the version, and the parts of the version that the newest API does not have.
//
// The view has only types, fields, arguments and values that the version has, in the order of the version's file. If
// the version has all of a type, the type is shared with the newest API. An output that was nullable in the version
// stays nullable. Descriptions come from the newest API.
func (v *Version) View(newest *ast.Schema) (*ast.Schema, []Missing) {
	doc := v.document()
	p := &pruner{newest: newest, view: &ast.Schema{
		Types:         map[string]*ast.Definition{},
		Directives:    map[string]*ast.DirectiveDefinition{},
		PossibleTypes: map[string][]*ast.Definition{},
		Implements:    map[string][]*ast.Definition{},
		Description:   newest.Description,
	}}
	for name, d := range newest.Directives {
		if d.Position != nil && d.Position.Src != nil && d.Position.Src.BuiltIn ||
			doc.Directives.ForName(name) != nil {
			p.view.Directives[name] = d
		}
	}
	for name, def := range newest.Types {
		if def.BuiltIn {
			p.view.Types[name] = def
		}
	}
	for _, def := range doc.Definitions {
		p.shift = doc.shifts[def]
		if is := newest.Types[def.Name]; is == nil || is.Kind != def.Kind {
			p.miss(def.Name, def.Position, "type %s is gone", def.Name)
		} else {
			p.view.Types[def.Name] = p.definition(def, is)
		}
	}
	p.roots()
	p.implementations()
	return p.view, p.missing
}

// pruner is the state of [Version.View].
type pruner struct {
	newest, view *ast.Schema
	missing      []Missing
	// shift is the number to add to the line numbers of the definition that is being reduced.
	shift int
}

// miss records a missing type, or a missing part of a type that does not belong to a field.
func (p *pruner) miss(typ string, at *ast.Position, format string, args ...any) {
	p.missing = append(p.missing, Missing{Type: typ, Line: lineOf(at) + p.shift, What: fmt.Sprintf(format, args...)})
}

// missField records a missing field, or a missing part of a field.
func (p *pruner) missField(of *ast.Definition, f *ast.FieldDefinition, format string, args ...any) {
	p.missing = append(p.missing, Missing{
		Type:  of.Name,
		Field: f.Name,
		Of:    f.Type.Name(),
		Line:  lineOf(f.Position) + p.shift,
		What:  of.Name + "." + f.Name + fmt.Sprintf(format, args...),
	})
}

func lineOf(at *ast.Position) int {
	if at == nil {
		return 1
	}
	return at.Line
}

// roots sets the root types of the view.
func (p *pruner) roots() {
	p.view.Query = p.view.Types["Query"]
	p.view.Mutation = p.view.Types["Mutation"]
	p.view.Subscription = p.view.Types["Subscription"]
}

// implementations sets which types of the view implement which interfaces.
func (p *pruner) implementations() {
	keep := func(from map[string][]*ast.Definition, to map[string][]*ast.Definition) {
		for name, defs := range from {
			if p.view.Types[name] == nil {
				continue
			}
			for _, def := range defs {
				if kept := p.view.Types[def.Name]; kept != nil {
					to[name] = append(to[name], kept)
				}
			}
		}
	}
	keep(p.newest.PossibleTypes, p.view.PossibleTypes)
	keep(p.newest.Implements, p.view.Implements)
}

// definition returns a type of the newest API, reduced to what the version has. If the version has everything, it
// returns the type itself.
func (p *pruner) definition(was, is *ast.Definition) *ast.Definition {
	if sameDefinition(was, is) {
		return is
	}
	out := *is
	out.Interfaces = slices.Clone(was.Interfaces)
	for _, name := range was.Interfaces {
		if !slices.Contains(is.Interfaces, name) {
			p.miss(was.Name, was.Position, "type %s does not implement %s any more", was.Name, name)
		}
	}
	out.Fields = nil
	for _, f := range was.Fields {
		if now := is.Fields.ForName(f.Name); now == nil {
			p.missField(was, f, " is gone")
		} else {
			out.Fields = append(out.Fields, p.field(was, f, now))
		}
	}
	if was.Kind == ast.InputObject {
		p.required(was, is)
	}
	for _, f := range is.Fields {
		if strings.HasPrefix(f.Name, "__") { // of introspection
			out.Fields = append(out.Fields, f)
		}
	}
	out.EnumValues = nil
	for _, value := range was.EnumValues {
		now := is.EnumValues.ForName(value.Name)
		if now == nil {
			p.miss(was.Name, value.Position, "%s.%s is gone", was.Name, value.Name)
			continue
		}
		kept := *now
		kept.Directives = frozenDeprecation(value.Directives, now.Directives)
		out.EnumValues = append(out.EnumValues, &kept)
	}
	return &out
}

// required records each required field in the newest API's input type that the version does not have.
func (p *pruner) required(was, is *ast.Definition) {
	for _, f := range is.Fields {
		if was.Fields.ForName(f.Name) == nil && f.Type.NonNull && f.DefaultValue == nil {
			p.miss(was.Name, was.Position, "%s.%s is new and required", was.Name, f.Name)
		}
	}
}

// field returns a field of the newest API, in the form that it has in the version.
func (p *pruner) field(of *ast.Definition, was, is *ast.FieldDefinition) *ast.FieldDefinition {
	fits, direction := covers(was.Type, is.Type), "in answers"
	if of.Kind == ast.InputObject {
		fits, direction = covers(is.Type, was.Type), "as input"
		if !sameValue(was.DefaultValue, is.DefaultValue) {
			p.missField(
				of,
				was,
				" had the default %s and has %s",
				valueText(was.DefaultValue),
				valueText(is.DefaultValue),
			)
		}
	}
	if !fits {
		p.missField(of, was, " was %s and is %s, which is not the same %s", was.Type, is.Type, direction)
	}
	out := *is
	out.Type = was.Type
	out.Directives = frozenDeprecation(was.Directives, is.Directives)
	out.Arguments = nil
	for _, a := range was.Arguments {
		now := is.Arguments.ForName(a.Name)
		if now == nil {
			p.missField(of, was, "(%s:) is gone", a.Name)
			continue
		}
		if !covers(now.Type, a.Type) {
			p.missField(
				of,
				was,
				"(%s:) was %s and is %s, which does not take the same values",
				a.Name,
				a.Type,
				now.Type,
			)
		}
		if !sameValue(a.DefaultValue, now.DefaultValue) {
			p.missField(of, was, "(%s:) had the default %s and has %s",
				a.Name, valueText(a.DefaultValue), valueText(now.DefaultValue))
		}
		kept := *now
		kept.Type = a.Type
		kept.Directives = frozenDeprecation(a.Directives, now.Directives)
		out.Arguments = append(out.Arguments, &kept)
	}
	for _, a := range is.Arguments {
		if was.Arguments.ForName(a.Name) == nil && a.Type.NonNull && a.DefaultValue == nil {
			p.missField(of, was, "(%s:) is new and required", a.Name)
		}
	}
	return &out
}

// covers reports whether each value of the type narrow is also a value of the type wide.
func covers(wide, narrow *ast.Type) bool {
	if wide.NonNull && !narrow.NonNull {
		return false
	}
	if wide.Elem == nil || narrow.Elem == nil {
		return wide.Elem == nil && narrow.Elem == nil && wide.NamedType == narrow.NamedType
	}
	return covers(wide.Elem, narrow.Elem)
}

func sameValue(a, b *ast.Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.String() == b.String()
}

// sameDefinition reports whether two types are equal, not considering descriptions.
func sameDefinition(a, b *ast.Definition) bool {
	return slices.Equal(a.Interfaces, b.Interfaces) && slices.EqualFunc(a.Fields, b.Fields, sameField) &&
		slices.EqualFunc(a.EnumValues, b.EnumValues, func(a, b *ast.EnumValueDefinition) bool {
			return a.Name == b.Name && sameDeprecation(a.Directives, b.Directives)
		})
}

func sameField(a, b *ast.FieldDefinition) bool {
	return a.Name == b.Name && sameType(a.Type, b.Type) && sameDeprecation(a.Directives, b.Directives) &&
		sameValue(a.DefaultValue, b.DefaultValue) &&
		slices.EqualFunc(a.Arguments, b.Arguments, func(a, b *ast.ArgumentDefinition) bool {
			return a.Name == b.Name && sameType(a.Type, b.Type) && sameValue(a.DefaultValue, b.DefaultValue) &&
				sameDeprecation(a.Directives, b.Directives)
		})
}

func sameType(a, b *ast.Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.NonNull == b.NonNull && a.NamedType == b.NamedType && sameType(a.Elem, b.Elem)
}

func sameDeprecation(a, b ast.DirectiveList) bool {
	was, is := a.ForName(deprecated), b.ForName(deprecated)
	if was == nil || is == nil {
		return was == is
	}
	return reasonOf(was) == reasonOf(is)
}

func valueText(v *ast.Value) string {
	if v == nil {
		return "none"
	}
	return v.String()
}

// frozenDeprecation returns the directives of the newest API, but with @deprecated only if the version has it, in the
// form of the version.
func frozenDeprecation(was, is ast.DirectiveList) (out ast.DirectiveList) {
	for _, d := range is {
		if d.Name != deprecated {
			out = append(out, d)
		}
	}
	if d := was.ForName(deprecated); d != nil {
		frozen := *d
		if now := is.ForName(deprecated); now != nil {
			frozen.Definition = now.Definition
		}
		out = append(out, &frozen)
	}
	return out
}

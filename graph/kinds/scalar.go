package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// A scalar declared by an author is a String with a constraint that several fields share. In the API and in the rest of
// this package these fields are Strings.

// expandScalars removes the authors' scalars from the files, and indexes the other definitions. Fields with such a
// scalar become Strings with its constraint.
func (l *loader) expandScalars(docs []Document) {
	constraints := map[string]*directive{}
	for _, doc := range docs {
		doc.Definitions = slices.DeleteFunc(doc.Definitions, func(def *ast.Definition) bool {
			if def.Kind == ast.Scalar {
				l.scalar(def, constraints)
			}
			return def.Kind == ast.Scalar
		})
	}
	l.index(docs)
	for _, def := range l.scalars {
		if other := l.types[def.Name]; other != nil {
			l.report(
				def.Position,
				"scalar %s: a type has the name, at %s:%d",
				def.Name,
				own(other.Position.Src.Name),
				other.Position.Line,
			)
		} else if why := l.reservedType(def.Name); why != "" {
			l.report(def.Position, "scalar %s: the name is reserved: %s", def.Name, why)
		} else {
			continue
		}
		delete(constraints, def.Name)
	}
	for _, doc := range docs {
		for _, def := range doc.Definitions {
			for _, f := range def.Fields {
				if d, ok := constraints[f.Type.Name()]; ok && def.Kind == ast.Object {
					l.expand(def.Name+"."+f.Name, f, d)
				}
			}
		}
	}
}

// scalar checks a scalar, and adds its constraint to constraints; nil if the constraint is missing or not valid.
func (l *loader) scalar(def *ast.Definition, constraints map[string]*directive) {
	l.scalars = append(l.scalars, def)
	if _, twice := constraints[def.Name]; twice {
		l.report(def.Position, "scalar %s is declared twice", def.Name)
		return
	}
	constraints[def.Name] = nil
	l.checkDirectives(def.Directives, ast.LocationScalar)
	d := l.read(def.Directives, "constraint")
	if d == nil {
		if !l.isMalformed(def.Directives, "constraint") {
			l.report(def.Position, "scalar %s: a scalar is a String with a constraint: add @constraint(maxLength: ...)", def.Name)
		}
		return
	}
	constraints[def.Name] = d
	for _, a := range d.Arguments {
		if !slices.Contains(textArguments(), a.Name) {
			l.report(a.Position, "scalar %s: @constraint(%s) is not for a String", def.Name, a.Name)
		}
	}
}

// expand makes a field with a scalar a String with the constraint d of the scalar, which is nil if it was not valid. A
// constraint on the field itself may only be narrower.
func (l *loader) expand(where string, f *ast.FieldDefinition, d *directive) {
	name := f.Type.Name()
	innermost := f.Type
	for innermost.Elem != nil {
		innermost = innermost.Elem
	}
	innermost.NamedType = "String"
	field := f.Directives.ForName("constraint")
	if field == nil {
		field = &ast.Directive{Name: "constraint", Position: f.Position}
		f.Directives = append(f.Directives, field)
	}
	if d == nil {
		l.malformed = append(l.malformed, field)
		return
	}
	narrower := &directive{field}
	for _, a := range d.Arguments {
		if !narrower.has(a.Name) {
			field.Arguments = append(field.Arguments, a)
			l.ofScalars[a] = true
			continue
		}
		wider := false
		was, is := d.integer(a.Name), narrower.integer(a.Name)
		switch a.Name {
		case "minLength":
			wider = was != nil && is != nil && *is < *was
		case "maxLength":
			wider = was != nil && is != nil && *is > *was
		case "in":
			wider = slices.ContainsFunc(narrower.texts("in"), func(text string) bool { return !slices.Contains(d.texts("in"), text) })
		default:
			wider = narrower.text(a.Name) != d.text(a.Name)
		}
		if wider {
			l.report(narrower.at(a.Name), "%s: %s may only narrow the %s of scalar %s", where, a.Name, a.Name, name)
		}
	}
}

package kinds

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// mapEntry is the type of the elements of a map in the API.
const mapEntry = "MapEntry"

// mapping reads a map of strings. It returns false if the field is not a map.
func (l *loader) mapping(out *descriptor.Field, f *ast.FieldDefinition, where string, p part) bool {
	d := l.read(f.Directives, "map")
	if out.Type != descriptor.TypeMap {
		if d != nil {
			l.report(d.Position, "%s: @map is for fields of type [%s!]", where, mapEntry)
		}
		return false
	}
	if !out.List {
		l.report(f.Position, "%s: a map is written [%s!]", where, mapEntry)
	}
	out.List = false // it is stored as one object
	out.Immutable = p == inSpec && l.read(f.Directives, "immutable") != nil
	for _, name := range []string{"list", "default", "ref", "filterable", "sortable"} {
		if other := f.Directives.ForName(name); other != nil {
			l.report(other.Position, "%s: @%s is not for maps", where, name)
		}
	}
	if p == inStatus && out.Required {
		l.report(f.Position, "%s: fields of a status are nullable: a controller can leave out any of them", where)
	}
	if d == nil {
		if f.Directives.ForName("map") == nil {
			l.report(f.Position, "%s: a field of type [%s!] is a map of strings: add @map", where, mapEntry)
		}
		return true
	}
	bounds := l.read(f.Directives, "constraint")
	if bounds != nil {
		l.mapLimits(out, bounds, where)
	}
	if p == inStatus {
		out.Constraint = maximaOf(out.Constraint)
		return true
	}
	for _, arg := range []string{"maxProperties", "maxLength", "keyMaxLength"} {
		if (bounds == nil || !bounds.has(arg)) && !l.isMalformed(f.Directives, "constraint") {
			l.report(f.Position, "%s: a map in a spec has a maximum: add @constraint(%s: ...)", where, arg)
		}
	}
	return true
}

func (l *loader) mapLimits(out *descriptor.Field, d *directive, where string) {
	l.restrict(
		d,
		where,
		slices.Concat([]string{"in"}, numberArguments(), listArguments()),
		false,
		"other fields than maps",
	)
	out.Constraint = descriptor.Constraint{
		MinItems:     d.integer("minProperties"),
		MaxItems:     d.integer("maxProperties"),
		MinLength:    d.integer("minLength"),
		MaxLength:    d.integer("maxLength"),
		Pattern:      d.text("pattern"),
		Format:       descriptor.Format(d.text("format")),
		KeyMinLength: d.integer("keyMinLength"),
		KeyMaxLength: d.integer("keyMaxLength"),
		KeyPattern:   d.text("keyPattern"),
	}
	l.bounds(d, where, "minProperties", "maxProperties")
	l.bounds(d, where, "minLength", "maxLength")
	l.bounds(d, where, "keyMinLength", "keyMaxLength")
	l.expression(d, where, "pattern")
	l.expression(d, where, "keyPattern")
	l.format(&out.Constraint, d, where)
}

// tooDear returns the message about a pattern with too many instructions; n is their number.
func tooDear(n int) string {
	return fmt.Sprintf("has a program of %d instructions, at most %d are accepted; repeat less in braces, and bound the length by maxLength", n, descriptor.MaxPattern)
}

// expression reports a text that is not an RE2 expression, or that takes too long to match.
func (l *loader) expression(d *directive, where, arg string) {
	if !d.has(arg) {
		return
	}
	if _, err := regexp.Compile(d.text(arg)); err != nil {
		l.report(d.at(arg), "%s: %s is no RE2 expression: %v", where, arg, err)
	} else if n, err := descriptor.PatternSize(d.text(arg)); err != nil || n > descriptor.MaxPattern {
		l.report(d.at(arg), "%s: %s %s", where, arg, tooDear(n))
	}
}

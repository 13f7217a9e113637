package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The arguments of @constraint, grouped by the values to which they apply.
func textArguments() []string {
	return []string{"minLength", "maxLength", "pattern", "format", "in"}
}
func numberArguments() []string   { return []string{"min", "max"} }
func listArguments() []string     { return []string{"minItems", "maxItems", "unique"} }
func propertyArguments() []string { return []string{"minProperties", "maxProperties"} }
func keyArguments() []string      { return []string{"keyMinLength", "keyMaxLength", "keyPattern"} }

func formats() []descriptor.Format {
	return []descriptor.Format{
		descriptor.FormatUUID,
		descriptor.FormatDuration,
		descriptor.FormatDateTime,
		descriptor.FormatName,
		descriptor.FormatCIDR,
		descriptor.FormatBase64,
	}
}

// constraint reads @constraint on a field of a spec. It reports a string or list without a maximum.
func (l *loader) constraint(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	d := l.read(f.Directives, "constraint")
	if d != nil {
		l.applicable(out, d, where)
		out.Constraint = descriptor.Constraint{
			MinLength: d.integer("minLength"), MaxLength: d.integer("maxLength"),
			Pattern: d.text("pattern"), Format: descriptor.Format(d.text("format")),
			Min: d.number("min"), Max: d.number("max"), In: d.texts("in"),
			MinItems: d.integer("minItems"), MaxItems: d.integer("maxItems"), Unique: d.text("unique") == "true",
		}
		l.sound(&out.Constraint, d, where)
		if out.Shape != nil && (d.has("minProperties") || d.has("maxProperties")) {
			l.properties(out.Shape, d, where)
		}
	}
	if l.isMalformed(f.Directives, "constraint") {
		return // its limits could not be read
	}
	l.nameLimits(out, f, where)
	if out.Type == descriptor.TypeString && !l.isMalformed(f.Directives, "ref") && out.Constraint.MaxLength == nil &&
		len(out.Constraint.In) == 0 {
		l.report(f.Position, "%s: a String in a spec has a maximum: add @constraint(maxLength: ...) or @constraint(in: [...])", where)
	}
	if out.List && out.Constraint.MaxItems == nil {
		l.report(f.Position, "%s: a list in a spec has a maximum: add @constraint(maxItems: ...)", where)
	}
}

// applicable reports arguments that do not apply to the type of the field.
func (l *loader) applicable(out *descriptor.Field, d *directive, where string) {
	if out.Type == "" {
		return // the type could not be read
	}
	numeric := slices.Contains(
		[]descriptor.FieldType{descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat},
		out.Type,
	)
	l.restrict(d, where, textArguments(), out.Type == descriptor.TypeString, "String")
	l.restrict(d, where, numberArguments(), numeric, "Int, SafeInt and Float")
	l.restrict(d, where, listArguments(), out.List, "lists")
	isObject := out.Type == descriptor.TypeObject && !out.List
	l.restrict(d, where, propertyArguments(), isObject, "object types, maps and fields of an object type")
	l.restrict(d, where, keyArguments(), false, "maps")
}

// onlyProperties reports arguments on a type that are only allowed on fields.
func (l *loader) onlyProperties(d *directive, where string) {
	for _, arg := range slices.Concat(textArguments(), numberArguments(), listArguments(), keyArguments()) {
		if d.has(arg) {
			l.report(d.at(arg), "%s: @constraint(%s) is for fields", where, arg)
		}
	}
}

func (l *loader) restrict(d *directive, where string, arguments []string, allowed bool, to string) {
	for _, arg := range arguments {
		if d.has(arg) && !allowed {
			l.report(d.at(arg), "%s: @constraint(%s) is for %s", where, arg, to)
		}
	}
}

// sound reports limits that contradict each other, and patterns and formats that are not valid.
func (l *loader) sound(c *descriptor.Constraint, d *directive, where string) {
	l.bounds(d, where, "minLength", "maxLength")
	l.bounds(d, where, "minItems", "maxItems")
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		l.report(d.at("min"), "%s: min is over max", where)
	}
	l.expression(d, where, "pattern")
	l.format(c, d, where)
	if d.has("in") && len(c.In) == 0 {
		l.report(d.at("in"), "%s: in accepts nothing", where)
	}
	for i, v := range c.In {
		if slices.Contains(c.In[:i], v) {
			l.report(d.at("in"), "%s: in names %q twice", where, v)
		}
	}
}

// format reports an unknown format.
func (l *loader) format(c *descriptor.Constraint, d *directive, where string) {
	if !d.has("format") || slices.Contains(formats(), c.Format) {
		return
	}
	known := textsOf(formats(), func(f descriptor.Format) string { return string(f) })
	l.report(d.at("format"), "%s: format %q is not known; known are %s", where, c.Format, listed(known))
}

// nameLimits sets the limits of a field with @ref, whose values are names of resources.
func (l *loader) nameLimits(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	if l.read(f.Directives, "ref") == nil || out.Type != descriptor.TypeString {
		return
	}
	c := &out.Constraint
	switch {
	case c.MaxLength == nil && len(c.In) == 0:
		c.MaxLength = new(maxName)
	case c.MaxLength != nil && *c.MaxLength > maxName:
		l.report(f.Position, "%s: a name has at most %d characters; maxLength is %d", where, maxName, *c.MaxLength)
	}
	if c.MinLength == nil || *c.MinLength == 0 {
		c.MinLength = new(1)
	}
	if c.Format != "" && c.Format != descriptor.FormatName && slices.Contains(formats(), c.Format) {
		l.report(f.Position, "%s: what @ref holds has format name; format is %s", where, c.Format)
	}
	c.Format = descriptor.FormatName
}

// bounds checks the minimum and maximum of a count: neither may be negative, the maximum must not be 0, and the minimum
// must not exceed the maximum.
func (l *loader) bounds(d *directive, where, low, high string) {
	least, most := d.integer(low), d.integer(high)
	for arg, n := range map[string]*int{low: least, high: most} {
		if n != nil && *n < 0 {
			l.report(d.at(arg), "%s: %s is negative", where, arg)
		}
	}
	switch {
	case most != nil && *most == 0:
		l.report(d.at(high), "%s: %s is 0: nothing could be set", where, high)
	case least != nil && most != nil && *least > *most:
		l.report(d.at(low), "%s: %s is over %s", where, low, high)
	}
}

// properties reads the limits on how many fields of a shape are set.
func (l *loader) properties(s *descriptor.Shape, d *directive, where string) {
	if d == nil {
		return
	}
	l.bounds(d, where, "minProperties", "maxProperties")
	if n := d.integer("minProperties"); n != nil {
		s.MinProperties = *n
	}
	if n := d.integer("maxProperties"); n != nil {
		s.MaxProperties = *n
	}
	if s.MinProperties > len(s.Fields) {
		l.report(
			d.Position,
			"%s: minProperties is %d, and %s has %d fields",
			where,
			s.MinProperties,
			s.Name,
			len(s.Fields),
		)
	}
}

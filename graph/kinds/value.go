package kinds

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// maxSafeInteger is the greatest SafeInt. All readers of JSON keep it exact.
const maxSafeInteger = 1<<53 - 1

// fieldDefault reads @default, and sets the default to its stored form: a string, a bool or a json.Number.
func (l *loader) fieldDefault(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	d := l.read(f.Directives, "default")
	if d == nil {
		return
	}
	switch {
	case out.List || out.Type == descriptor.TypeObject:
		l.report(d.Position, "%s: @default is for scalars and enums", where)
		return
	case out.Type == "":
		return
	}
	v := d.Arguments.ForName("value").Value
	stored, accepted := storedForm(out, v)
	if accepted != "" {
		l.report(d.at("value"), "%s: default %s: %s is accepted", where, v, accepted)
		return
	}
	out.Default = stored
	l.defaultWithin(out, d, where)
}

// storedForm returns the stored form of a literal. If the field does not accept the literal, accepted describes what it
// accepts.
func storedForm(f *descriptor.Field, v *ast.Value) (stored any, accepted string) {
	switch f.Type {
	case descriptor.TypeString:
		if v.Kind == ast.StringValue || v.Kind == ast.BlockValue {
			return v.Raw, ""
		}
		return nil, "a string"
	case descriptor.TypeTime:
		if t, err := descriptor.ParseTime(v.Raw); err == nil && v.Kind == ast.StringValue {
			return descriptor.FormatTime(t), ""
		}
		return nil, "a time like \"2026-01-31T12:00:00Z\""
	case descriptor.TypeBoolean:
		if v.Kind == ast.BooleanValue {
			return v.Raw == "true", ""
		}
		return nil, "true or false"
	case descriptor.TypeEnum:
		for _, e := range f.Enum.Values {
			if v.Kind == ast.EnumValue && v.Raw == e.Name {
				return e.Stored, ""
			}
		}
		return nil, "one of " + strings.Join(textsOf(f.Enum.Values, func(e descriptor.EnumValue) string { return e.Name }), ", ")
	case descriptor.TypeFloat:
		if v.Kind == ast.IntValue || v.Kind == ast.FloatValue {
			return json.Number(v.Raw), ""
		}
		return nil, "a number"
	}
	limit := int64(maxSafeInteger)
	if f.Type == descriptor.TypeInt {
		limit = math.MaxInt32
	}
	if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil && v.Kind == ast.IntValue && n >= -limit && n <= limit {
		return json.Number(v.Raw), ""
	}
	return nil, "a whole number within +-" + strconv.FormatInt(limit, 10)
}

// defaultWithin reports a default that violates the constraint of its field.
func (l *loader) defaultWithin(f *descriptor.Field, d *directive, where string) {
	c, at := f.Constraint, d.at("value")
	switch v := f.Default.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		pattern, err := regexp.Compile(c.Pattern)
		breaks := c.MinLength != nil && n < *c.MinLength ||
			c.MaxLength != nil && n > *c.MaxLength ||
			len(c.In) > 0 && !slices.Contains(c.In, v) ||
			err == nil && !pattern.MatchString(v) ||
			c.Format == descriptor.FormatName && !nameForm.MatchString(v)
		if f.Type == descriptor.TypeString && breaks {
			l.report(at, "%s: default %q breaks the constraint of the field", where, v)
		}
	case json.Number:
		x, err := v.Float64()
		if err != nil || c.Min != nil && x < *c.Min || c.Max != nil && x > *c.Max {
			l.report(at, "%s: default %s breaks the constraint of the field", where, v)
		}
	}
}

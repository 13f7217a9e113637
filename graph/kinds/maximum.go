package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Values in a status are checked only for their size.

// maxima reads the maxima in @constraint on a status field. Its other arguments apply where a spec uses the same type:
// see [loader.maximaAlone].
func (l *loader) maxima(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	d := l.read(f.Directives, "constraint")
	if d == nil {
		return
	}
	if out.Type != "" {
		l.restrict(d, where, []string{"maxLength"}, out.Type == descriptor.TypeString, "String")
		l.restrict(d, where, []string{"maxItems"}, out.List, "lists")
	}
	l.bounds(d, where, "minLength", "maxLength")
	l.bounds(d, where, "minItems", "maxItems")
	out.Constraint = descriptor.Constraint{MaxLength: d.integer("maxLength"), MaxItems: d.integer("maxItems")}
}

// maximaOf returns the maxima in a constraint, without its other limits.
func maximaOf(c descriptor.Constraint) descriptor.Constraint {
	return descriptor.Constraint{MaxItems: c.MaxItems, MaxLength: c.MaxLength, KeyMaxLength: c.KeyMaxLength}
}

// maximaAlone reports arguments of @constraint other than maxima in a type that only statuses use.
func (l *loader) maximaAlone(def *ast.Definition) {
	for _, f := range def.Fields {
		d := l.read(f.Directives, "constraint")
		if d == nil {
			continue
		}
		accepted := []string{"maxLength", "maxItems"}
		if f.Type.Name() == mapEntry {
			accepted = []string{"maxProperties", "maxLength", "keyMaxLength"}
		}
		var others []string
		for _, a := range d.Arguments {
			if !slices.Contains(accepted, a.Name) && !l.ofScalars[a] {
				others = append(others, a.Name)
			}
		}
		if len(others) > 0 || len(d.Arguments) == 0 {
			l.report(d.Position, "%s.%s: @constraint(%s) has no effect: a status is checked for its size alone; %s are accepted", def.Name, f.Name, listed(others), listed(accepted))
		}
	}
}

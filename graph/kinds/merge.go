package kinds

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// merges checks @mergeInto, which makes the entries of one map be stored in another map. Both maps must be write-only,
// so that readers cannot see the difference.
func (l *loader) merges(s *descriptor.Shape, def *ast.Definition) {
	for i, f := range def.Fields {
		d := l.read(f.Directives, "mergeInto")
		if d == nil || i >= len(s.Fields) {
			continue
		}
		where := def.Name + "." + f.Name
		from := &s.Fields[i]
		into := s.Field(d.text("field"))
		if from.Type != descriptor.TypeMap {
			l.report(d.Position, "%s: @mergeInto is for maps, of type [%s!]", where, mapEntry)
			continue
		}
		switch {
		case into == nil:
			l.report(d.at("field"), "%s: %s is not a field of %s", where, d.text("field"), def.Name)
			continue
		case into == from:
			l.report(d.at("field"), "%s: a map does not go into itself", where)
			continue
		case into.Type != descriptor.TypeMap:
			l.report(
				d.at("field"),
				"%s: %s is no map; entries go into a field of type [%s!]",
				where,
				into.Name,
				mapEntry,
			)
		case into.MergeInto != "":
			l.report(d.at("field"), "%s: %s is not kept itself, it goes into %s", where, into.Name, into.MergeInto)
		}
		if !from.WriteOnly || !into.WriteOnly {
			l.report(d.Position, "%s: @mergeInto is for maps that are both @writeOnly: what is shown equals what was sent", where)
		}
		if from.Constraint.Format == descriptor.FormatBase64 && into.Constraint.Format != descriptor.FormatBase64 {
			l.report(d.Position, "%s: its values are base64 and those of %s are not; a merge encodes and does not decode", where, into.Name)
		}
	}
}

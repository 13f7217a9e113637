package kinds

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// writeOnly checks @writeOnly on the fields of all kinds. Such a field must not be in a list, nothing visible may be
// derived from it, and each type needs a field that is visible.
func (l *loader) writeOnly(kinds []Kind) {
	for i := range kinds {
		k := &kinds[i]
		var hidden []string // paths
		l.places(k, k.Spec, &place{path: "spec"}, func(p *place) {
			d := l.read(p.ast.Directives, "writeOnly")
			if d != nil {
				hidden = append(hidden, p.path)
				l.writeOnlyField(p, d)
			}
			if slices.ContainsFunc(hidden, func(path string) bool {
				return p.path == path || strings.HasPrefix(p.path, path+".")
			}) {
				l.nothingShown(p)
			}
		})
		l.somethingShown(k.Spec)
		if k.Sensitive && len(hidden) == 0 {
			d := l.read(k.Definition.Directives, "resource")
			l.report(d.at("sensitive"), "kind %s is sensitive and has no @writeOnly field: these are what is stored apart; put @writeOnly on the fields that hold secrets", k.Name)
		}
	}
}

// writeOnlyField reports @writeOnly where it is not allowed.
func (l *loader) writeOnlyField(p *place, d *directive) {
	where := p.owner.Name + "." + p.ast.Name
	if p.kind.Service != "" {
		l.report(d.Position, "%s: @writeOnly of kind %s, which a service owns: the gateway could not keep the value when an "+
			"update leaves it out, since it never sees it", where, p.kind.Name)
	}
	if l.shapes[p.owner].status {
		l.report(d.Position, "%s: type %s is part of a status too; @writeOnly is for specs", where, p.owner.Name)
	}
	if p.listed {
		l.report(d.Position, "%s: @writeOnly inside a list: nobody could say which element keeps its value; put it on the list", where)
	}
	if p.field.Required {
		l.report(d.Position, "%s: a @writeOnly field is not required: an update leaves it out to keep it; a rule can ask for it: has(self.%s)", where, p.ast.Name)
	}
	if other := p.ast.Directives.ForName("immutable"); other != nil {
		l.report(other.Position, "%s: @immutable of a @writeOnly field would tell who guesses its value", where)
	}
	if other := p.ast.Directives.ForName("default"); other != nil {
		l.report(other.Position, "%s: a @writeOnly field has no @default: the API shows defaults to everybody", where)
	}
}

// nothingShown reports directives that would reveal the value of a @writeOnly field, or of a field inside it.
func (l *loader) nothingShown(p *place) {
	where := p.owner.Name + "." + p.ast.Name
	for name, why := range map[string]string{
		"ref":        "the resource that it names would be shown",
		"filterable": "filters would tell its value", "sortable": "orders would tell its value",
	} {
		if other := p.ast.Directives.ForName(name); other != nil {
			l.report(
				other.Position,
				"%s: @%s of what is @writeOnly (%s of kind %s): %s",
				where,
				name,
				p.path,
				p.kind.Name,
				why,
			)
		}
	}
}

// somethingShown reports object types all of whose fields are @writeOnly.
func (l *loader) somethingShown(s *descriptor.Shape) {
	if s == nil || len(s.Fields) == 0 {
		return // it has been reported
	}
	if !slices.ContainsFunc(s.Fields, func(f descriptor.Field) bool { return !f.WriteOnly }) {
		l.report(l.types[s.Name].Position, "type %s: all its fields are @writeOnly and nothing is left to show; put @writeOnly on the field of this type, or another field into it", s.Name)
	}
	for i := range s.Fields {
		if f := &s.Fields[i]; f.Shape != nil && !f.WriteOnly {
			l.somethingShown(f.Shape)
		}
	}
}

// shown records which object types of specs and statuses, and which of their fields, can be in answers.
type shown struct {
	// types can be in answers. hidden are the types inside @writeOnly fields.
	types, hidden map[string]bool
	// fields are the @writeOnly fields, as "Type.field".
	fields map[string]bool
}

func shownOf(kinds []Kind) *shown {
	s := &shown{types: map[string]bool{}, hidden: map[string]bool{}, fields: map[string]bool{}}
	for i := range kinds {
		s.add(kinds[i].Spec, false)
		s.add(kinds[i].Status, false)
	}
	return s
}

func (s *shown) add(shape *descriptor.Shape, below bool) {
	if shape == nil {
		return
	}
	set := s.types
	if below {
		set = s.hidden
	}
	if set[shape.Name] {
		return
	}
	set[shape.Name] = true
	for i := range shape.Fields {
		f := &shape.Fields[i]
		if f.WriteOnly {
			s.fields[shape.Name+"."+f.InAPI()] = true
		}
		s.add(f.Shape, below || f.WriteOnly)
	}
}

// output returns a copy of an author's type without fields that are never in answers; nil if the type itself is never
// in one.
func (s *shown) output(def *ast.Definition) *ast.Definition {
	if s.hidden[def.Name] && !s.types[def.Name] {
		return nil
	}
	out := *def
	out.Fields = slices.DeleteFunc(slices.Clone(def.Fields), func(f *ast.FieldDefinition) bool {
		return s.fields[def.Name+"."+f.Name]
	})
	return &out
}

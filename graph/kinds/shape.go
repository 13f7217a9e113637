package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// part is the part of a body that uses a type.
type part bool

const (
	inSpec   part = true
	inStatus part = false
)

// use records which parts use an object type.
type use struct{ spec, status bool }

// shape reads an object type. above are the types that contain it, the outermost first.
func (l *loader) shape(def *ast.Definition, p part, above []*ast.Definition) *descriptor.Shape {
	u := l.shapes[def]
	if u == nil {
		u = &use{}
		l.shapes[def] = u
	}
	u.spec, u.status = u.spec || p == inSpec, u.status || p == inStatus
	s := &descriptor.Shape{Name: def.Name}
	above = append(slices.Clone(above), def)
	if len(above) > maxLevels {
		l.report(def.Position, "kind %s: %s is more than %d objects deep", l.reading.Name, def.Name, maxLevels)
		return s
	}
	for _, f := range def.Fields {
		if l.fieldCount++; l.fieldCount > maxFieldPlaces {
			l.report(l.reading.Position, "kind %s: its spec and status have more than %d fields, each counted wherever its type is used", l.reading.Name, maxFieldPlaces)
			return s
		}
		s.Fields = append(s.Fields, l.field(def, f, p, above))
	}
	if p == inStatus {
		return s // statuses are checked for their size alone
	}
	l.properties(s, l.read(def.Directives, "constraint"), def.Name)
	if d := l.read(def.Directives, "constraint"); d != nil {
		l.onlyProperties(d, def.Name)
	}
	l.merges(s, def)
	l.rules(s, def)
	return s
}

// field reads a field of a spec or status.
func (l *loader) field(def *ast.Definition, f *ast.FieldDefinition, p part, above []*ast.Definition) descriptor.Field {
	where := def.Name + "." + f.Name
	out := descriptor.Field{
		Name:        f.Name,
		Description: f.Description,
		Required:    f.Type.NonNull,
		Deprecated:  deprecation(f.Directives),
	}
	if len(f.Arguments) > 0 {
		l.report(f.Position, "%s: a field of a spec or status takes no arguments", where)
	}
	elem := f.Type
	if f.Type.Elem != nil {
		out.List, elem = true, f.Type.Elem
		switch {
		case elem.Elem != nil:
			l.report(f.Position, "%s: a list of lists is not supported; put the inner list into an object", where)
			return out
		case !elem.NonNull:
			l.report(f.Position, "%s: elements of a list are never null; write [%s!]", where, elem.NamedType)
		}
	}
	l.fieldType(&out, elem.NamedType, &typed{where: where, at: f.Position, part: p, above: above})
	if d := l.read(f.Directives, "manifest"); d != nil && p == inSpec {
		out.ManifestAt = d.text("at")
	}
	out.WriteOnly = p == inSpec && l.read(f.Directives, "writeOnly") != nil
	if d := l.read(f.Directives, "mergeInto"); d != nil && p == inSpec {
		out.MergeInto = d.text("field")
	}
	if l.mapping(&out, f, where, p) {
		return out
	}
	if p == inStatus {
		if len(above) == 1 && f.Name == conditions && (elem.NamedType != condition || !out.List) {
			l.report(f.Position, "%s: conditions of a status are [%s!], a type of the API", where, condition)
		}
		l.statusField(&out, f, where)
		return out
	}
	l.specField(&out, f, where)
	return out
}

// typed is a field whose type is being read.
type typed struct {
	where string
	at    *ast.Position
	part  part
	above []*ast.Definition
}

// fieldType sets the type of a field from the name of the type.
func (l *loader) fieldType(out *descriptor.Field, name string, in *typed) {
	def := l.types[name]
	switch {
	case slices.Contains([]string{"String", "Int", "SafeInt", "Float", "Boolean", "Time"}, name):
		out.Type = descriptor.FieldType(name)
		if out.List && out.Type == descriptor.TypeTime {
			l.report(in.at, "%s: a list of times is not supported; put the time into an object", in.where)
		}
	case name == mapEntry:
		out.Type = descriptor.TypeMap
	case name == condition:
		l.conditionType(out, in)
	case name == "ID":
		l.report(in.at, "%s: ID is for global ids; use String", in.where)
	case def == nil && l.isAPI(name), def == nil && l.derivedFrom(name) != "":
		l.report(in.at, "%s: %s is a type of the API and cannot be part of a resource", in.where, name)
	case def == nil:
		// known has reported it.
	case def.Kind == ast.Enum:
		out.Type, out.Enum = descriptor.TypeEnum, l.enumOf(def)
		l.stores[def] = true
	case def.Kind != ast.Object:
		// definitions has reported it.
	case def.Directives.ForName("resource") != nil:
		l.report(in.at, "%s: %s is a kind; a resource names another, it does not contain it", in.where, name)
	case slices.Contains(in.above, def):
		l.report(in.at, "%s: %s contains itself; a spec or status has a fixed depth", in.where, name)
	default:
		out.Type, out.Shape = descriptor.TypeObject, l.shape(def, in.part, in.above)
	}
}

func (l *loader) enumOf(def *ast.Definition) *descriptor.Enum {
	e := &descriptor.Enum{Name: def.Name}
	for _, v := range def.EnumValues {
		e.Values = append(e.Values, descriptor.EnumValue{Name: v.Name, Stored: l.stored(v), Description: v.Description})
	}
	return e
}

// statusDirectives returns the directives that are allowed on status fields. Of @constraint, only the maxima are.
func statusDirectives() []string {
	return []string{"filterable", "sortable", "constraint", "map", "stored"}
}

// statusField reads the directives of a status field. It reports a required field and an enum, which would restrict
// what a controller may store.
func (l *loader) statusField(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	l.maxima(out, f, where)
	if out.Required {
		l.report(f.Position, "%s: fields of a status are nullable: a controller can leave out any of them", where)
	}
	if out.Type == descriptor.TypeEnum {
		l.report(f.Position, "%s: a status holds String where a spec has an enum: a controller can store any value", where)
	}
}

// specField reads the directives of a spec field.
func (l *loader) specField(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	out.Immutable = l.read(f.Directives, "immutable") != nil
	if f.Directives.ForName("default") != nil {
		out.Required = false // the `!` applies to reads
	}
	if out.Deprecated != "" && out.Required {
		l.report(f.Position, "%s: a required field cannot be deprecated: nobody could stop using it", where)
	}
	l.listType(out, f, where)
	l.constraint(out, f, where)
	l.fieldDefault(out, f, where)
}

// listType reads @list.
func (l *loader) listType(out *descriptor.Field, f *ast.FieldDefinition, where string) {
	d := l.read(f.Directives, "list")
	switch {
	case d == nil && out.List && !l.isMalformed(f.Directives, "list"):
		l.report(f.Position, "%s: a list in a spec says how it is compared: add @list(type: SET), @list(type: MAP, keys: [...]) or @list(type: ATOMIC)", where)
		return
	case d == nil:
		return
	case !out.List:
		l.report(d.Position, "%s: @list is for lists", where)
		return
	}
	out.ListType, out.Keys = descriptor.ListType(d.text("type")), d.texts("keys")
	switch {
	case out.ListType == descriptor.ListMap:
		l.mapKeys(out, d, where)
	case d.has("keys"):
		l.report(d.at("keys"), "%s: keys are for @list(type: MAP)", where)
	case out.ListType == descriptor.ListSet && out.Type == descriptor.TypeObject:
		l.report(d.Position, "%s: a SET holds scalars or enum values; objects go into a MAP by their keys", where)
	}
}

func (l *loader) mapKeys(out *descriptor.Field, d *directive, where string) {
	if out.Type == "" {
		return // not known
	}
	if out.Type != descriptor.TypeObject {
		l.report(d.Position, "%s: a MAP holds objects; scalars go into a SET", where)
		return
	}
	if len(out.Keys) == 0 {
		l.report(d.Position, "%s: a MAP names the fields that identify an element: keys: [...]", where)
	}
	if out.Shape == nil {
		return
	}
	for _, key := range out.Keys {
		switch f := out.Shape.Field(key); {
		case f == nil:
			l.report(d.at("keys"), "%s: key %s is not a field of %s", where, key, out.Shape.Name)
		case f.List || f.Type == descriptor.TypeObject || !f.Required:
			l.report(d.at("keys"), "%s: key %s of %s: a required scalar or enum is wanted", where, key, out.Shape.Name)
		}
	}
}

// leftovers reports directives that have no effect.
func (l *loader) leftovers() {
	for _, def := range l.ordered() {
		u := l.shapes[def]
		for _, v := range def.EnumValues {
			if d := l.read(v.Directives, "stored"); d != nil && !l.stores[def] {
				l.report(d.Position, "directive @stored has no effect: enum %s is part of no spec", def.Name)
			}
		}
		if def.Directives.ForName("resource") != nil {
			l.noEffectOn(
				def.Directives,
				"kind "+def.Name+" is validated by the type of its spec; put it there",
				"resource",
				"column",
			)
			continue
		}
		l.noColumns(def)
		if def.Kind != ast.Object || u != nil && u.spec {
			l.noDefaults(def, u)
			continue
		}
		if u != nil {
			l.noEffect(def, "type "+def.Name+" is part of no spec, and a status is checked for its size alone", statusDirectives()...)
			l.maximaAlone(def)
			continue
		}
		l.noEffect(def, "type "+def.Name+" is part of no spec or status")
	}
}

// noDefaults reports defaults in a type that a status uses as well. There, a field that is left out is unknown, not its
// default.
func (l *loader) noDefaults(def *ast.Definition, u *use) {
	for _, f := range def.Fields {
		if d := l.read(f.Directives, "default"); d != nil && u != nil && u.status {
			l.report(d.Position, "%s.%s: @default is for specs, and %s is part of a status too", def.Name, f.Name, def.Name)
		}
	}
}

// noEffect reports the directives of this package on a type and on its fields, because they have no effect there. The
// messages contain the given reason. On fields, the directives with the given names are not reported.
func (l *loader) noEffect(def *ast.Definition, why string, but ...string) {
	l.noEffectOn(def.Directives, why)
	for _, f := range def.Fields {
		l.noEffectOn(f.Directives, why, but...)
	}
}

// noEffectOn is like noEffect for the directives in one place.
func (l *loader) noEffectOn(list ast.DirectiveList, why string, but ...string) {
	for _, d := range list {
		if l.directives[d.Name] != nil && !slices.Contains(but, d.Name) && !slices.Contains(l.malformed, d) {
			l.report(d.Position, "directive @%s has no effect: %s", d.Name, why)
		}
	}
}

func deprecation(list ast.DirectiveList) string {
	d := list.ForName("deprecated")
	if d == nil {
		return ""
	}
	if a := d.Arguments.ForName("reason"); a != nil {
		return a.Value.Raw
	}
	return "No longer supported"
}

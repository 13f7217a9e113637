package kinds

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// index collects the types and kinds of all files.
func (l *loader) index(docs []Document) {
	for _, d := range docs {
		for _, def := range d.Definitions {
			if first := l.types[def.Name]; first != nil {
				l.report(
					def.Position,
					"type %s is declared twice; first at %s:%d",
					def.Name,
					own(first.Position.Src.Name),
					first.Position.Line,
				)
				continue
			}
			l.types[def.Name] = def
			if def.Directives.ForName("resource") != nil && def.Kind == ast.Object {
				l.kinds = append(l.kinds, def)
			}
		}
	}
	for _, k := range slices.Backward(l.kinds) { // if two kinds derive a name, the first one counts
		for _, name := range DerivedTypes(k.Name) {
			l.derived[name] = k.Name
		}
	}
}

// definitions checks the definitions in a file, even if no kind uses them.
func (l *loader) definitions(doc *ast.SchemaDocument) {
	for _, s := range slices.Concat(doc.Schema, doc.SchemaExtension) {
		l.report(s.Position, "a schema block is not for authors: the schema is derived")
	}
	for _, d := range doc.Directives {
		l.report(d.Position, "directive @%s: authors cannot declare directives", d.Name)
	}
	for _, def := range doc.Definitions {
		switch def.Kind {
		case ast.Object, ast.Enum:
		default:
			kind := strings.TrimSuffix(strings.ToLower(string(def.Kind)), "_object")
			l.report(def.Position, "%s %s: a catalogue declares types, enums and scalars; inputs are derived", kind, def.Name)
			continue
		}
		l.definition(def)
	}
	for _, ext := range doc.Extensions {
		l.report(ext.Position, "extend %s: a catalogue has kinds alone; fields that are resolved by hand are compiled into the gateway", ext.Name)
	}
}

func (l *loader) definition(def *ast.Definition) {
	defer func() { def.BuiltIn = false }()
	if strings.HasPrefix(def.Name, "_") {
		l.report(def.Position, "type %s: names that begin with _ are reserved", def.Name)
	}
	if why := l.reservedType(def.Name); why != "" && !def.BuiltIn {
		l.report(def.Position, "type %s: the name is reserved: %s", def.Name, why)
	}
	if len(def.Interfaces) > 0 {
		l.report(def.Position, "type %s: authors' types implement no interfaces; kinds implement Node and Resource without being told", def.Name)
	}
	l.checkDirectives(def.Directives, ast.DirectiveLocation(def.Kind)) // both are OBJECT or ENUM
	l.fields(def)
	if def.Kind == ast.Object && len(def.Fields) == 0 && def.Directives.ForName("resource") == nil {
		l.report(def.Position, "type %s has no fields", def.Name)
	}
	if def.Kind == ast.Enum {
		l.enum(def)
	}
}

func (l *loader) fields(def *ast.Definition) {
	for i, f := range def.Fields {
		if slices.ContainsFunc(def.Fields[:i], func(o *ast.FieldDefinition) bool { return o.Name == f.Name }) {
			l.report(f.Position, "%s.%s is declared twice", def.Name, f.Name)
		}
		if strings.HasPrefix(f.Name, "_") {
			l.report(f.Position, "%s.%s: names that begin with _ are reserved", def.Name, f.Name)
		}
		l.known(def.Name+"."+f.Name, f.Type, f.Position)
		for _, a := range f.Arguments {
			l.known(def.Name+"."+f.Name+"("+a.Name+")", a.Type, a.Position)
		}
		l.checkDirectives(f.Directives, ast.LocationFieldDefinition)
	}
	if def.Kind == ast.Object && def.Directives.ForName("resource") == nil {
		l.storedNames(def)
	}
}

// known reports a type that is not declared.
func (l *loader) known(where string, t *ast.Type, at *ast.Position) {
	name := t.Name()
	if len(l.unread) > 0 {
		return
	}
	if l.types[name] == nil && !l.isAPI(name) && !slices.Contains(scalars(), name) && l.derivedFrom(name) == "" {
		l.report(at, "%s: type %s is not known", where, name)
	}
}

func scalars() []string { return []string{"String", "Int", "Float", "Boolean", "ID"} }

// enum checks the values of an enum and their stored forms.
func (l *loader) enum(def *ast.Definition) {
	if len(def.EnumValues) == 0 {
		l.report(def.Position, "enum %s has no values", def.Name)
	}
	stored := map[string]string{}
	for i, v := range def.EnumValues {
		if slices.ContainsFunc(def.EnumValues[:i], func(o *ast.EnumValueDefinition) bool { return o.Name == v.Name }) {
			l.report(v.Position, "%s.%s is declared twice", def.Name, v.Name)
			continue
		}
		if slices.Contains([]string{"true", "false", "null"}, v.Name) {
			l.report(v.Position, "%s.%s: GraphQL reserves the word", def.Name, v.Name)
		}
		l.checkDirectives(v.Directives, ast.LocationEnumValue)
		form := l.stored(v)
		switch other, taken := stored[form]; {
		case form == "":
			l.report(v.Position, "%s.%s: the stored form is empty", def.Name, v.Name)
		case taken:
			l.report(v.Position, "%s.%s: the stored form %q is that of %s too", def.Name, v.Name, form, other)
		}
		stored[form] = v.Name
	}
}

// stored returns the form of an enum value in manifests and in the store.
func (l *loader) stored(v *ast.EnumValueDefinition) string {
	if d := l.read(v.Directives, "stored"); d != nil {
		return d.text("as")
	}
	return v.Name
}

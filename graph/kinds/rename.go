package kinds

import (
	"regexp"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// storedNameForm is the form of a field's stored name.
var storedNameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)

// storedName returns the stored name of a field.
func (l *loader) storedName(f *ast.FieldDefinition) string {
	if d := l.read(f.Directives, "stored"); d != nil {
		return d.text("as")
	}
	return f.Name
}

// storedNames reports stored names with a wrong form, and those that two fields of a type share. It also reports fields
// named id, which the caches of clients would take for the identity of an object.
func (l *loader) storedNames(def *ast.Definition) {
	seen := names{}
	for _, f := range def.Fields {
		where := def.Name + "." + f.Name
		if f.Name == "id" {
			l.report(f.Position, "%s: a field named id would be another object's identity to the caches of clients, since only resources have one; give it a name like cloudId, with @stored(as: \"id\") where manifests have id", where)
		}
		name := l.storedName(f)
		if other := seen.add(name, def.Name+"."+f.Name); other != "" {
			l.report(f.Position, "%s: the stored name %q is that of %s too", where, name, other)
		}
		d := l.read(f.Directives, "stored")
		switch {
		case d == nil:
		case name == f.Name:
			l.report(d.Position, "%s: @stored has no effect: %q is the name of the field", where, name)
		case !storedNameForm.MatchString(name):
			l.report(d.at("as"), "%s: stored name %q: at most 63 letters, digits, '_' and '-' that begin with a letter are wanted", where, name)
		default:
			l.renamed[where] = name
		}
	}
}

// rename replaces API names by stored names, in the fields of a kind and in all paths. Before that, all of them are API
// names.
func (l *loader) rename(k *Kind) {
	for i := range k.Refs {
		k.Refs[i].APIPath = k.Refs[i].Path
	}
	if len(l.renamed) == 0 {
		return
	}
	l.renameShape(k.Spec)
	l.renameShape(k.Status)
	for i := range k.FilterableFields {
		k.FilterableFields[i].Path = k.StoredPath(k.FilterableFields[i].Path)
	}
	for i := range k.Columns {
		k.Columns[i].Path = k.StoredPath(k.Columns[i].Path)
	}
	for i := range k.Refs {
		path := k.StoredPath(k.Refs[i].Path)
		k.Refs[i].Path, k.References[i].Path = path, path
	}
}

// storedOf returns the stored name of a field with an API name.
func (l *loader) storedOf(s *descriptor.Shape, name string) string {
	if stored, ok := l.renamed[s.Name+"."+name]; ok {
		return stored
	}
	return name
}

func (l *loader) renameShape(s *descriptor.Shape) {
	if s == nil {
		return
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		for n, key := range f.Keys {
			f.Keys[n] = l.storedOf(f.Shape, key)
		}
		if f.MergeInto != "" {
			f.MergeInto = l.storedOf(s, f.MergeInto)
		}
		l.renameShape(f.Shape)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if stored := l.storedOf(s, f.Name); stored != f.Name {
			f.Name, f.APIName = stored, f.Name
		}
	}
}

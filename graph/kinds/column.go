package kinds

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The forms of short names and of column titles.
var (
	shortNameForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	columnForm    = regexp.MustCompile(`^[A-Z][-_A-Z0-9]*$`)
)

// Limits of short names and columns.
const (
	maxShortNames  = 8
	maxShortName   = 16
	maxColumns     = 32
	maxColumnTitle = 32
)

// shortNames reads the short names of a kind. kindNames compares them with names of other kinds.
func (l *loader) shortNames(k *descriptor.Kind, d *directive) {
	for _, name := range d.texts("shortNames") {
		switch {
		case slices.Contains(k.ShortNames, name):
			l.report(d.at("shortNames"), "kind %s: short name %q is here twice", k.Name, name)
		case !shortNameForm.MatchString(name) || len(name) > maxShortName:
			l.report(d.at("shortNames"), "kind %s: short name %q: at most %d lower case letters and digits that begin with a letter are wanted", k.Name, name, maxShortName)
		case slices.Contains(commandWords(), name):
			l.report(d.at("shortNames"), "kind %s: short name %q is a word of the command line", k.Name, name)
		case name == strings.ToLower(k.Name), name == strings.ToLower(k.Plural):
			l.report(d.at("shortNames"), "kind %s: short name %q is a name of the kind already", k.Name, name)
		}
		k.ShortNames = append(k.ShortNames, name)
	}
	switch n := len(k.ShortNames); {
	case n > maxShortNames:
		l.report(d.at("shortNames"), "kind %s: %d short names; at most %d are accepted", k.Name, n, maxShortNames)
	case n == 0 && d.has("shortNames"):
		l.report(d.at("shortNames"), "kind %s: shortNames is empty; leave it out for none, or name at least one", k.Name)
	}
}

// columns reads the @column of a kind.
func (l *loader) columns(k *Kind) {
	all := k.Definition.Directives.ForNames("column")
	if len(all) > maxColumns {
		l.report(all[maxColumns].Position, "kind %s: %d columns; at most %d are accepted", k.Name, len(all), maxColumns)
	}
	seen := names{}
	for _, column := range l.readAll(k.Definition.Directives, "column") {
		c := descriptor.Column{
			Title: column.text("title"),
			Path:  column.text("path"),
			Wide:  column.text("wide") == "true",
		}
		switch {
		case !columnForm.MatchString(c.Title) || len(c.Title) > maxColumnTitle:
			l.report(column.at("title"), "kind %s: column %q: at most %d capitals, digits, '-' and '_' that begin with a letter are wanted", k.Name, c.Title, maxColumnTitle)
		case slices.Contains(tableColumns(), c.Title):
			l.report(column.at("title"), "kind %s: column %q: the title is reserved: all tables have or may have a column of that title", k.Name, c.Title)
		case seen[c.Title] != "":
			l.report(column.at("title"), "kind %s: column %q is here twice", k.Name, c.Title)
		}
		seen.add(c.Title, c.Path)
		if why := unprintable(k, c.Path); why != "" {
			l.report(column.at("path"), "kind %s: column %q: path %q: %s", k.Name, c.Title, c.Path, own(why))
		}
		k.Columns = append(k.Columns, c)
	}
}

// unprintable returns the reason why a column cannot show the value at a path; "" if it can.
func unprintable(k *Kind, path string) string {
	f, hidden := (*descriptor.Field)(nil), false
	shape := &descriptor.Shape{}
	for name, part := range map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status} {
		if k.Definition.Fields.ForName(name) != nil {
			shape.Fields = append(shape.Fields, descriptor.Field{Name: name, Type: descriptor.TypeObject, Shape: part})
		}
	}
	for step := range strings.SplitSeq(path, ".") {
		switch {
		case f != nil && f.Type == descriptor.TypeObject && shape == nil:
			return "" // its type could not be read, which is reported elsewhere
		case shape == nil:
			return "there is no such field; " + f.Name + " is no object"
		}
		f = shape.Field(step)
		if f == nil {
			names := textsOf(shape.Fields, func(f descriptor.Field) string { return f.Name })
			slices.Sort(names)
			return "there is no such field; known there are " + listed(names).String()
		}
		shape, hidden = f.Shape, hidden || f.WriteOnly
	}
	switch {
	case hidden:
		return "what is @writeOnly is never shown"
	case f.Type == descriptor.TypeObject, f.Type == descriptor.TypeMap:
		return "a scalar, an enum or a list of them is wanted"
	}
	return ""
}

// noColumns reports @column on a type that is not a kind.
func (l *loader) noColumns(def *ast.Definition) {
	for _, d := range l.readAll(def.Directives, "column") {
		l.report(d.Position, "directive @column has no effect: type %s is no kind", def.Name)
		l.malformed = append(l.malformed, d.Directive)
	}
}

package kinds

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Reference is a reference of a kind, with the field that is derived from it.
type Reference struct {
	descriptor.Reference
	// APIPath is the path of the reference, with API names.
	APIPath string
	// Owner is the name of the type with the derived field. If the reference is directly in spec or spec.resource, that
	// is the kind, otherwise the type with the reference.
	Owner string
	// List reports whether the derived field is a connection.
	List bool
	// Deprecated is the reason why the reference and its derived field are deprecated; empty if they are not.
	Deprecated string

	at *ast.Position
}

// maxReferences is the maximum length of a list of references, because all resources in it are read by name.
const maxReferences = 100

// unread reports whether @resource was not valid, so that scope, plural and verbs are unknown.
func (k *Kind) unread() bool { return k.Scope == "" }

// references reads @ref on the fields of all kinds.
func (l *loader) references(kinds []Kind) {
	byName := map[string]*Kind{}
	for i := range kinds {
		byName[kinds[i].Name] = &kinds[i]
	}
	for i := range kinds {
		k := &kinds[i]
		l.places(k, k.Spec, &place{path: "spec"}, func(p *place) {
			if d := l.read(p.ast.Directives, "ref"); d != nil {
				l.reference(p, d, byName)
			}
		})
	}
	l.derivedFields(kinds, byName)
	l.guards(kinds, byName)
}

// reference reads one @ref.
func (l *loader) reference(p *place, d *directive, kinds map[string]*Kind) {
	where, f := p.owner.Name+"."+p.ast.Name, p.field
	ending := "Ref"
	if f.List {
		ending = "Refs"
	}
	stem, ok := strings.CutSuffix(p.ast.Name, ending)
	target := kinds[d.text("kind")]
	switch {
	case f.Type == "", target == nil && len(l.unread) > 0, target != nil && (target.unread() || p.kind.unread()):
		// Something could not be read and is reported elsewhere.
	case f.Type != descriptor.TypeString:
		l.report(d.Position, "%s: @ref is for a String or [String!]", where)
	case d.has("as") && !pluralForm.MatchString(d.text("as")):
		l.report(d.at("as"), "%s: as %q: letters and digits that begin with a lower case letter are wanted", where, d.text("as"))
	case !d.has("as") && (!ok || stem == ""):
		l.report(d.Position, "%s: the name of a reference ends in Ref, of a list in Refs, and the field without that resolves to the resource; or name that field: as: \"...\"", where)
	case target == nil:
		l.report(d.at("kind"), "%s: kind %q is not known; known are %s", where, d.text("kind"), listed(l.kindList()))
	case p.kind.Scope == descriptor.Global && target.Scope != descriptor.Global:
		l.report(d.at("kind"), "%s: kind %s is %s and %s is %s: a reference stays in its namespace, or goes to a GLOBAL kind",
			where, p.kind.Name, p.kind.Scope, target.Name, target.Scope)
	case l.shapes[p.owner].status:
		l.report(d.Position, "%s: type %s is part of a status too; @ref is for specs", where, p.owner.Name)
	case f.List && f.Constraint.MaxItems != nil && *f.Constraint.MaxItems > maxReferences:
		l.report(d.Position, "%s: a list of references has at most %d elements; maxItems is %d", where, maxReferences, *f.Constraint.MaxItems)
	default:
		l.offers(p, d, target)
		r := l.derive(p, d, stem, target)
		p.kind.Refs = append(p.kind.Refs, r)
		isFilterable := slices.ContainsFunc(p.kind.FilterableFields, func(i descriptor.FilterableField) bool {
			return i.Path == r.Path
		})
		if r.Owner == p.kind.Name && !isFilterable {
			p.kind.FilterableFields = append(p.kind.FilterableFields, descriptor.FilterableField{Path: r.Path})
		}
	}
}

// offers reports a reference whose derived field needs a verb that the target does not offer.
func (l *loader) offers(p *place, d *directive, target *Kind) {
	where := p.owner.Name + "." + p.ast.Name
	switch {
	case p.field.List && !target.Has(descriptor.VerbList):
		l.report(d.at("kind"), "%s: kind %s does not offer LIST, which a list of references needs", where, target.Name)
	case !p.field.List && !target.Has(descriptor.VerbGet):
		l.report(d.at("kind"), "%s: kind %s does not offer GET, which a reference needs", where, target.Name)
	}
	if d.has("inverse") && !p.kind.Has(descriptor.VerbList) {
		l.report(d.at("inverse"), "%s: kind %s does not offer LIST, which an inverse needs", where, p.kind.Name)
	}
	if d.has("inverse") && !pluralForm.MatchString(d.text("inverse")) {
		l.report(d.at("inverse"), "%s: inverse %q: letters and digits that begin with a lower case letter are wanted", where, d.text("inverse"))
	}
}

// derive returns the reference, and sets the name and the owner of its derived field. The name is the one that the
// author chose, or the name of the reference without its ending.
func (l *loader) derive(p *place, d *directive, stem string, target *Kind) Reference {
	r := Reference{
		Reference: descriptor.Reference{
			Path:    p.path,
			Kind:    target.Name,
			Field:   stem,
			Inverse: d.text("inverse"),
			Guarded: d.text("guarded") == "true",
		},
		Owner: p.owner.Name, List: p.field.List, Deprecated: p.field.Deprecated, at: d.Position,
	}
	switch {
	case d.has("as"):
		r.Field = d.text("as")
	case r.List:
		r.Field += "s"
		if stem == target.Singular {
			r.Field = target.Plural
		}
	}
	parent := strings.TrimSuffix(p.path, "."+p.ast.Name)
	if parent == "spec" || parent == "spec.resource" && !p.listed {
		r.Owner = p.kind.Name
	}
	return r
}

func (l *loader) kindList() []string {
	out := textsOf(l.kinds, func(k *ast.Definition) string { return k.Name })
	slices.Sort(out)
	return out
}

// derivedFields reports derived fields whose names are already used, and adds the references to the descriptors.
func (l *loader) derivedFields(kinds []Kind, byName map[string]*Kind) {
	taken := map[string]names{}
	claim := func(at *ast.Position, owner, field, what string) {
		if taken[owner] == nil {
			taken[owner] = l.fieldsOf(owner, byName[owner] != nil)
		}
		if other := taken[owner].add(field, what); other != "" {
			l.report(at, "%s.%s, %s: the name is that of %s too", owner, field, what, other)
		}
	}
	for i := range kinds {
		k := &kinds[i]
		for _, r := range k.Refs {
			what := "the resource that " + k.Name + "." + r.Path + " names"
			if r.Owner != k.Name {
				what = "the resource that " + r.Owner + "." + r.Path[strings.LastIndex(r.Path, ".")+1:] + " names"
			}
			claim(r.at, r.Owner, r.Field, what)
			if r.Inverse != "" {
				claim(r.at, r.Kind, r.Inverse, "the inverse of "+k.Name+"."+r.Path)
			}
			k.References = append(k.References, r.Reference)
		}
	}
}

// fieldsOf returns the names of the fields that a type already has.
func (l *loader) fieldsOf(typ string, kind bool) names {
	out := names{}
	if kind {
		for _, f := range append(kindFields(), "spec", "status") {
			out.add(f, "the field "+f+" of every kind")
		}
		for _, f := range laterKindFields() {
			out.add(f, "the field "+f+" that every kind will have")
		}
		return out
	}
	for _, f := range l.types[typ].Fields {
		out.add(f.Name, "the field "+f.Name)
	}
	return out
}

// guards reports guarded references that form a cycle of kinds, because resources of these kinds could prevent each
// other's deletion for ever. It also reports guarded references from or to a kind whose resources expire.
func (l *loader) guards(kinds []Kind, byName map[string]*Kind) {
	guarded := map[string][]string{}
	for i := range kinds {
		for _, r := range kinds[i].Refs {
			if r.Guarded {
				guarded[kinds[i].Name] = append(guarded[kinds[i].Name], r.Kind)
			}
		}
	}
	for i := range kinds {
		k := &kinds[i]
		for _, r := range k.Refs {
			if !r.Guarded {
				continue
			}
			for _, end := range []*Kind{k, byName[r.Kind]} {
				if end.Expires {
					l.report(r.at, "%s.%s: a guarded reference has ends that stay; kind %s expires", k.Name, r.Path, end.Name)
				}
			}
			if way := route(guarded, r.Kind, k.Name); way != nil {
				l.report(r.at, "%s.%s: guarded references make a cycle in which nothing could be deleted: %s", k.Name, r.Path, strings.Join(append([]string{k.Name}, way...), " -> "))
			}
		}
	}
}

// route returns the shortest path from one kind to another; nil if there is none.
func route(edges map[string][]string, from, to string) []string {
	ways, seen := [][]string{{from}}, map[string]bool{from: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		last := way[len(way)-1]
		if last == to {
			return way
		}
		for _, next := range edges[last] {
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

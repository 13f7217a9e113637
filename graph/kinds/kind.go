package kinds

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The forms of the arguments of @resource. A version has the form of a Kubernetes version.
var (
	pluralForm  = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	nameForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	versionForm = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	fileForm    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	kindForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	serviceForm = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	subKindForm = regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`)
)

// The maximum lengths of names, and the limits of the fields of a kind.
const (
	maxKindName = 63
	maxGroup    = 253
	maxSubKind  = 63
	maxService  = 63
	// maxFieldPlaces is the maximum number of fields in the spec and status of a kind, where a type counts each time it
	// is used. Without it, thirty types that each use the next one twice would make a billion fields.
	maxFieldPlaces = 10_000
	// maxLevels is the maximum nesting of objects in a spec or status. Writes do not accept deeper values either.
	maxLevels = 64
	// maxName is the maximum length of a resource's name.
	maxName = 253
)

// kind returns the descriptor of a kind, without its references, filterable fields and columns. Load adds these.
func (l *loader) kind(def *ast.Definition) descriptor.Kind {
	l.reading, l.fieldCount = def, 0
	k := descriptor.Kind{Name: def.Name, Singular: singular(def.Name), Description: def.Description}
	if !kindForm.MatchString(def.Name) || len(def.Name) > maxKindName {
		l.report(def.Position, "kind %s: a name of at most %d letters and digits that begins with a capital is wanted", def.Name, maxKindName)
	}
	if d := l.read(def.Directives, "resource"); d != nil {
		l.identity(&k, d)
	}
	l.kindParts(&k, def)
	l.impossibleVerbs(&k, def)
	return k
}

// identity reads the arguments of @resource.
func (l *loader) identity(k *descriptor.Kind, d *directive) {
	k.Plural = d.text("plural")
	k.Group = d.text("group")
	k.Version = d.text("version")
	k.Scope = descriptor.Scope(d.text("scope"))
	if !pluralForm.MatchString(k.Plural) || len(k.Plural) > maxKindName {
		l.report(d.at("plural"), "kind %s: plural %q: at most %d letters and digits that begin with a lower case letter are wanted", k.Name, k.Plural, maxKindName)
	}
	if strings.EqualFold(k.Plural, k.Singular) {
		l.report(d.at("plural"), "kind %s: plural %q is the singular too", k.Name, k.Plural)
	}
	if k.Group != "" && !nameForm.MatchString(k.Group) || len(k.Group) > maxGroup {
		l.report(d.at("group"), "kind %s: group %q: a DNS name of at most %d characters is wanted, or nothing for an apiVersion without a group", k.Name, k.Group, maxGroup)
	}
	if !versionForm.MatchString(k.Version) {
		l.report(d.at("version"), "kind %s: version %q: a version like v1, v1beta2 or v1alpha1 is wanted", k.Name, k.Version)
	}
	k.Expires = d.text("expires") == "true"
	k.Sensitive = d.text("sensitive") == "true"
	k.OutOfMemory = d.text("inMemory") == "false"
	l.subKinds(k, d)
	l.shortNames(k, d)
	l.service(k, d)
	l.review(k, d)
	l.verbs(k, d)
}

// subKinds reads the argument subKinds.
func (l *loader) subKinds(k *descriptor.Kind, d *directive) {
	for _, name := range d.texts("subKinds") {
		switch {
		case slices.Contains(k.SubKinds, name):
			l.report(d.at("subKinds"), "kind %s: subKind %q is here twice", k.Name, name)
		case !subKindForm.MatchString(name) || len(name) > maxSubKind:
			l.report(d.at("subKinds"), "kind %s: subKind %q: at most %d letters, digits, '-', '_' and '.' that begin and end with a letter or digit are wanted", k.Name, name, maxSubKind)
		}
		k.SubKinds = append(k.SubKinds, name)
	}
	if d.has("subKinds") && len(k.SubKinds) == 0 {
		l.report(d.at("subKinds"), "kind %s: subKinds is empty; leave it out for none, or name at least one", k.Name)
	}
}

// kindParts reads the two fields of a kind, spec and status.
func (l *loader) kindParts(k *descriptor.Kind, def *ast.Definition) {
	for _, f := range def.Fields {
		switch {
		case slices.Contains(kindFields(), f.Name):
			l.report(f.Position, "%s.%s: the name is reserved: every kind has a field %s", def.Name, f.Name, f.Name)
			continue
		case f.Name != "spec" && f.Name != "status":
			l.report(f.Position, "%s.%s: a kind has spec and status only; put the field into one of them", def.Name, f.Name)
			continue
		}
		if len(f.Arguments) > 0 || len(f.Directives) > 0 {
			l.report(f.Position, "%s.%s takes no arguments and no directives", def.Name, f.Name)
		}
		if wanted := f.Name == "spec"; f.Type.Elem != nil || f.Type.NonNull != wanted {
			l.report(f.Position, "%s.%s is %s; %s is wanted", def.Name, f.Name, f.Type, map[bool]string{
				true: "spec: T! (required)", false: "status: T (not required)",
			}[wanted])
		}
		part := l.types[f.Type.Name()]
		if part == nil && len(l.unread) > 0 {
			continue
		}
		if part == nil || part.Kind != ast.Object || part.Directives.ForName("resource") != nil {
			l.report(f.Position, "%s.%s: %s is no object type", def.Name, f.Name, f.Type.Name())
			continue
		}
		if f.Name == "spec" {
			k.Spec = l.shape(part, inSpec, nil)
		} else {
			k.Status = l.shape(part, inStatus, nil)
		}
	}
	if def.Fields.ForName("spec") == nil {
		l.report(def.Position, "kind %s has no spec; declare spec: T!", def.Name)
	}
}

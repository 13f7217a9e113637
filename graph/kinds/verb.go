package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// verbs reads the verbs of a kind: those that it names, or all except those that it excludes.
func (l *loader) verbs(k *descriptor.Kind, d *directive) {
	if d.has("verbs") && d.has("exceptVerbs") {
		l.report(d.at("exceptVerbs"), "kind %s: exceptVerbs: it does not go with verbs, which names all that there are; leave one of them out", k.Name)
	}
	if d.has("verbs") {
		k.Verbs = l.verbList(k, d, "verbs", "leave it out for all, or name at least one")
		return
	}
	var except []descriptor.Verb
	if d.has("exceptVerbs") {
		except = l.verbList(k, d, "exceptVerbs", "leave it out for none, or name at least one")
	}
	for _, v := range l.enums["KindVerb"].EnumValues {
		if !slices.Contains(except, descriptor.Verb(v.Name)) {
			k.Verbs = append(k.Verbs, descriptor.Verb(v.Name))
		}
	}
	if len(k.Verbs) == 0 {
		l.report(d.at("exceptVerbs"), "kind %s: exceptVerbs leaves none; a kind offers at least one verb", k.Name)
	}
}

// verbList reads a list of verbs. It reports an empty list and repeated verbs.
func (l *loader) verbList(k *descriptor.Kind, d *directive, argument, empty string) (out []descriptor.Verb) {
	for _, name := range d.texts(argument) {
		if slices.Contains(out, descriptor.Verb(name)) {
			l.report(d.at(argument), "kind %s: verb %s is here twice", k.Name, name)
		}
		out = append(out, descriptor.Verb(name))
	}
	if len(out) == 0 {
		l.report(d.at(argument), "kind %s: %s is empty; %s", k.Name, argument, empty)
	}
	return out
}

// impossibleVerb is a verb that applies to a kind only if possible is set; why is the reason.
type impossibleVerb struct {
	verb     descriptor.Verb
	possible bool
	why      string
}

// ownersVerbs returns the verbs that callers cannot use because a service owns the kind.
func ownersVerbs(k *descriptor.Kind) []impossibleVerb {
	if k.Service == "" {
		return nil
	}
	return []impossibleVerb{
		{descriptor.VerbStatus, false, "the service that owns the kind writes the status"},
		{descriptor.VerbFinalize, false, "the service that owns the kind says when a resource is gone"},
		{descriptor.VerbControl, false, "the service that owns the kind controls it"},
		{descriptor.VerbReveal, false, "no service is asked for write-only values"},
	}
}

// impossibleVerbs removes verbs that do not apply to the kind. It reports those that @resource names.
func (l *loader) impossibleVerbs(k *descriptor.Kind, def *ast.Definition) {
	d := l.read(def.Directives, "resource")
	if d == nil {
		return
	}
	hasStatus := def.Fields.ForName("status") != nil
	unread := hasStatus && k.Status == nil // reported elsewhere
	for _, of := range append(ownersVerbs(k), []impossibleVerb{
		{descriptor.VerbStatus, hasStatus, "the kind has no status"},
		{descriptor.VerbFinalize, k.Has(descriptor.VerbPatch), "finalizers are changed by patches, and the kind does not offer PATCH"},
		{descriptor.VerbControl, k.HasConditions() || unread, "the status of the kind has no conditions"},
		{descriptor.VerbReveal, k.Sensitive, "the kind is not sensitive"},
	}...) {
		if of.possible || !k.Has(of.verb) {
			continue
		}
		if d.has("verbs") {
			l.report(d.at("verbs"), "kind %s: verb %s: %s", k.Name, of.verb, of.why)
		}
		k.Verbs = slices.DeleteFunc(k.Verbs, func(v descriptor.Verb) bool { return v == of.verb })
	}
}

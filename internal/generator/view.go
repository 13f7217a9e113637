package generator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	sdl "github.com/sluicegw/sluice/graph/kinds"
)

// kindView is what the templates ask of a kind.
type kindView struct {
	sdl.Kind
	// Inverses are the connections of those who refer to the kind.
	Inverses []inverseView
}

// views are those of all kinds, in the order of the schema.
func views(schema *sdl.Schema) []*kindView {
	out := make([]*kindView, len(schema.Kinds))
	byName := map[string]*kindView{}
	for i, k := range schema.Kinds {
		out[i] = &kindView{Kind: k}
		byName[k.Name] = out[i]
	}
	for _, v := range out {
		for _, r := range v.Refs {
			if r.Inverse != "" {
				to := byName[r.Kind]
				to.Inverses = append(to.Inverses, inverseView{referenceView: referenceView{r}, Kind: v})
			}
		}
	}
	return out
}

// Namespaced says whether names of the kind live in namespaces.
func (v *kindView) Namespaced() bool { return v.Scope == backend.Namespaced }

// SpecType is the type of the spec.
func (v *kindView) SpecType() string { return v.Spec.Name }

// StatusType is the type of the status, empty if there is none.
func (v *kindView) StatusType() string {
	if v.Status == nil {
		return ""
	}
	return v.Status.Name
}

// SpecInput is the name of the input of the spec.
func (v *kindView) SpecInput() string { return sdl.InputType(v.Spec.Name) }

// SpecPatch is the name of the patch of the spec.
func (v *kindView) SpecPatch() string { return sdl.PatchType(v.Spec.Name) }

// StatusInput is the name of the input of the status.
func (v *kindView) StatusInput() string { return sdl.InputType(v.Status.Name) }

// SubKindList names the varieties of the kind.
func (v *kindView) SubKindList() string { return strings.Join(v.SubKinds, ", ") }

// Writable says whether the kind has any mutation.
func (v *kindView) Writable() bool {
	return slices.ContainsFunc([]backend.Verb{
		backend.VerbCreate, backend.VerbUpdate, backend.VerbPatch, backend.VerbUpsert, backend.VerbStatus, backend.VerbDelete,
	}, v.Has)
}

// About is the author's description of a field of the kind, or one for all kinds.
func (v *kindView) About(field, otherwise string) string {
	if f := v.Definition.Fields.ForName(field); f != nil && f.Description != "" {
		return f.Description
	}
	return otherwise
}

// Title is the author's description of the kind, or one for all kinds.
func (v *kindView) Title() string {
	if v.Description != "" {
		return v.Description
	}
	return "A resource of kind " + v.Name + "."
}

// Derived are the references whose field stands on the kind.
func (v *kindView) Derived() []referenceView { return referencesOn(v.Name, v.Refs) }

// referencesOn are the references whose field stands on a type, one of each name.
func referencesOn(owner string, refs []sdl.Reference) []referenceView {
	var out []referenceView
	for _, r := range refs {
		if r.Owner == owner && !slices.ContainsFunc(out, func(o referenceView) bool { return o.Field == r.Field }) {
			out = append(out, referenceView{r})
		}
	}
	return out
}

// referenceView is a reference as the templates see it.
type referenceView struct{ sdl.Reference }

// name of the field that holds the reference, as its own type sees it.
func (r referenceView) name() string { return r.Path[strings.LastIndex(r.Path, ".")+1:] }

// Description of the derived field.
func (r referenceView) Description() string {
	if r.List {
		return fmt.Sprintf("Resources of kind %s that %s names, those that there are, in the order of their names.", r.Kind, r.name())
	}
	return fmt.Sprintf("The %s that %s names; null if there is none.", r.Kind, r.name())
}

// Deprecation is that of the reference.
func (r referenceView) Deprecation() string {
	if r.Deprecated == "" {
		return ""
	}
	return fmt.Sprintf(" @deprecated(reason: %q)", r.Deprecated)
}

// inverseView is the connection of those who refer to a kind by one reference.
type inverseView struct {
	referenceView
	// Kind that refers.
	Kind *kindView
}

// Description of the connection.
func (v inverseView) Description() string {
	return fmt.Sprintf("Resources of kind %s whose %s names this one. Without orderBy they are in the order of their names.", v.Kind.Name, v.Path)
}

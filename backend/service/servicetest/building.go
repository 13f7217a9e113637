package servicetest

import (
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Building returns kinds with references. A Door is in a Room. A Key opens a Door and is kept by a Guest. A Guest has
// no conditions.
func Building() []descriptor.Kind {
	n := func(i int) *int { return &i }
	verbs := []descriptor.Verb{
		descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate,
		descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus, descriptor.VerbFinalize,
		descriptor.VerbControl, descriptor.VerbDelete,
	}
	condition := &descriptor.Shape{Name: "Condition", Fields: []descriptor.Field{
		{Name: "type", Type: descriptor.TypeString},
		{Name: "status", Type: descriptor.TypeString},
		{Name: "reason", Type: descriptor.TypeString},
		{Name: "message", Type: descriptor.TypeString},
		{Name: "observedGeneration", Type: descriptor.TypeSafeInt},
		{Name: "lastTransitionTime", Type: descriptor.TypeTime},
	}}
	conditions := descriptor.Field{
		Name: "conditions", Type: descriptor.TypeObject, Shape: condition, List: true, ListType: descriptor.ListAtomic,
	}
	text := func(name string, most int) descriptor.Field {
		return descriptor.Field{Name: name, Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: n(most)}}
	}
	of := func(name string, refs ...descriptor.Reference) descriptor.Kind {
		spec := &descriptor.Shape{Name: name + "Spec", Fields: []descriptor.Field{text("title", 50)}}
		for _, r := range refs {
			f := text(strings.TrimPrefix(r.Path, "spec."), 253)
			if strings.HasSuffix(f.Name, "Refs") {
				f.List = true
				f.ListType = descriptor.ListSet
				f.Constraint.MaxItems = n(1000)
			}
			spec.Fields = append(spec.Fields, f)
		}
		singular := strings.ToLower(name)
		return descriptor.Kind{
			Name: name, Singular: singular, Plural: singular + "s", Group: "example.org", Version: "v1",
			Scope: descriptor.Namespaced, Verbs: verbs, Spec: spec, References: refs,
			Status: &descriptor.Shape{Name: name + "Status", Fields: []descriptor.Field{conditions}},
		}
	}
	guest := of("Guest")
	guest.Status = nil
	guest.Verbs = slices.DeleteFunc(slices.Clone(verbs), func(v descriptor.Verb) bool { return v == descriptor.VerbControl })
	return []descriptor.Kind{
		of("Room"), guest,
		of("Door", descriptor.Reference{Path: "spec.roomRef", Kind: "Room", Field: "room", Guarded: true}),
		of("Key",
			descriptor.Reference{Path: "spec.doorRefs", Kind: "Door", Field: "doors", Guarded: true},
			descriptor.Reference{Path: "spec.guestRef", Kind: "Guest", Field: "guest"},
			descriptor.Reference{Path: "spec.keyRef", Kind: "Key", Field: "key"},
		),
	}
}

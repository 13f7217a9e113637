package kinds

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Sentences in descriptions of status fields: without a maximum, for a list of objects without a maximum, and with a
// maximum.
const (
	notValidated = "Not validated; the whole resource is at most 1 MiB."
	unbounded    = "As many elements as fit; the whole resource is at most 1 MiB."
	nothingElse  = "Nothing else is validated."
)

// derivedInput is an input type in the template.
type derivedInput struct {
	Name, Description string
	Fields            []derivedField
}

type derivedField struct{ Name, Type, Description, Deprecated string }

func (d *derivedInput) has(field string) bool {
	return slices.ContainsFunc(d.Fields, func(f derivedField) bool { return f.Name == field })
}

// typeDerivation derives input, patch and filter types from the object types and enums of specs and statuses.
type typeDerivation struct {
	derivation
	schema *Schema
	byName map[string]*derivedInput
}

func deriveTypes(schema *Schema) derivation {
	d := &typeDerivation{
		schema:     schema,
		byName:     map[string]*derivedInput{},
		derivation: derivation{Enums: map[string]bool{}, EnumLists: map[string]bool{}},
	}
	// Specs come first, so that a type that both use has the limits of the spec.
	for _, k := range schema.Kinds {
		d.whole(k.Spec, inSpec)
		if k.Has(descriptor.VerbPatch) {
			d.patch(k.Spec, inSpec)
		}
	}
	for _, k := range schema.Kinds {
		if k.Status != nil && k.Has(descriptor.VerbStatus) {
			d.whole(k.Status, inStatus)
			d.patch(k.Status, inStatus)
		}
		if k.Has(descriptor.VerbList) || k.Has(descriptor.VerbWatch) {
			d.filter(&k, k.Spec, "spec")
			d.filter(&k, k.Status, "status")
		}
	}
	return d.derivation
}

// input returns the input type with a name, and whether it is new.
func (d *typeDerivation) input(name, about string) (out *derivedInput, isNew bool) {
	out = d.byName[name]
	if out != nil {
		return out, false
	}
	out = &derivedInput{Name: name, Description: about}
	d.byName[name], d.Inputs = out, append(d.Inputs, out)
	return out, true
}

// whole derives the input type of an object type. It has the same fields, no defaults, and descriptions that state the
// limits.
func (d *typeDerivation) whole(s *descriptor.Shape, p part) {
	if s.Name == condition { // the API has it
		return
	}
	in, isNew := d.input(InputType(s.Name), d.about(s))
	if !isNew {
		return
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		in.Fields = append(in.Fields, derivedField{
			f.InAPI(),
			inputType(f, InputType, f.Required),
			paragraph(f.Description, limitsIn(f, p)),
			f.Deprecated,
		})
		if f.Shape != nil {
			d.whole(f.Shape, p)
		}
	}
}

// patch derives the patch type of an object type. It has the same fields, all nullable. Objects in it are patches too,
// but elements of lists are whole inputs.
func (d *typeDerivation) patch(s *descriptor.Shape, p part) {
	in, isNew := d.input(PatchType(s.Name), paragraph(d.about(s), "What is left out stays as it is; null clears. Objects merge, lists are replaced."))
	if !isNew {
		return
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		name := PatchType
		if f.List {
			name = InputType
		}
		text := limitsIn(f, p)
		if f.Required {
			text = paragraph(text, "Required: it cannot be cleared.")
		}
		if f.Type == descriptor.TypeMap {
			text = paragraph(text, "Entries that are left out stay as they are.")
		}
		in.Fields = append(in.Fields, derivedField{
			f.InAPI(),
			inputType(f, name, false),
			paragraph(f.Description, text),
			f.Deprecated,
		})
		if f.Shape != nil && !f.List {
			d.patch(f.Shape, p)
		}
	}
}

// limitsIn describes what a field of a spec or status accepts.
func limitsIn(f *descriptor.Field, p part) string {
	if p == inStatus {
		return statusLimits(f)
	}
	return limits(f)
}

// about returns the author's description of an object type, with the messages of its rules.
func (d *typeDerivation) about(s *descriptor.Shape) string {
	text := ""
	if of := definition(d.schema, s.Name); of != nil {
		text = of.Description
	}
	for _, r := range s.Rules {
		text = paragraph(text, sentence(r.Message))
	}
	return text
}

func definition(schema *Schema, name string) *ast.Definition {
	for _, d := range schema.Documents {
		if def := d.Definitions.ForName(name); def != nil {
			return def
		}
	}
	return nil
}

// inputType returns the type of a field in an input. name returns the name of the input type for an object type.
func inputType(f *descriptor.Field, name func(object string) string, required bool) string {
	typ, list := string(f.Type), f.List
	switch f.Type {
	case descriptor.TypeObject:
		typ = name(f.Shape.Name)
	case descriptor.TypeEnum:
		typ = f.Enum.Name
	case descriptor.TypeMap:
		typ, list = name(mapEntry), true
	}
	if list {
		typ = "[" + typ + "!]"
	}
	if required {
		typ += "!"
	}
	return typ
}

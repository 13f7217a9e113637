package kinds

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// What is said of a field of a status: of one without a maximum, of a list of objects
// without one, and of one that has a maximum.
const (
	notValidated = "Not validated; the whole resource is at most 1 MiB."
	unbounded    = "As many elements as fit; the whole resource is at most 1 MiB."
	nothingElse  = "Nothing else is validated."
)

// typeDerivation derives inputs, patches and filters from the object types and
// enums of specs and statuses.
type typeDerivation struct {
	schema *Schema
	// inputs, patches and filters by the name of the author's type.
	inputs, patches, filters map[string]*ast.Definition
	// listFilters are those of lists of an enum, by its name.
	listFilters map[string]*ast.Definition
}

func deriveTypes(schema *Schema) *typeDerivation {
	d := &typeDerivation{
		schema: schema, inputs: map[string]*ast.Definition{}, patches: map[string]*ast.Definition{},
		filters: map[string]*ast.Definition{}, listFilters: map[string]*ast.Definition{},
	}
	// Specs first: a type of both has the limits of the spec.
	for _, k := range schema.Kinds {
		d.input(k.Spec, inSpec)
		if k.Has(descriptor.VerbPatch) {
			d.patch(k.Spec, inSpec)
		}
	}
	for _, k := range schema.Kinds {
		if k.Status != nil && k.Has(descriptor.VerbStatus) {
			d.input(k.Status, inStatus)
			d.patch(k.Status, inStatus)
		}
		if k.Has(descriptor.VerbList) || k.Has(descriptor.VerbWatch) {
			d.filter(&k, k.Spec, "spec")
			d.filter(&k, k.Status, "status")
		}
	}
	return d
}

// of are the definitions that are derived from a type.
func (d *typeDerivation) of(name string) []*ast.Definition {
	var out []*ast.Definition
	for _, defs := range []map[string]*ast.Definition{d.inputs, d.patches, d.filters, d.listFilters} {
		if def := defs[name]; def != nil {
			out = append(out, def)
		}
	}
	return out
}

// input derives the input of an object type: its fields, no defaults, and
// descriptions that state the limits.
func (d *typeDerivation) input(s *descriptor.Shape, p part) {
	if d.inputs[s.Name] != nil || s.Name == condition {
		return
	}
	def := &ast.Definition{Kind: ast.InputObject, Name: InputType(s.Name), Description: d.about(s)}
	d.inputs[s.Name] = def
	for i := range s.Fields {
		f := &s.Fields[i]
		text := limits(f)
		if p == inStatus {
			text = statusLimits(f)
		}
		def.Fields = append(def.Fields, &ast.FieldDefinition{
			Name: f.InAPI(), Type: inputType(f, InputType), Description: paragraph(f.Description, text), Directives: deprecated(f.Deprecated),
		})
		if f.Shape != nil {
			d.input(f.Shape, p)
		}
	}
}

// patch derives the patch of an object type: its fields, all of them nullable.
// Objects in it are patches too; elements of lists are whole inputs.
func (d *typeDerivation) patch(s *descriptor.Shape, p part) {
	if d.patches[s.Name] != nil {
		return
	}
	def := &ast.Definition{
		Kind: ast.InputObject, Name: PatchType(s.Name),
		Description: paragraph(d.about(s), "What is left out stays as it is; null clears. Objects merge, lists are replaced."),
	}
	d.patches[s.Name] = def
	for i := range s.Fields {
		f := &s.Fields[i]
		optional := *f
		optional.Required = false
		name := PatchType
		if f.List {
			name = InputType
		}
		text := limits(f)
		if p == inStatus {
			text = statusLimits(f)
		}
		if f.Required {
			text = paragraph(text, "Required: it cannot be cleared.")
		}
		if f.Type == descriptor.TypeMap {
			text = paragraph(text, "Entries that are left out stay as they are.")
		}
		def.Fields = append(def.Fields, &ast.FieldDefinition{
			Name: f.InAPI(), Type: inputType(&optional, name), Description: paragraph(f.Description, text), Directives: deprecated(f.Deprecated),
		})
		if f.Shape != nil && !f.List {
			d.patch(f.Shape, p)
		}
	}
}

// about is the author's description of an object type and the messages of its rules.
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

// inputType is the type of a field in an input; name gives that of an object type's.
func inputType(f *descriptor.Field, name func(object string) string) *ast.Type {
	typ, list := string(f.Type), f.List
	switch f.Type {
	case descriptor.TypeObject:
		typ = name(f.Shape.Name)
	case descriptor.TypeEnum:
		typ = f.Enum.Name
	case descriptor.TypeMap:
		typ, list = name("MapEntry"), true
	}
	if list {
		return &ast.Type{Elem: ast.NonNullNamedType(typ, nil), NonNull: f.Required}
	}
	return &ast.Type{NamedType: typ, NonNull: f.Required}
}

func deprecated(reason string) ast.DirectiveList {
	if reason == "" {
		return nil
	}
	return ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{
		{Name: "reason", Value: &ast.Value{Raw: reason, Kind: ast.StringValue}},
	}}}
}

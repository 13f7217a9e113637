package proto

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Schema has the protobuf messages and services of a catalogue. It is never changed.
type Schema struct {
	// File has all services and messages.
	File protoreflect.FileDescriptor
	// Kinds are the kinds of the catalogue, in its order.
	Kinds []Kind

	numbers *Numbers
	text    string
}

// Kind is a kind, with its service and the message of its resources.
type Kind struct {
	*descriptor.Kind
	Service  protoreflect.ServiceDescriptor
	Resource protoreflect.MessageDescriptor
	// ResourceField is the name of the field that has the resource in a request. ResourcesField is the name of the
	// field that has the resources of a page.
	ResourceField, ResourcesField protoreflect.Name
	names                         methods
}

// Method returns the method of a verb; nil if there is none.
func (k *Kind) Method(verb descriptor.Verb) protoreflect.MethodDescriptor {
	name := map[descriptor.Verb]string{
		descriptor.VerbCreate: k.names.create,
		descriptor.VerbUpdate: k.names.update,
		descriptor.VerbUpsert: k.names.upsert,
		descriptor.VerbGet:    k.names.get,
		descriptor.VerbList:   k.names.list,
		descriptor.VerbDelete: k.names.delete,
		descriptor.VerbWatch:  k.names.watch,
	}[verb]
	return k.Service.Methods().ByName(protoreflect.Name(name))
}

// New returns the protobuf of kinds. If parts of the kinds have no numbers, the error is a [MissingError]. If the
// numbers have other names for fields and values, the names of the kinds are used, because the file of numbers and the
// catalogue of a gateway are not changed at the same time.
func New(kinds []*descriptor.Kind, n *Numbers) (*Schema, error) {
	known := n.clone()
	missing, _ := known.add(kinds)
	if len(missing) > 0 {
		return nil, &MissingError{missing}
	}
	m := modelOf(kinds, known)
	file, err := protodesc.NewFile(m.describe(), protoregistry.GlobalFiles)
	if err != nil {
		return nil, fmt.Errorf("protobuf cannot have the names of this catalogue: %w", err)
	}
	out := &Schema{File: file, numbers: known, text: m.print()}
	for _, k := range kinds {
		names := methodsOf(k)
		out.Kinds = append(out.Kinds, Kind{
			Kind:           k,
			Service:        file.Services().ByName(protoreflect.Name(names.service)),
			Resource:       file.Messages().ByName(protoreflect.Name(k.Name)),
			ResourceField:  protoreflect.Name(names.resourceField),
			ResourcesField: protoreflect.Name(names.resourcesField),
			names:          names,
		})
	}
	return out, nil
}

// Print returns the text of the .proto file.
func (s *Schema) Print() string { return s.text }

// Path returns the path of the .proto file. It follows from the package.
func (s *Schema) Path() string { return s.File.Path() }

// Field returns the field of a message for the field f of the SDL; nil if there is none. shape is the name of the SDL
// type that has f.
func (s *Schema) Field(
	message protoreflect.MessageDescriptor, shape string, f *descriptor.Field,
) protoreflect.FieldDescriptor {
	section := s.numbers.messages[shape]
	if section == nil {
		return nil
	}
	l := section.find(typeOf(f), f.Name)
	if l == nil {
		return nil
	}
	return message.Fields().ByNumber(protoreflect.FieldNumber(l.number))
}

// Part returns the field for the spec or the status in the message of the kind's resources; nil if there is none. name
// is "spec" or "status".
func (k *Kind) Part(name protoreflect.Name) protoreflect.FieldDescriptor {
	return k.Resource.Fields().ByName(name)
}

// Values maps the stored forms of an enum's values to their numbers.
func (s *Schema) Values(e *descriptor.Enum) map[string]protoreflect.EnumNumber {
	out := map[string]protoreflect.EnumNumber{}
	for _, l := range s.numbers.enums[e.Name].lines {
		if e.Has(l.stored) {
			out[l.stored] = protoreflect.EnumNumber(l.number)
		}
	}
	return out
}

// EventType returns the number of a type of event.
func EventType(name string) protoreflect.EnumNumber {
	for i, v := range eventTypes() {
		if v.name == name {
			return protoreflect.EnumNumber(i)
		}
	}
	return 0
}

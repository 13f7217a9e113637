package rpc

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/proto"
)

// shape connects the stored form of an object type with its message.
type shape struct {
	message protoreflect.MessageDescriptor
	fields  []field
	// byNumber maps the numbers of the message's fields to the fields.
	byNumber map[protoreflect.FieldNumber]*field
}

// field connects a field of a type with the field of the message.
type field struct {
	*descriptor.Field
	message protoreflect.FieldDescriptor
	// slot is the slot of the field in bodies.
	slot int
	// shape is the shape of an object, or of the elements of a list of objects.
	shape *shape
	// numbers maps the stored forms of enum values to their numbers. stored is the inverse.
	numbers map[string]protoreflect.EnumNumber
	stored  map[protoreflect.EnumNumber]string
}

// compiler compiles the shapes of a catalogue.
type compiler struct {
	messages *proto.Schema
	done     map[shapeKey]*shape
}

type shapeKey struct {
	declared *descriptor.Shape
	stored   *body.Shape
}

// shape compiles the shape of a type. stored is the shape of its bodies.
func (c *compiler) shape(
	message protoreflect.MessageDescriptor, declared *descriptor.Shape, stored *body.Shape,
) (*shape, error) {
	key := shapeKey{declared, stored}
	if out := c.done[key]; out != nil {
		return out, nil
	}
	out := &shape{
		message:  message,
		fields:   make([]field, len(declared.Fields)),
		byNumber: map[protoreflect.FieldNumber]*field{},
	}
	c.done[key] = out
	for i := range declared.Fields {
		f := &out.fields[i]
		if err := c.field(f, &declared.Fields[i], out.message, declared.Name, stored); err != nil {
			return nil, err
		}
		out.byNumber[f.message.Number()] = f
	}
	return out, nil
}

func (c *compiler) field(
	f *field, declared *descriptor.Field, in protoreflect.MessageDescriptor, typ string, stored *body.Shape,
) error {
	f.Field = declared
	f.message = c.messages.Field(in, typ, declared)
	slot, known := stored.Slot(declared.Name)
	if f.message == nil || !known {
		return fmt.Errorf("rpc: %s.%s has no message or is not stored", typ, declared.Name)
	}
	f.slot = slot
	if declared.Enum != nil {
		f.numbers = c.messages.Values(declared.Enum)
		f.stored = map[protoreflect.EnumNumber]string{}
		for text, number := range f.numbers {
			f.stored[number] = text
		}
	}
	if declared.Shape == nil {
		return nil
	}
	var err error
	f.shape, err = c.shape(f.message.Message(), declared.Shape, stored.Fields[slot].Shape)
	return err
}

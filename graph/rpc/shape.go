package rpc

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/proto"
)

// shape is the stored form of an object type, together with its message.
type shape struct {
	message protoreflect.MessageDescriptor
	fields  []field
	// byNumber has the fields by their numbers in the message.
	byNumber map[protoreflect.FieldNumber]*field
}

// field is a field of a type, together with the field of its message.
type field struct {
	*descriptor.Field
	message protoreflect.FieldDescriptor
	// slot of the field in stored bodies.
	slot int
	// shape of an object, or of the elements of a list of objects.
	shape *shape
	// numbers has the numbers of enum values by their stored forms; stored is the inverse.
	numbers map[string]protoreflect.EnumNumber
	stored  map[protoreflect.EnumNumber]string
}

// compiler makes the shapes of a catalogue.
type compiler struct {
	messages *proto.Schema
	done     map[shapeKey]*shape
}

type shapeKey struct {
	declared *descriptor.Shape
	stored   *body.Shape
}

// shape returns the shape of a type. stored is the shape of its bodies.
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

package rpc

import (
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// resourceFields are the fields of the resource message of a kind.
type resourceFields struct {
	kind, subKind, version, metadata, spec, status protoreflect.FieldDescriptor
}

func resourceFieldsOf(m protoreflect.MessageDescriptor) resourceFields {
	of := m.Fields()
	return resourceFields{
		kind:     of.ByName("kind"),
		subKind:  of.ByName("sub_kind"),
		version:  of.ByName("version"),
		metadata: of.ByName("metadata"),
		spec:     of.ByName("spec"),
		status:   of.ByName("status"),
	}
}

// named returns a resource message that has only a name.
func (k *kind) named(key backend.Key) *dynamicpb.Message {
	out := dynamicpb.NewMessage(k.Resource)
	out.Set(k.fields.kind, protoreflect.ValueOfString(k.Name))
	out.Set(k.fields.version, protoreflect.ValueOfString(k.Version))
	metadata := out.Mutable(k.fields.metadata).Message()
	setText(metadata, "name", key.Name)
	setText(metadata, "namespace", key.Namespace)
	return out
}

// resource returns the message of a stored resource. If the body cannot be read, b is nil.
func (k *kind) resource(stored *backend.Resource, b *body.Body) *dynamicpb.Message {
	out := k.named(stored.Key)
	metadata := out.Mutable(k.fields.metadata).Message()
	setText(metadata, "uid", stored.UID)
	if !stored.Revision.IsZero() {
		setText(metadata, "revision", stored.Revision.String())
	}
	setTime(metadata, "create_time", stored.CreatedAt)
	setTime(metadata, "update_time", stored.UpdatedAt)
	setTime(metadata, "expires", stored.ExpiresAt)
	if b == nil {
		return out
	}
	if span := b.At(body.Root, body.SlotSubKind); !span.IsZero() {
		out.Set(k.fields.subKind, protoreflect.ValueOfString(b.Text(span)))
	}
	encodeMetadata(metadata, b)
	encodePart(out, k.fields.spec, k.spec, b, body.SlotSpec)
	if k.status != nil {
		encodePart(out, k.fields.status, k.status, b, body.SlotStatus)
	}
	return out
}

// encodePart sets the field for the spec or the status.
func encodePart(out *dynamicpb.Message, at protoreflect.FieldDescriptor, s *shape, b *body.Body, slot int) {
	if span := b.At(body.Root, slot); !span.IsZero() {
		s.encode(out.Mutable(at).Message(), b, b.Object(span))
	}
}

// encodeMetadata sets the metadata that is stored in the body.
func encodeMetadata(out protoreflect.Message, b *body.Body) {
	at := b.At(body.Root, body.SlotMetadata)
	if at.IsZero() {
		return
	}
	table := b.Object(at)
	setText(out, "description", b.Text(b.At(table, body.SlotDescription)))
	setText(out, "updated_by", b.Text(b.At(table, body.SlotUpdatedBy)))
	if span := b.At(table, body.SlotGeneration); !span.IsZero() {
		if n, ok := jsontree.Integer(json.Number(b.Bytes(span))); ok {
			out.Set(fieldOf(out, "generation"), protoreflect.ValueOfInt64(n))
		}
	}
	encodeMap(out, fieldOf(out, "labels"), b, b.At(table, body.SlotLabels))
	encodeMap(out, fieldOf(out, "annotations"), b, b.At(table, body.SlotAnnotations))
	if at, err := descriptor.ParseTime(b.Text(b.At(table, body.SlotDeletionRequestedAt))); err == nil {
		setTime(out, "delete_time", at)
	}
	if span := b.At(table, body.SlotFinalizers); !span.IsZero() {
		list := out.Mutable(fieldOf(out, "finalizers")).List()
		for raw := range b.Scalars(span) {
			list.Append(protoreflect.ValueOfString(unquote(raw)))
		}
	}
}

func fieldOf(m protoreflect.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

// setText sets a string field unless text is empty.
func setText(m protoreflect.Message, name protoreflect.Name, text string) {
	if text != "" {
		m.Set(fieldOf(m, name), protoreflect.ValueOfString(text))
	}
}

// setTime sets a time field unless the time is zero.
func setTime(m protoreflect.Message, name protoreflect.Name, at time.Time) {
	if !at.IsZero() {
		f := fieldOf(m, name)
		m.Set(f, timestamp(m.NewField(f).Message(), at))
	}
}

// timestamp returns a google.protobuf.Timestamp, which may be a dynamic message.
func timestamp(m protoreflect.Message, at time.Time) protoreflect.Value {
	t := timestamppb.New(at)
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(t.GetSeconds()))
	m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(t.GetNanos()))
	return protoreflect.ValueOfMessage(m)
}

func unquote(raw []byte) string { return string(body.Unquote(nil, raw)) }

// encode sets the fields of a message from an object in a body. Write-only values were removed from the body before.
func (s *shape) encode(out protoreflect.Message, b *body.Body, table body.Table) {
	for i := range s.fields {
		f := &s.fields[i]
		span := b.At(table, f.slot)
		if f.WriteOnly || span.IsZero() {
			continue
		}
		switch {
		case f.Type == descriptor.TypeMap:
			encodeMap(out, f.message, b, span)
		case f.Type == descriptor.TypeObject && f.List:
			list := out.Mutable(f.message).List()
			for _, at := range b.Objects(span) {
				element := list.NewElement()
				f.shape.encode(element.Message(), b, at)
				list.Append(element)
			}
		case f.Type == descriptor.TypeObject:
			f.shape.encode(out.Mutable(f.message).Message(), b, b.Object(span))
		case f.List:
			list := out.Mutable(f.message).List()
			for raw := range b.Scalars(span) {
				if v := f.scalar(list.NewElement, raw); v.IsValid() {
					list.Append(v)
				}
			}
		default:
			newMessage := func() protoreflect.Value { return out.NewField(f.message) }
			if v := f.scalar(newMessage, b.Bytes(span)); v.IsValid() {
				out.Set(f.message, v)
			}
		}
	}
}

func encodeMap(out protoreflect.Message, at protoreflect.FieldDescriptor, b *body.Body, span body.Span) {
	if span.IsZero() {
		return
	}
	entries := out.Mutable(at).Map()
	for key, value := range b.Entries(span) {
		entries.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
	}
}

// scalar converts a stored scalar to the value of a field. For a stored time that cannot be parsed, the value is
// invalid. For an enum value without a number, it is 0.
func (f *field) scalar(newMessage func() protoreflect.Value, raw []byte) protoreflect.Value {
	switch f.Type {
	case descriptor.TypeInt:
		n, _ := jsontree.Integer(json.Number(raw))
		return protoreflect.ValueOfInt32(int32(n))
	case descriptor.TypeSafeInt:
		n, _ := jsontree.Integer(json.Number(raw))
		return protoreflect.ValueOfInt64(n)
	case descriptor.TypeFloat:
		n, _ := strconv.ParseFloat(string(raw), 64)
		return protoreflect.ValueOfFloat64(n)
	case descriptor.TypeBoolean:
		return protoreflect.ValueOfBool(raw[0] == 't')
	case descriptor.TypeEnum:
		return protoreflect.ValueOfEnum(f.numbers[unquote(raw)])
	case descriptor.TypeTime:
		at, err := descriptor.ParseTime(unquote(raw))
		if err != nil {
			return protoreflect.Value{}
		}
		return timestamp(newMessage().Message(), at)
	}
	return protoreflect.ValueOfString(unquote(raw))
}

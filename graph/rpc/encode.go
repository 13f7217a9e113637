package rpc

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// resourceFields are the fields of the resource message of a kind.
type resourceFields struct {
	kind, subKind, version, metadata, spec, status protoreflect.FieldDescriptor
	// inMetadata are the fields of the metadata.
	inMetadata protoreflect.FieldDescriptors
}

func resourceFieldsOf(m protoreflect.MessageDescriptor) resourceFields {
	of := m.Fields()
	metadata := of.ByName("metadata")
	return resourceFields{
		kind:       of.ByName("kind"),
		subKind:    of.ByName("sub_kind"),
		version:    of.ByName("version"),
		metadata:   metadata,
		spec:       of.ByName("spec"),
		status:     of.ByName("status"),
		inMetadata: metadata.Message().Fields(),
	}
}

// encoder encodes messages directly from stored resources. A dynamic message in between would take up to a hundred
// times as much memory as the encoded one.
type encoder struct{ data []byte }

func (e *encoder) tag(f protoreflect.FieldDescriptor, typ protowire.Type) {
	e.data = protowire.AppendTag(e.data, f.Number(), typ)
}

// begin begins a field whose value is preceded by its length. The caller passes its result to end after the value.
func (e *encoder) begin(f protoreflect.FieldDescriptor) (at int) {
	e.tag(f, protowire.BytesType)
	e.data = append(e.data, 0)
	return len(e.data)
}

// end writes the length of the value that begins at at. A value of more than 127 bytes is moved, because its length
// takes more than one byte.
func (e *encoder) end(at int) {
	size := len(e.data) - at
	more := protowire.SizeVarint(uint64(size)) - 1
	if more > 0 {
		var gap [9]byte
		e.data = append(e.data, gap[:more]...)
		copy(e.data[at+more:], e.data[at:at+size])
	}
	protowire.AppendVarint(e.data[:at-1], uint64(size))
}

// varint encodes a field with an integer, a bool or an enum.
func (e *encoder) varint(f protoreflect.FieldDescriptor, n uint64) {
	e.tag(f, protowire.VarintType)
	e.data = protowire.AppendVarint(e.data, n)
}

// text encodes a string field unless text is empty.
func (e *encoder) text(f protoreflect.FieldDescriptor, text string) {
	if text != "" {
		e.tag(f, protowire.BytesType)
		e.data = protowire.AppendString(e.data, text)
	}
}

// time encodes a field of type google.protobuf.Timestamp unless the time is zero.
func (e *encoder) time(f protoreflect.FieldDescriptor, t time.Time) {
	if !t.IsZero() {
		e.timestamp(f, t)
	}
}

// timestamp encodes a field of type google.protobuf.Timestamp.
func (e *encoder) timestamp(f protoreflect.FieldDescriptor, t time.Time) {
	at := e.begin(f)
	fields := f.Message().Fields()
	stamp := timestamppb.New(t)
	if stamp.Seconds != 0 {
		e.varint(fields.ByNumber(1), uint64(stamp.Seconds))
	}
	if stamp.Nanos != 0 {
		e.varint(fields.ByNumber(2), uint64(stamp.Nanos))
	}
	e.end(at)
}

// entries encodes a map of strings.
func (e *encoder) entries(f protoreflect.FieldDescriptor, b *body.Body, span body.Span) {
	if span.IsZero() {
		return
	}
	for key, value := range b.Entries(span) {
		entry := e.begin(f)
		e.text(f.MapKey(), key)
		e.text(f.MapValue(), value)
		e.end(entry)
	}
}

// named encodes a resource that has only a name, and a revision unless that is empty.
func (k *kind) named(e *encoder, key backend.Key, revision string) {
	k.resource(e, &backend.Resource{Key: key}, nil, revision)
}

// resource encodes a stored resource. If the body cannot be read, b is nil. revision replaces the stored one unless it
// is empty.
func (k *kind) resource(e *encoder, stored *backend.Resource, b *body.Body, revision string) {
	if revision == "" && !stored.Revision.IsZero() {
		revision = stored.Revision.String()
	}
	e.text(k.fields.kind, k.Name)
	if b != nil {
		e.text(k.fields.subKind, b.Text(b.At(body.Root, body.SlotSubKind)))
	}
	e.text(k.fields.version, k.Version)
	fields := k.fields.inMetadata
	metadata := e.begin(k.fields.metadata)
	e.text(fields.ByName("name"), stored.Key.Name)
	e.text(fields.ByName("namespace"), stored.Key.Namespace)
	e.text(fields.ByName("uid"), stored.UID)
	e.text(fields.ByName("revision"), revision)
	e.time(fields.ByName("create_time"), stored.CreatedAt)
	e.time(fields.ByName("update_time"), stored.UpdatedAt)
	e.time(fields.ByName("expires"), stored.ExpiresAt)
	if b != nil {
		k.metadata(e, b)
	}
	e.end(metadata)
	if b == nil {
		return
	}
	e.part(k.fields.spec, k.spec, b, body.SlotSpec)
	if k.status != nil {
		e.part(k.fields.status, k.status, b, body.SlotStatus)
	}
}

// part encodes the spec or the status.
func (e *encoder) part(f protoreflect.FieldDescriptor, s *shape, b *body.Body, slot int) {
	if span := b.At(body.Root, slot); !span.IsZero() {
		at := e.begin(f)
		s.encode(e, b, b.Object(span))
		e.end(at)
	}
}

// metadata encodes the metadata that is stored in the body.
func (k *kind) metadata(e *encoder, b *body.Body) {
	at := b.At(body.Root, body.SlotMetadata)
	if at.IsZero() {
		return
	}
	table := b.Object(at)
	fields := k.fields.inMetadata
	e.text(fields.ByName("description"), b.Text(b.At(table, body.SlotDescription)))
	e.text(fields.ByName("updated_by"), b.Text(b.At(table, body.SlotUpdatedBy)))
	if span := b.At(table, body.SlotGeneration); !span.IsZero() {
		if n := integer(b.Bytes(span)); n != 0 {
			e.varint(fields.ByName("generation"), uint64(n))
		}
	}
	e.entries(fields.ByName("labels"), b, b.At(table, body.SlotLabels))
	e.entries(fields.ByName("annotations"), b, b.At(table, body.SlotAnnotations))
	if t, ok := storedTime(b.Text(b.At(table, body.SlotDeletionRequestedAt))); ok {
		e.time(fields.ByName("delete_time"), t)
	}
	if span := b.At(table, body.SlotFinalizers); !span.IsZero() {
		for raw := range b.Scalars(span) {
			e.string(fields.ByName("finalizers"), raw)
		}
	}
}

// string encodes a stored string as a string field, even if the string is empty.
func (e *encoder) string(f protoreflect.FieldDescriptor, raw []byte) {
	at := e.begin(f)
	e.data = body.Unquote(e.data, raw)
	e.end(at)
}

func fieldOf(m protoreflect.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

func unquote(raw []byte) string { return string(body.Unquote(nil, raw)) }

// encode encodes the fields of a message from an object in a body. Write-only values were removed from the body before.
func (s *shape) encode(e *encoder, b *body.Body, table body.Table) {
	for i := range s.fields {
		f := &s.fields[i]
		span := b.At(table, f.slot)
		if f.WriteOnly || span.IsZero() {
			continue
		}
		switch {
		case f.Type == descriptor.TypeMap:
			e.entries(f.message, b, span)
		case f.Type == descriptor.TypeObject && f.List:
			for _, at := range b.Objects(span) {
				f.object(e, b, at)
			}
		case f.Type == descriptor.TypeObject:
			f.object(e, b, b.Object(span))
		case f.List && f.message.IsPacked():
			f.packed(e, b, span)
		case f.List:
			for raw := range b.Scalars(span) {
				f.scalar(e, raw)
			}
		default:
			f.scalar(e, b.Bytes(span))
		}
	}
}

// object encodes an object, or an element of a list of objects.
func (f *field) object(e *encoder, b *body.Body, table body.Table) {
	at := e.begin(f.message)
	f.shape.encode(e, b, table)
	e.end(at)
}

// packed encodes a list of numbers, bools or enums, unless it is empty.
func (f *field) packed(e *encoder, b *body.Body, span body.Span) {
	before := len(e.data)
	at := e.begin(f.message)
	for raw := range b.Scalars(span) {
		f.number(e, raw)
	}
	if len(e.data) == at {
		e.data = e.data[:before]
		return
	}
	e.end(at)
}

// integer returns a stored integer. It may be greater than a SafeInt if it was not stored by this version of the
// catalogue.
func integer(raw []byte) int64 {
	n, _ := strconv.ParseInt(string(raw), 10, 64) // reading the body has checked it
	return n
}

// storedTime parses a stored time. ok is false if it cannot be parsed, or if a google.protobuf.Timestamp cannot have
// it: a Timestamp begins with the year 1, but the API accepts the year 0 too.
func storedTime(text string) (t time.Time, ok bool) {
	t, err := descriptor.ParseTime(text)
	return t, err == nil && t.Unix() >= minTime
}

// scalar encodes a stored scalar, or an element of a list that is not packed. It leaves out a time that storedTime does
// not accept.
func (f *field) scalar(e *encoder, raw []byte) {
	switch f.Type {
	case descriptor.TypeString:
		e.string(f.message, raw)
	case descriptor.TypeTime:
		if t, ok := storedTime(unquote(raw)); ok {
			e.timestamp(f.message, t)
		}
	case descriptor.TypeFloat:
		e.tag(f.message, protowire.Fixed64Type)
		f.number(e, raw)
	default:
		e.tag(f.message, protowire.VarintType)
		f.number(e, raw)
	}
}

// number encodes a number, a bool or an enum without its tag. An enum value without a number is 0.
func (f *field) number(e *encoder, raw []byte) {
	switch f.Type {
	case descriptor.TypeFloat:
		n, _ := strconv.ParseFloat(string(raw), 64)
		e.data = protowire.AppendFixed64(e.data, math.Float64bits(n))
	case descriptor.TypeBoolean:
		e.data = protowire.AppendVarint(e.data, protowire.EncodeBool(raw[0] == 't'))
	case descriptor.TypeEnum:
		e.data = protowire.AppendVarint(e.data, uint64(f.numbers[unquote(raw)]))
	default: // a negative number has ten bytes, whether it has 32 bits or 64
		e.data = protowire.AppendVarint(e.data, uint64(integer(raw)))
	}
}

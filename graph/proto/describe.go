package proto

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// imports returns the paths of all files that the file may import.
func imports() []string {
	return []string{
		emptypb.File_google_protobuf_empty_proto.Path(),
		timestamppb.File_google_protobuf_timestamp_proto.Path(),
	}
}

// path returns the path of the file, which follows from the package.
func (m *model) path() string { return strings.ReplaceAll(m.pkg, ".", "/") + "/kinds.proto" }

// describe returns the model as a descriptor of the file.
func (m *model) describe() *descriptorpb.FileDescriptorProto {
	out := &descriptorpb.FileDescriptorProto{
		Name:       proto.String(m.path()),
		Package:    proto.String(m.pkg),
		Syntax:     proto.String("proto3"),
		Dependency: imports(),
	}
	for i := range m.services {
		out.Service = append(out.Service, m.describeService(&m.services[i]))
	}
	for i := range m.messages {
		out.MessageType = append(out.MessageType, m.describeMessage(&m.messages[i]))
	}
	for i := range m.enums {
		out.EnumType = append(out.EnumType, describeEnum(&m.enums[i]))
	}
	return out
}

// full returns the name of a type with its package.
func (m *model) full(typ string) string {
	if strings.HasPrefix(typ, "google.protobuf.") {
		return "." + typ
	}
	return "." + m.pkg + "." + typ
}

func (m *model) describeService(s *service) *descriptorpb.ServiceDescriptorProto {
	out := &descriptorpb.ServiceDescriptorProto{Name: proto.String(s.name)}
	for _, method := range s.methods {
		one := &descriptorpb.MethodDescriptorProto{
			Name:       proto.String(method.name),
			InputType:  proto.String(m.full(method.input)),
			OutputType: proto.String(m.full(method.output)),
		}
		if method.streams {
			one.ServerStreaming = proto.Bool(true)
		}
		out.Method = append(out.Method, one)
	}
	return out
}

func (m *model) describeMessage(of *message) *descriptorpb.DescriptorProto {
	out := &descriptorpb.DescriptorProto{Name: proto.String(of.name), ReservedName: of.reservedNames}
	var oneofs []*descriptorpb.OneofDescriptorProto
	for i := range of.fields {
		f := &of.fields[i]
		one := &descriptorpb.FieldDescriptorProto{
			Name:     proto.String(f.name),
			Number:   proto.Int32(f.number),
			JsonName: proto.String(f.jsonName()),
			Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if f.repeated || f.typ == typeMap {
			one.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if f.deprecated {
			one.Options = &descriptorpb.FieldOptions{Deprecated: proto.Bool(true)}
		}
		switch {
		case f.typ == typeMap:
			entry := mapEntry(f)
			out.NestedType = append(out.NestedType, entry)
			one.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
			one.TypeName = proto.String(m.full(of.name) + "." + entry.GetName())
		case f.isMessage:
			one.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
			one.TypeName = proto.String(m.full(f.typ))
		case f.isEnum:
			one.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
			one.TypeName = proto.String(m.full(f.typ))
		default:
			one.Type = scalarType(f.typ).Enum()
		}
		if f.optional {
			one.Proto3Optional = proto.Bool(true)
			one.OneofIndex = proto.Int32(int32(len(oneofs)))
			oneofs = append(oneofs, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + f.name)})
		}
		out.Field = append(out.Field, one)
	}
	out.OneofDecl = oneofs
	for _, number := range of.reserved {
		out.ReservedRange = append(out.ReservedRange, &descriptorpb.DescriptorProto_ReservedRange{
			Start: proto.Int32(number), End: proto.Int32(number + 1),
		})
	}
	return out
}

// jsonName returns the name of a field in JSON.
func (f *field) jsonName() string {
	if f.json != "" {
		return f.json
	}
	return camel(f.name)
}

func scalarType(typ string) descriptorpb.FieldDescriptorProto_Type {
	switch typ {
	case "int32":
		return descriptorpb.FieldDescriptorProto_TYPE_INT32
	case "int64":
		return descriptorpb.FieldDescriptorProto_TYPE_INT64
	case "double":
		return descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	case "bool":
		return descriptorpb.FieldDescriptorProto_TYPE_BOOL
	}
	return descriptorpb.FieldDescriptorProto_TYPE_STRING
}

// mapEntry returns the message for the entries of a map from strings to strings.
func mapEntry(f *field) *descriptorpb.DescriptorProto {
	text := func(name string, number int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name:     proto.String(name),
			JsonName: proto.String(name),
			Number:   proto.Int32(number),
			Label:    descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			Type:     descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
		}
	}
	return &descriptorpb.DescriptorProto{
		Name:    proto.String(upperFirst(camel(f.name)) + "Entry"),
		Field:   []*descriptorpb.FieldDescriptorProto{text("key", 1), text("value", 2)},
		Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	}
}

func describeEnum(e *enum) *descriptorpb.EnumDescriptorProto {
	out := &descriptorpb.EnumDescriptorProto{Name: proto.String(e.name), ReservedName: e.reservedNames}
	for _, v := range e.values {
		out.Value = append(out.Value, &descriptorpb.EnumValueDescriptorProto{
			Name: proto.String(v.name), Number: proto.Int32(v.number),
		})
	}
	for _, number := range e.reserved {
		out.ReservedRange = append(out.ReservedRange, &descriptorpb.EnumDescriptorProto_EnumReservedRange{
			Start: proto.Int32(number), End: proto.Int32(number),
		})
	}
	return out
}

package standard

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxDepth is the maximum depth of nested messages.
	maxDepth = 16
	// maxFields is the maximum number of fields in all messages of a kind.
	maxFields = 5000
)

// form is the form of a field's values in JSON.
type form int

const (
	formText form = iota
	// formInt is a signed integer of 32 bits. formSafe is an integer within ±(2^53-1), which is exact in all readers of
	// JSON.
	formInt
	formSafe
	// formText64 is an integer of 64 bits, as a string.
	formText64
	formFloat
	formBool
	formBytes
	formEnum
	formTime
	formDuration
	formMessage
	// formMap is a map from strings to strings. formEntries is a map with other types, which JSON shows as a list of
	// objects with key and value.
	formMap
	formEntries
)

// field is a field of a message that is part of the kind.
type field struct {
	protoreflect.FieldDescriptor
	// name is the name in JSON and in the SDL.
	name string
	form form
	list bool
	// wrapped reports whether the value is in a message of google/protobuf/wrappers.proto.
	wrapped bool
	// shape is the shape of a message, or of the entries of a map.
	shape *shape
	// required reports whether the API requires the field. immutable reports whether the API forbids changes of the
	// field.
	required  bool
	immutable bool
	// zero reports whether a zero value is shown, although it may mean that the field is absent.
	zero bool
}

// shape has the fields of a message that are part of the kind.
type shape struct {
	protoreflect.MessageDescriptor
	fields []*field
}

// Omitted is a part of an API that a kind does not have, with the reason.
type Omitted struct {
	// Path is the path of the part. It begins with the name of the kind.
	Path string
	Why  string
}

// String returns the path and the reason.
func (o Omitted) String() string { return o.Path + ": " + o.Why }

// shaper makes the shapes of a kind.
type shaper struct {
	// omit and text are the paths in KindMapping.Omit and KindMapping.Text.
	omit map[string]bool
	text map[string]bool
	// status reports whether the shape belongs to a status, in which all numbers are shown.
	status  bool
	omitted []Omitted
	count   int
}

// shape returns the shape of a message. It has the fields for which chosen returns true, or all fields if chosen is
// nil. path is the path of the message in names of the .proto file. above lists the messages that contain it.
func (s *shaper) shape(
	m protoreflect.MessageDescriptor, path string, above []protoreflect.FullName, chosen func(protoreflect.FieldDescriptor) bool,
) (*shape, error) {
	out := &shape{MessageDescriptor: m}
	names := map[string]bool{}
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		at := joined(path, string(fd.Name()))
		if chosen != nil && !chosen(fd) {
			continue
		}
		if s.count++; s.count > maxFields {
			return nil, fmt.Errorf("it has more than the %d fields that are accepted; omit leaves some out", maxFields)
		}
		f, err := s.field(fd, at, append(slices.Clone(above), m.FullName()))
		var why *reasonError
		switch {
		case errors.As(err, &why):
			s.omitted = append(s.omitted, Omitted{Path: at, Why: why.text})
		case err != nil:
			return nil, err
		case names[f.name]:
			s.omitted = append(s.omitted, Omitted{Path: at, Why: "another field has the name " + f.name})
		default:
			names[f.name] = true
			out.fields = append(out.fields, f)
		}
	}
	return out, nil
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// reasonError is the reason why a field is not part of the kind.
type reasonError struct{ text string }

func (e *reasonError) Error() string { return e.text }

func because(format string, args ...any) error { return &reasonError{fmt.Sprintf(format, args...)} }

// graphName matches the names of fields in GraphQL.
var graphName = regexp.MustCompile(`^[A-Za-z][_0-9A-Za-z]*$`)

// field returns a field of the kind. The error is a reasonError if the field cannot be part of the kind.
func (s *shaper) field(fd protoreflect.FieldDescriptor, path string, above []protoreflect.FullName) (*field, error) {
	out := &field{
		FieldDescriptor: fd,
		name:            fd.JSONName(),
		list:            fd.IsList(),
		required:        isRequired(fd),
		immutable:       behaves(fd, behaviorImmutable),
	}
	switch {
	case s.omit[path]:
		return nil, because("the mapping omits it")
	case behaves(fd, behaviorInputOnly):
		return nil, because("it is input-only, so that nobody can read what it is")
	case !s.status && behaves(fd, behaviorOutputOnly):
		return nil, because("it is output-only within what callers set")
	case fd.IsExtension():
		return nil, because("extensions are not expressed")
	}
	if !graphName.MatchString(out.name) {
		out.name = string(fd.Name())
	}
	if !graphName.MatchString(out.name) {
		return nil, because("a field of GraphQL cannot be called %s", shortText(out.name))
	}
	if fd.IsMap() {
		return out, s.mapField(out, path, above)
	}
	if err := s.value(out, path, above); err != nil {
		return nil, err
	}
	out.zero = s.showsZero(out)
	return out, nil
}

// isRequired reports whether an API requires a field.
func isRequired(fd protoreflect.FieldDescriptor) bool {
	return behaves(fd, behaviorRequired) || rulesOf(fd).required || fd.Cardinality() == protoreflect.Required
}

// showsZero reports whether a zero value of a field is shown, although it may mean that the field is absent.
func (s *shaper) showsZero(f *field) bool {
	if f.list || f.HasPresence() {
		return false
	}
	switch f.form {
	case formInt, formSafe, formFloat, formBool:
		return s.status || f.required
	case formText, formText64, formBytes, formEnum:
		return f.required && !s.status
	}
	return false
}

// value sets the form of a field that is not a map.
func (s *shaper) value(f *field, path string, above []protoreflect.FullName) error {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.messageValue(f, path, above)
	case protoreflect.EnumKind:
		f.form = formEnum
		if s.status {
			return nil
		}
		for i := range f.Enum().Values().Len() {
			name := string(f.Enum().Values().Get(i).Name())
			if !graphName.MatchString(name) || slices.Contains([]string{"true", "false", "null"}, name) {
				return because("a value of an enum of GraphQL cannot be called %s", shortText(name))
			}
		}
	default:
		f.form = scalarForm(f.Kind())
	}
	if f.form == formSafe && s.text[path] {
		f.form = formText64
	}
	return nil
}

// scalarForm returns the form of a scalar field.
func scalarForm(kind protoreflect.Kind) form {
	switch kind {
	case protoreflect.BoolKind:
		return formBool
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return formInt
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Int64Kind, protoreflect.Sint64Kind,
		protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return formSafe
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return formFloat
	case protoreflect.BytesKind:
		return formBytes
	}
	return formText
}

// messageValue sets the form of a field that is a message.
func (s *shaper) messageValue(f *field, path string, above []protoreflect.FullName) error {
	name := f.Message().FullName()
	switch name {
	case timestampName:
		f.form = formTime
		if f.list {
			return because("a list of times cannot be expressed")
		}
		return nil
	case "google.protobuf.Duration":
		f.form = formDuration
		return nil
	case "google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
		return because("values of %s have no type", name)
	case "google.protobuf.Empty":
		return because("a message without fields cannot be expressed")
	}
	if value := f.Message().Fields().ByNumber(1); isWrapper(name) && value != nil {
		f.form = scalarForm(value.Kind())
		f.wrapped = true
		if f.form == formSafe && s.text[path] {
			f.form = formText64
		}
		return nil
	}
	if slices.Contains(above, name) || name == above[0] {
		return because("%s contains itself", name)
	}
	if len(above) >= maxDepth {
		return because("it is more than %d messages deep", maxDepth)
	}
	var err error
	f.form = formMessage
	if f.shape, err = s.shape(f.Message(), path, above, nil); err != nil {
		return err
	}
	if len(f.shape.fields) == 0 {
		return because("no field of %s can be expressed", name)
	}
	return nil
}

// isWrapper reports whether a message belongs to google/protobuf/wrappers.proto.
func isWrapper(name protoreflect.FullName) bool {
	short, ok := strings.CutPrefix(string(name), "google.protobuf.")
	return ok && strings.HasSuffix(short, "Value") && short != "Value" && short != "ListValue" &&
		short != "EnumValue" && short != "NullValue"
}

// mapField sets the form of a map.
func (s *shaper) mapField(f *field, path string, above []protoreflect.FullName) error {
	if f.MapKey().Kind() == protoreflect.StringKind && f.MapValue().Kind() == protoreflect.StringKind {
		f.form = formMap
		return nil
	}
	f.form = formEntries
	f.list = false
	entry, err := s.shape(f.Message(), path, above, nil)
	if err != nil {
		return err
	}
	if len(entry.fields) != 2 {
		return because("its values cannot be expressed")
	}
	for _, part := range entry.fields {
		part.required = part.form != formMessage
		part.zero = part.form != formMessage && part.form != formTime && part.form != formDuration
	}
	f.shape = entry
	return nil
}

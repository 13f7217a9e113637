package standard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	// MaxDescriptors is the maximum size of a set of descriptors in bytes.
	MaxDescriptors = 32 << 20
	// maxFiles is the maximum number of files in a set.
	maxFiles = 10_000
)

// Descriptors are the files, messages and services of an API.
type Descriptors struct {
	files *protoregistry.Files
	types *dynamicpb.Types
	// services lists the services of all files, sorted by name.
	services []protoreflect.ServiceDescriptor
}

// ReadDescriptors parses a FileDescriptorSet in binary form. The set must include all imported files. The commands `buf
// build -o x.binpb` and `protoc --include_imports --descriptor_set_out=x.binpb` write such a set.
func ReadDescriptors(raw []byte) (*Descriptors, error) {
	if len(raw) > MaxDescriptors {
		return nil, fmt.Errorf("the descriptors have %d bytes; at most %d are accepted", len(raw), MaxDescriptors)
	}
	files, err := readFiles(raw, nil)
	if err != nil {
		return nil, err
	}
	// The types of options are defined in the files themselves. Therefore the files are parsed again, with these types.
	if files, err = readFiles(raw, dynamicpb.NewTypes(files)); err != nil {
		return nil, err
	}
	out := &Descriptors{files: files, types: dynamicpb.NewTypes(files)}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			out.services = append(out.services, f.Services().Get(i))
		}
		return true
	})
	slices.SortFunc(out.services, func(a, b protoreflect.ServiceDescriptor) int {
		return compareNames(a.FullName(), b.FullName())
	})
	return out, nil
}

func compareNames(a, b protoreflect.FullName) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func readFiles(raw []byte, types *dynamicpb.Types) (*protoregistry.Files, error) {
	var set descriptorpb.FileDescriptorSet
	options := proto.UnmarshalOptions{DiscardUnknown: false}
	if types != nil {
		options.Resolver = types
	}
	if err := options.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("the descriptors are no FileDescriptorSet in its binary form: %w", err)
	}
	switch {
	case len(set.File) == 0:
		return nil, errors.New("the descriptors have no file; a FileDescriptorSet is accepted, as " +
			"`buf build -o x.binpb` writes it")
	case len(set.File) > maxFiles:
		return nil, fmt.Errorf("the descriptors have %d files; at most %d are accepted", len(set.File), maxFiles)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("the descriptors do not belong together (are all imports in the file?): %w", err)
	}
	return files, nil
}

// Name returns a short name for the API, which is taken from the package of the first candidate, such as pubsub for the
// package google.pubsub.v1. It returns "" if there are no candidates.
func (d *Descriptors) Name() string {
	for _, one := range d.Candidates() {
		m, err := d.message(one.Message)
		if err != nil {
			continue
		}
		group, _ := groupOf(m.ParentFile().Package())
		name, _, _ := strings.Cut(group, ".")
		return name
	}
	return ""
}

func (d *Descriptors) message(name string) (protoreflect.MessageDescriptor, error) {
	found, err := d.files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("the descriptors have no message %q", name)
	}
	m, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%q is no message", name)
	}
	return m, nil
}

func (d *Descriptors) service(name string) (protoreflect.ServiceDescriptor, error) {
	found, err := d.files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("the descriptors have no service %q", name)
	}
	s, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("%q is no service", name)
	}
	return s, nil
}

// The options that this package reads.
const (
	optionResource  = "google.api.resource"
	optionBehavior  = "google.api.field_behavior"
	optionBufField  = "buf.validate.field"
	optionPGVRules  = "validate.rules"
	maxOptionValues = 64
)

// option returns the value of the extension called name, and reports whether it is set.
func option(options proto.Message, name protoreflect.FullName) (out protoreflect.Value, is bool) {
	if options == nil || !options.ProtoReflect().IsValid() {
		return out, false
	}
	options.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.IsExtension() && f.FullName() == name {
			out = v
			is = true
		}
		return !is
	})
	return out, is
}

// messageOption returns the value of an extension whose type is a message; nil if it is not set.
func messageOption(options proto.Message, name protoreflect.FullName) protoreflect.Message {
	v, is := option(options, name)
	if !is {
		return nil
	}
	m, ok := v.Interface().(protoreflect.Message)
	if !ok {
		return nil
	}
	return m
}

// valueAt returns the value at a path of field names. ok is false if a field does not exist or is not set.
func valueAt(m protoreflect.Message, names ...protoreflect.Name) (out protoreflect.Value, ok bool) {
	for i, name := range names {
		if m == nil {
			return out, false
		}
		f := m.Descriptor().Fields().ByName(name)
		if f == nil || !m.Has(f) {
			return out, false
		}
		out = m.Get(f)
		if i == len(names)-1 {
			return out, true
		}
		if f.Message() == nil || f.IsList() || f.IsMap() {
			return out, false
		}
		m = out.Message()
	}
	return out, false
}

// textsAt returns the list of strings at a path of field names.
func textsAt(m protoreflect.Message, names ...protoreflect.Name) (out []string) {
	v, ok := valueAt(m, names...)
	if !ok {
		return nil
	}
	list, ok := v.Interface().(protoreflect.List)
	if !ok {
		return nil
	}
	for i := range min(list.Len(), maxOptionValues) {
		if text, ok := list.Get(i).Interface().(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// The values of google.api.FieldBehavior.
const (
	behaviorRequired   = 2
	behaviorOutputOnly = 3
	behaviorInputOnly  = 4
	behaviorImmutable  = 5
	behaviorIdentifier = 8
)

// behaves reports whether a field has a certain google.api.field_behavior.
func behaves(f protoreflect.FieldDescriptor, behavior protoreflect.EnumNumber) bool {
	v, is := option(f.Options(), optionBehavior)
	if !is {
		return false
	}
	list, ok := v.Interface().(protoreflect.List)
	if !ok {
		return false
	}
	for i := range min(list.Len(), maxOptionValues) {
		if n, ok := list.Get(i).Interface().(protoreflect.EnumNumber); ok && n == behavior {
			return true
		}
	}
	return false
}

// fieldAt is the path from a message to a field.
type fieldAt []protoreflect.FieldDescriptor

func (f fieldAt) last() protoreflect.FieldDescriptor { return f[len(f)-1] }

// get returns the value of the field; its default if it is not set.
func (f fieldAt) get(m protoreflect.Message) protoreflect.Value {
	for _, step := range f[:len(f)-1] {
		m = m.Get(step).Message()
	}
	return m.Get(f.last())
}

// has reports whether the field is set.
func (f fieldAt) has(m protoreflect.Message) bool {
	for _, step := range f[:len(f)-1] {
		if !m.Has(step) {
			return false
		}
		m = m.Get(step).Message()
	}
	return m.Has(f.last())
}

// holder returns the message that contains the field. It creates missing messages on the path.
func (f fieldAt) holder(m protoreflect.Message) protoreflect.Message {
	for _, step := range f[:len(f)-1] {
		m = m.Mutable(step).Message()
	}
	return m
}

func (f fieldAt) set(m protoreflect.Message, v protoreflect.Value) { f.holder(m).Set(f.last(), v) }

func (f fieldAt) clear(m protoreflect.Message) {
	if f.has(m) {
		f.holder(m).Clear(f.last())
	}
}

// text returns the value of a string field; "" if the path is empty.
func (f fieldAt) text(m protoreflect.Message) string {
	if len(f) == 0 {
		return ""
	}
	return f.get(m).String()
}

// setText sets a string field, or clears it if the text is empty. It does nothing if the path is empty.
func (f fieldAt) setText(m protoreflect.Message, text string) {
	switch {
	case len(f) == 0:
	case text == "":
		f.clear(m)
	default:
		f.set(m, protoreflect.ValueOfString(text))
	}
}

// String returns the path as masks and mappings write it, such as spec.size.
func (f fieldAt) String() string {
	var out []byte
	for i, step := range f {
		if i > 0 {
			out = append(out, '.')
		}
		out = append(out, step.Name()...)
	}
	return string(out)
}

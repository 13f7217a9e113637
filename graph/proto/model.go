package proto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// model is the model of a protobuf file. print.go writes it as text, describe.go as a descriptor.
type model struct {
	pkg      string
	services []service
	messages []message
	enums    []enum
}

type service struct {
	name, comment string
	methods       []method
}

type method struct {
	name, comment, input, output string
	streams                      bool
}

type message struct {
	name, comment string
	fields        []field
	// reserved and reservedNames are the numbers and names of removed fields, which must not be used again.
	reserved      []int32
	reservedNames []string
}

// field is a field of a message. json is its name in JSON; if it is empty, protobuf derives the name. typ is a scalar
// type, [typeMap], [typeTime], or the name of a message or an enum.
type field struct {
	name, json, comment, typ string
	number                   int32
	repeated, optional       bool
	isMessage, isEnum        bool
	deprecated               bool
}

type enum struct {
	name, comment string
	values        []enumValue
	reserved      []int32
	reservedNames []string
}

type enumValue struct {
	name, comment string
	number        int32
}

// The types that are not defined in the package.
const (
	typeTime  = "google.protobuf.Timestamp"
	typeEmpty = "google.protobuf.Empty"
	typeMap   = "map<string, string>"
)

// The messages and enums that all kinds use.
const (
	metadataMessage = "ResourceMetadata"
	eventEnum       = "WatchEventType"
)

func sharedNames() []string { return []string{metadataMessage, eventEnum} }

// modelOf returns the model of kinds. All parts must have numbers.
func modelOf(kinds []*descriptor.Kind, n *Numbers) *model {
	out := &model{pkg: n.Package}
	types := typesOf(kinds)
	watched := false
	for _, k := range kinds {
		out.addKind(k, n)
		watched = watched || k.Has(descriptor.VerbWatch)
	}
	out.messages = append(out.messages, metadataModel())
	for _, t := range types.objects {
		out.messages = append(out.messages, objectModel(t, n))
	}
	for _, t := range types.enums {
		out.enums = append(out.enums, enumModel(t, n))
	}
	if watched {
		out.enums = append(out.enums, eventModel())
	}
	return out
}

// resourceModel returns the message of the resources of a kind.
func resourceModel(k *descriptor.Kind, n *Numbers) message {
	out := message{name: k.Name, comment: k.Description, fields: []field{
		{name: "kind", number: numberKind, typ: "string", comment: k.Name + "; may be left out of a request."},
		{name: "sub_kind", number: numberSubKind, typ: "string"},
		{name: "version", number: numberVersion, typ: "string", comment: k.Version + "; may be left out of a request."},
		{name: "metadata", number: numberMetadata, typ: metadataMessage, isMessage: true},
	}}
	comments := map[string]string{"status": "Set by controllers; ignored in requests."}
	s := n.messages[k.Name]
	for _, part := range partsOf(k) {
		f := n.field(s, part)
		f.comment = comments[part.Name]
		out.fields = append(out.fields, f)
	}
	out.reserve(s)
	return out
}

// objectModel returns the message of a type of the SDL.
func objectModel(t *objectType, n *Numbers) message {
	s := n.messages[t.name]
	out := message{name: s.as}
	for _, f := range t.fields {
		out.fields = append(out.fields, n.field(s, f))
	}
	out.reserve(s)
	slices.SortFunc(out.fields, func(a, b field) int { return cmp.Compare(a.number, b.number) })
	return out
}

// reserve reserves the numbers of unused lines, and their names unless other fields use them.
func (m *message) reserve(s *section) {
	m.reserved, m.reservedNames = reserved(s, func(yield func(int32, string)) {
		for _, f := range m.fields {
			yield(f.number, f.name)
		}
	})
}

// reserved returns the numbers and names of the unused lines of a section.
func reserved(s *section, used func(yield func(number int32, name string))) (numbers []int32, names []string) {
	usedNumbers, usedNames := map[int32]bool{}, map[string]bool{}
	used(func(number int32, name string) {
		usedNumbers[number] = true
		usedNames[folded(name)] = true
	})
	for _, l := range s.lines {
		if usedNumbers[l.number] {
			continue
		}
		numbers = append(numbers, l.number)
		if !usedNames[folded(l.name)] {
			usedNames[folded(l.name)] = true
			names = append(names, l.name)
		}
	}
	slices.Sort(numbers)
	slices.Sort(names)
	return numbers, names
}

// field returns the field of a message for a field of the SDL. Its name and number are from its line in s.
func (n *Numbers) field(s *section, f *descriptor.Field) field {
	l := s.find(typeOf(f), f.Name)
	out := field{
		name: l.name, json: f.InAPI(), comment: commentOf(f), number: l.number,
		repeated: f.List, deprecated: f.Deprecated != "",
	}
	switch f.Type {
	case descriptor.TypeTime:
		out.typ = typeTime
		out.isMessage = true
	case descriptor.TypeMap:
		out.typ = typeMap
	case descriptor.TypeEnum:
		out.typ = n.enums[f.Enum.Name].as
		out.isEnum = true
	case descriptor.TypeObject:
		out.typ = n.messages[f.Shape.Name].as
		out.isMessage = true
	default:
		out.typ = strings.TrimPrefix(typeOf(f), "[]")
	}
	out.optional = !out.repeated && !out.isMessage && out.typ != typeMap
	return out
}

// commentOf returns a comment on a field, with the properties that protobuf cannot express.
func commentOf(f *descriptor.Field) string {
	lines := []string{f.Description}
	if f.Required {
		lines = append(lines, "Required.")
	}
	if f.Immutable {
		lines = append(lines, "Cannot be changed once it is set.")
	}
	if f.WriteOnly {
		lines = append(lines, "Never in an answer. A request without it keeps it, and an empty value clears it.")
	}
	if f.Default != nil {
		lines = append(lines, fmt.Sprintf("Default: %v.", f.Default))
	}
	if f.Deprecated != "" {
		lines = append(lines, "Deprecated: "+f.Deprecated)
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

func enumModel(t *enumType, n *Numbers) enum {
	s := n.enums[t.name]
	out := enum{name: s.as, values: []enumValue{{name: zeroName(s.as), comment: "No value: refused in a request."}}}
	for _, v := range t.values {
		l := s.find("", v.Stored)
		out.values = append(out.values, enumValue{name: l.name, number: l.number, comment: v.Description})
	}
	slices.SortStableFunc(out.values, func(a, b enumValue) int { return cmp.Compare(a.number, b.number) })
	out.reserved, out.reservedNames = reserved(s, func(yield func(int32, string)) {
		for _, v := range out.values {
			yield(v.number, v.name)
		}
	})
	return out
}

// metadataModel returns the message of the metadata. The first numbers are from RFD
// 153.
func metadataModel() message {
	const set = "Set by the gateway; ignored in requests."
	text := func(name string, number int32, comment string) field {
		return field{name: name, number: number, typ: "string", comment: comment}
	}
	pairs := func(name string, number int32) field { return field{name: name, number: number, typ: typeMap} }
	at := func(name string, number int32, comment string) field {
		return field{name: name, number: number, typ: typeTime, isMessage: true, comment: comment}
	}
	finalizers := text("finalizers", 15, "Hold the resource while its deletion waits. "+set)
	finalizers.repeated = true
	return message{name: metadataMessage, comment: "ResourceMetadata is what all resources have.", fields: []field{
		text("name", 1, ""),
		text("namespace", 2, "Empty in a request means default, unless the kind has no namespaces."),
		text("description", 3, ""),
		pairs("labels", 5),
		at("expires", 6, "When the resource goes; none if it stays."),
		text("revision", 8,
			"Changes with each change of the resource. Required by updates, and ignored by creates and upserts."),
		pairs("annotations", 9),
		text("uid", 10, set),
		{name: "generation", number: 11, typ: "int64", comment: "Counts the changes of the spec. " + set},
		at("create_time", 12, set),
		at("update_time", 13, set),
		at("delete_time", 14, "When the deletion was requested that waits. "+set),
		finalizers,
		text("updated_by", 16, set),
	}}
}

// eventModel returns the enum of the types of events.
func eventModel() enum {
	out := enum{
		name:    eventEnum,
		comment: "WatchEventType is what an event is about. RESET, IN_SYNC and BOOKMARK have no resource.",
	}
	for i, v := range eventTypes() {
		v.name = valuePrefix(eventEnum) + v.name
		v.number = int32(i)
		out.values = append(out.values, v)
	}
	return out
}

// eventTypes returns the types of events, in the order of their numbers.
func eventTypes() []enumValue {
	return []enumValue{
		{name: "UNSPECIFIED"},
		{name: "RESET", comment: "The state follows: forget what was received before."},
		{name: "SNAPSHOT", comment: "A resource of the state."},
		{name: "IN_SYNC", comment: "All that there was has been sent; what follows happens from now on."},
		{name: "ADDED"},
		{name: "MODIFIED"},
		{name: "DELETED"},
		{name: "BOOKMARK", comment: "Nothing has happened for a while; the cursor is newer."},
	}
}

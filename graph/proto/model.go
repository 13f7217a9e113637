package proto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// The model is a file of protobuf as this package makes it: print.go writes it as text, and describe.go as a descriptor.
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
	reserved      []int32
	reservedNames []string
}

// field of a message. typ is a scalar type, map, time, or the name of a message or an enum.
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

// Types that are no types of the package.
const (
	typeTime  = "google.protobuf.Timestamp"
	typeEmpty = "google.protobuf.Empty"
	typeMap   = "map<string, string>"
)

// Messages and enums that all kinds share.
const (
	metadataMessage = "ResourceMetadata"
	eventEnum       = "WatchEventType"
)

func sharedNames() []string { return []string{metadataMessage, eventEnum} }

// Methods are the names of the methods and messages of a kind.
type Methods struct {
	Service                                        string
	Create, Update, Upsert, Get, List, Delete      string
	Watch                                          string
	CreateRequest, UpdateRequest, UpsertRequest    string
	GetRequest, ListRequest, ListResponse          string
	DeleteRequest, WatchRequest, WatchResponse     string
	resourceField, resourcesField, resourceMessage string
}

// methodsOf returns the names of the methods of a kind.
func methodsOf(k *descriptor.Kind) Methods {
	one, many := k.Name, upperFirst(k.Plural)
	return Methods{
		Service:         one + "Service",
		Create:          "Create" + one,
		Update:          "Update" + one,
		Upsert:          "Upsert" + one,
		Get:             "Get" + one,
		List:            "List" + many,
		Delete:          "Delete" + one,
		Watch:           "Watch" + many,
		CreateRequest:   "Create" + one + "Request",
		UpdateRequest:   "Update" + one + "Request",
		UpsertRequest:   "Upsert" + one + "Request",
		GetRequest:      "Get" + one + "Request",
		ListRequest:     "List" + many + "Request",
		ListResponse:    "List" + many + "Response",
		DeleteRequest:   "Delete" + one + "Request",
		WatchRequest:    "Watch" + many + "Request",
		WatchResponse:   "Watch" + many + "Response",
		resourceField:   snake(k.Singular),
		resourcesField:  snake(k.Plural),
		resourceMessage: one,
	}
}

// namesOf returns the names that a kind has in the package, beside those of its types.
func namesOf(k *descriptor.Kind) []string {
	m := methodsOf(k)
	return []string{
		m.resourceMessage, m.Service, m.CreateRequest, m.UpdateRequest, m.UpsertRequest, m.GetRequest, m.ListRequest,
		m.ListResponse, m.DeleteRequest, m.WatchRequest, m.WatchResponse,
	}
}

// modelOf makes the model of kinds, all of which the numbers know.
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

// addKind adds the service of a kind, its messages, and the message of its resources.
func (m *model) addKind(k *descriptor.Kind, n *Numbers) {
	names := methodsOf(k)
	s := service{name: names.Service, comment: fmt.Sprintf("%s has the standard methods of the kind %s.", names.Service, k.Name)}
	resource := field{name: names.resourceField, number: 1, typ: names.resourceMessage, isMessage: true}
	resources := field{name: names.resourcesField, number: 1, typ: names.resourceMessage, isMessage: true, repeated: true}
	add := func(verb descriptor.Verb, method method, messages ...message) {
		if k.Has(verb) {
			s.methods = append(s.methods, method)
			m.messages = append(m.messages, messages...)
		}
	}
	name := []field{{name: "name", number: 1, typ: "string"}}
	var namespace, allNamespaces []field
	if k.Scope == descriptor.Namespaced {
		namespace = []field{{name: "namespace", number: 2, typ: "string", comment: "Empty means " + descriptor.DefaultNamespace + "."}}
		allNamespaces = []field{{name: "namespace", number: 3, typ: "string", comment: "Empty means all namespaces."}}
	}
	validateOnly := field{name: "validate_only", number: 3, typ: "bool", comment: "Check everything, and change nothing."}
	revision := field{name: "revision", number: 3, typ: "string",
		comment: "If it is given, the resource is deleted only at this revision."}
	one := k.Name
	add(descriptor.VerbGet,
		method{name: names.Get, input: names.GetRequest, output: one, comment: "Returns a resource; NOT_FOUND if there is none."},
		message{name: names.GetRequest, fields: slices.Concat(name, namespace)})
	add(descriptor.VerbList,
		method{name: names.List, input: names.ListRequest, output: names.ListResponse,
			comment: "Returns a page of resources, in the order of their namespaces and names."},
		message{name: names.ListRequest, fields: slices.Concat([]field{
			{name: "page_size", number: 1, typ: "int32", comment: "The most resources of the page; 0 means 100, and more than 1,000 means 1,000."},
			{name: "page_token", number: 2, typ: "string", comment: "The next_page_token of the page before."},
		}, allNamespaces)},
		message{name: names.ListResponse, fields: []field{
			resources,
			{name: "next_page_token", number: 2, typ: "string", comment: "Empty on the last page."},
		}})
	add(descriptor.VerbCreate,
		method{name: names.Create, input: names.CreateRequest, output: one,
			comment: "Creates a resource; ALREADY_EXISTS if it is there."},
		message{name: names.CreateRequest, fields: []field{resource, validateOnly}})
	add(descriptor.VerbUpdate,
		method{name: names.Update, input: names.UpdateRequest, output: one,
			comment: "Replaces the spec and the metadata of a resource at metadata.revision; ABORTED if it was changed since."},
		message{name: names.UpdateRequest, fields: []field{resource, validateOnly}, reserved: []int32{2}, reservedNames: []string{"update_mask"}})
	add(descriptor.VerbUpsert,
		method{name: names.Upsert, input: names.UpsertRequest, output: one,
			comment: "Creates a resource, or replaces its spec and metadata whatever its revision is."},
		message{name: names.UpsertRequest, fields: []field{resource, validateOnly}})
	add(descriptor.VerbDelete,
		method{name: names.Delete, input: names.DeleteRequest, output: typeEmpty,
			comment: "Deletes a resource; NOT_FOUND if there is none. While others rely on it, or finalizers hold it, the\n" +
				"deletion waits, which the header sluice-deletion of the answer says."},
		message{name: names.DeleteRequest, fields: slices.Concat(name, namespace, []field{revision,
			{name: "validate_only", number: 4, typ: "bool", comment: validateOnly.comment}})})
	add(descriptor.VerbWatch,
		method{name: names.Watch, input: names.WatchRequest, output: names.WatchResponse, streams: true,
			comment: "Streams the changes of resources."},
		message{name: names.WatchRequest, fields: slices.Concat([]field{
			{name: "cursor", number: 1, typ: "string", comment: "The cursor of the last event that was received; empty means from now on."},
			{name: "snapshot", number: 2, typ: "bool", comment: "Send the state first, unless the stream can go on after the cursor, and again where it cannot go on."},
		}, allNamespaces)},
		message{name: names.WatchResponse, fields: []field{
			{name: "type", number: 1, typ: eventEnum, isEnum: true},
			{name: resource.name, number: 2, typ: one, isMessage: true, comment: "The resource after the change, and of DELETED as it was last. Of what may not be seen any more it has the name alone."},
			{name: "cursor", number: 3, typ: "string", comment: "Where the stream goes on after this event; empty within the state."},
		}})
	m.services = append(m.services, s)
	m.messages = append(m.messages, resourceModel(k, n))
}

// resourceModel is the message of the resources of a kind.
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

// objectModel is the message of a type of the SDL.
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

// reserve reserves the numbers of the lines that are no fields of the message, and their names unless others have them.
func (m *message) reserve(s *section) {
	m.reserved, m.reservedNames = reserved(s, func(yield func(int32, string)) {
		for _, f := range m.fields {
			yield(f.number, f.name)
		}
	})
}

// reserved returns what lines have that is not in use.
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

// field is a field of a type by its line.
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

// commentOf says what a message cannot say of a field.
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

// metadataModel is the message of the metadata. The first numbers are those of RFD 153.
func metadataModel() message {
	set := "Set by the gateway; ignored in requests."
	return message{name: metadataMessage, comment: "ResourceMetadata is what all resources have.", fields: []field{
		{name: "name", number: 1, typ: "string"},
		{name: "namespace", number: 2, typ: "string", comment: "Empty in a request means default, unless the kind has no namespaces."},
		{name: "description", number: 3, typ: "string"},
		{name: "labels", number: 5, typ: typeMap},
		{name: "expires", number: 6, typ: typeTime, isMessage: true, comment: "When the resource goes; none if it stays."},
		{name: "revision", number: 8, typ: "string", comment: "Changes with each change of the resource. Required by updates, and ignored by creates and upserts."},
		{name: "annotations", number: 9, typ: typeMap},
		{name: "uid", number: 10, typ: "string", comment: set},
		{name: "generation", number: 11, typ: "int64", comment: "Counts the changes of the spec. " + set},
		{name: "create_time", number: 12, typ: typeTime, isMessage: true, comment: set},
		{name: "update_time", number: 13, typ: typeTime, isMessage: true, comment: set},
		{name: "delete_time", number: 14, typ: typeTime, isMessage: true, comment: "When the deletion was requested that waits. " + set},
		{name: "finalizers", number: 15, typ: "string", repeated: true, comment: "Hold the resource while its deletion waits. " + set},
		{name: "updated_by", number: 16, typ: "string", comment: set},
	}}
}

// eventModel is the enum of the types of events.
func eventModel() enum {
	out := enum{name: eventEnum, comment: "WatchEventType is what an event is about. RESET, IN_SYNC and BOOKMARK have no resource."}
	for i, v := range eventTypes() {
		out.values = append(out.values, enumValue{name: valuePrefix(eventEnum) + v.name, number: int32(i), comment: v.comment})
	}
	return out
}

// eventTypes are the types of events, by their numbers.
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

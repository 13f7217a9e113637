package proto

import (
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// methods has the names that are derived from a kind: of its service, of the service's methods, and of their messages.
type methods struct {
	service                                        string
	create, update, upsert, get, list, delete      string
	watch                                          string
	createRequest, updateRequest, upsertRequest    string
	getRequest, listRequest, listResponse          string
	deleteRequest, watchRequest, watchResponse     string
	resourceField, resourcesField, resourceMessage string
}

// methodsOf returns the names of the methods of a kind.
func methodsOf(k *descriptor.Kind) methods {
	one, many := k.Name, upperFirst(k.Plural)
	return methods{
		service:         one + "Service",
		create:          "Create" + one,
		update:          "Update" + one,
		upsert:          "Upsert" + one,
		get:             "Get" + one,
		list:            "List" + many,
		delete:          "Delete" + one,
		watch:           "Watch" + many,
		createRequest:   "Create" + one + "Request",
		updateRequest:   "Update" + one + "Request",
		upsertRequest:   "Upsert" + one + "Request",
		getRequest:      "Get" + one + "Request",
		listRequest:     "List" + many + "Request",
		listResponse:    "List" + many + "Response",
		deleteRequest:   "Delete" + one + "Request",
		watchRequest:    "Watch" + many + "Request",
		watchResponse:   "Watch" + many + "Response",
		resourceField:   snake(k.Singular),
		resourcesField:  snake(k.Plural),
		resourceMessage: one,
	}
}

// namesOf returns the names in the package that belong to a kind, except the names of its types.
func namesOf(k *descriptor.Kind) []string {
	m := methodsOf(k)
	return []string{
		m.resourceMessage, m.service, m.createRequest, m.updateRequest, m.upsertRequest, m.getRequest, m.listRequest,
		m.listResponse, m.deleteRequest, m.watchRequest, m.watchResponse,
	}
}

// methodModels adds the methods of a kind and their messages to the model.
type methodModels struct {
	kind  *descriptor.Kind
	names methods
	to    *model   // gets the messages
	of    *service // gets the methods
}

// addKind adds the service of a kind, the messages of its methods, and the message of its resources.
func (m *model) addKind(k *descriptor.Kind, n *Numbers) {
	names := methodsOf(k)
	s := service{
		name:    names.service,
		comment: fmt.Sprintf("%s has the standard methods of the kind %s.", names.service, k.Name),
	}
	a := methodModels{kind: k, names: names, to: m, of: &s}
	a.addReads()
	a.addWrites()
	a.addDelete()
	a.addWatch()
	m.services = append(m.services, s)
	m.messages = append(m.messages, resourceModel(k, n))
}

// add adds the method of a verb with its messages, if the kind has the verb.
func (a *methodModels) add(verb descriptor.Verb, m method, messages ...message) {
	if a.kind.Has(verb) {
		a.of.methods = append(a.of.methods, m)
		a.to.messages = append(a.to.messages, messages...)
	}
}

// resource returns a field with a resource.
func (a *methodModels) resource(number int32, comment string) field {
	return field{
		name: a.names.resourceField, number: number, typ: a.names.resourceMessage, isMessage: true, comment: comment,
	}
}

// namespace returns the field of a request with the namespace; none for a GLOBAL kind. empty describes what an empty
// namespace means.
func (a *methodModels) namespace(number int32, empty string) []field {
	if a.kind.Scope == descriptor.Global {
		return nil
	}
	return []field{{name: "namespace", number: number, typ: "string", comment: "Empty means " + empty + "."}}
}

// key returns the fields of a request that identify a resource.
func (a *methodModels) key() []field {
	name := field{name: "name", number: 1, typ: "string"}
	return append([]field{name}, a.namespace(2, descriptor.DefaultNamespace)...)
}

const allNamespaces = "all namespaces"

// validateOnly returns the field that makes a request a dry run.
func validateOnly(number int32) field {
	return field{name: "validate_only", number: number, typ: "bool", comment: "Check everything, and change nothing."}
}

// addReads adds the methods that get and list resources.
func (a *methodModels) addReads() {
	a.add(
		descriptor.VerbGet,
		method{
			name:    a.names.get,
			input:   a.names.getRequest,
			output:  a.names.resourceMessage,
			comment: "Returns a resource; NOT_FOUND if there is none.",
		},
		message{name: a.names.getRequest, fields: a.key()},
	)
	size := field{
		name: "page_size", number: 1, typ: "int32",
		comment: "The most resources of the page; 0 means 100, and more than 1,000 means 1,000.",
	}
	token := field{name: "page_token", number: 2, typ: "string", comment: "The next_page_token of the page before."}
	next := field{name: "next_page_token", number: 2, typ: "string", comment: "Empty on the last page."}
	resources := a.resource(1, "")
	resources.name = a.names.resourcesField
	resources.repeated = true
	a.add(
		descriptor.VerbList,
		method{
			name:    a.names.list,
			input:   a.names.listRequest,
			output:  a.names.listResponse,
			comment: "Returns a page of resources, in the order of their namespaces and names.",
		},
		message{name: a.names.listRequest, fields: append([]field{size, token}, a.namespace(3, allNamespaces)...)},
		message{name: a.names.listResponse, fields: []field{resources, next}},
	)
}

// addWrites adds the methods whose requests have a resource.
func (a *methodModels) addWrites() {
	fields := []field{a.resource(1, ""), validateOnly(3)}
	a.add(
		descriptor.VerbCreate,
		method{
			name:    a.names.create,
			input:   a.names.createRequest,
			output:  a.names.resourceMessage,
			comment: "Creates a resource; ALREADY_EXISTS if it is there.",
		},
		message{name: a.names.createRequest, fields: fields},
	)
	a.add(
		descriptor.VerbUpdate,
		method{
			name:   a.names.update,
			input:  a.names.updateRequest,
			output: a.names.resourceMessage,
			comment: "Replaces the spec and the metadata of a resource at metadata.revision; ABORTED if it was changed\n" +
				"since.",
		},
		message{
			name:          a.names.updateRequest,
			fields:        fields,
			reserved:      []int32{2},
			reservedNames: []string{"update_mask"},
		},
	)
	a.add(
		descriptor.VerbUpsert,
		method{
			name:    a.names.upsert,
			input:   a.names.upsertRequest,
			output:  a.names.resourceMessage,
			comment: "Creates a resource, or replaces its spec and metadata whatever its revision is.",
		},
		message{name: a.names.upsertRequest, fields: fields},
	)
}

func (a *methodModels) addDelete() {
	revision := field{
		name: "revision", number: 3, typ: "string",
		comment: "If it is given, the resource is deleted only at this revision.",
	}
	a.add(
		descriptor.VerbDelete,
		method{
			name:   a.names.delete,
			input:  a.names.deleteRequest,
			output: typeEmpty,
			comment: "Deletes a resource; NOT_FOUND if there is none. While others rely on it, or finalizers hold it,\n" +
				"the deletion waits, which the header sluice-deletion of the answer says.",
		},
		message{name: a.names.deleteRequest, fields: slices.Concat(a.key(), []field{revision, validateOnly(4)})},
	)
}

func (a *methodModels) addWatch() {
	cursor := field{
		name: "cursor", number: 1, typ: "string",
		comment: "The cursor of the last event that was received; empty means from now on.",
	}
	snapshot := field{
		name: "snapshot", number: 2, typ: "bool",
		comment: "Send the state first, unless the stream can go on after the cursor, and again where it cannot go on.",
	}
	resource := a.resource(2, "The resource after the change, and of DELETED as it was last. Of what may not be seen\n"+
		"any more it has the name alone.")
	resume := field{
		name: "cursor", number: 3, typ: "string",
		comment: "Where the stream goes on after this event; empty within the state.",
	}
	a.add(
		descriptor.VerbWatch,
		method{
			name:    a.names.watch,
			input:   a.names.watchRequest,
			output:  a.names.watchResponse,
			streams: true,
			comment: "Streams the changes of resources.",
		},
		message{
			name:   a.names.watchRequest,
			fields: append([]field{cursor, snapshot}, a.namespace(3, allNamespaces)...),
		},
		message{
			name:   a.names.watchResponse,
			fields: []field{{name: "type", number: 1, typ: eventEnum, isEnum: true}, resource, resume},
		},
	)
}

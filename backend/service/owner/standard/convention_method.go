package standard

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// findMethods completes the methods of the mapping and the paths of the fields in their requests.
func (c *convention) findMethods() {
	c.Get = c.method(c.Get, "Get", func(m protoreflect.MethodDescriptor) bool {
		resource, _ := answered(m.Output(), c.noun)
		return string(m.Name()) == "Get"+c.noun && resource != nil && resource.FullName() == c.resource.FullName()
	})
	c.List = c.method(c.List, "List", func(m protoreflect.MethodDescriptor) bool {
		return strings.HasPrefix(string(m.Name()), "List") && c.listOf(m) != nil
	})
	c.Create = c.writing(c.Create, "Create")
	c.Update = c.writing(c.Update, "Update")
	c.Upsert = c.writing(c.Upsert, "Upsert")
	c.Delete = c.method(c.Delete, "Delete", func(m protoreflect.MethodDescriptor) bool {
		return string(m.Name()) == "Delete"+c.noun
	})
	if c.Watch == nil || c.Watch.Method == "" {
		c.Watch = c.watching(c.Watch)
	}
	c.completeKeys()
	c.completeList()
	c.completeWrites()
	c.completeWatch()
}

// method returns given if it names a method. Otherwise it looks for a method of the service for the verb. If none or
// several fit, the method is None.
func (c *convention) method(
	given *MethodMapping, verb string, fits func(protoreflect.MethodDescriptor) bool,
) *MethodMapping {
	if given != nil && given.Method != "" {
		return given
	}
	var found []string
	for i := range c.service.Methods().Len() {
		if m := c.service.Methods().Get(i); !isStream(m) && fits(m) {
			found = append(found, string(m.Name()))
		}
	}
	switch {
	case slices.Contains(found, verb+c.noun):
		found = []string{verb + c.noun}
	case slices.Contains(found, verb+c.noun+"s"):
		found = []string{verb + c.noun + "s"}
	}
	if len(found) > 1 {
		c.note("several methods fit the verb %s, so there is none: %s; %s.method says which one is meant",
			strings.ToUpper(verb), listed(found), strings.ToLower(verb))
		return &MethodMapping{Method: None}
	}
	if given == nil {
		given = &MethodMapping{}
	}
	given.Method = None
	if len(found) == 1 {
		given.Method = found[0]
	}
	return given
}

// writing is like method, for verbs whose request contains the resource.
func (c *convention) writing(given *MethodMapping, verb string) *MethodMapping {
	out := c.method(given, verb, func(m protoreflect.MethodDescriptor) bool {
		return strings.HasPrefix(string(m.Name()), verb) &&
			(m.Input().FullName() == c.resource.FullName() || c.only(m.Input(), c.isResource) != "")
	})
	if named := c.service.Methods().ByName(protoreflect.Name(verb + c.noun)); out.Method == None && named != nil &&
		(given == nil || given.Method == "") {
		c.note("%s has no field of the type %s, so it is not the verb %s", named.Name(), c.resource.Name(),
			strings.ToUpper(verb))
	}
	return out
}

// watching finds a Watch method that streams events with the resource.
func (c *convention) watching(given *MethodMapping) *MethodMapping {
	if given == nil {
		given = &MethodMapping{}
	}
	given.Method = None
	for i := range c.service.Methods().Len() {
		m := c.service.Methods().Get(i)
		if !m.IsStreamingServer() || m.IsStreamingClient() || !strings.HasPrefix(string(m.Name()), "Watch") {
			continue
		}
		if m.Output().FullName() == c.resource.FullName() || c.only(m.Output(), c.isResource) != "" {
			given.Method = string(m.Name())
			break
		}
	}
	return given
}

func (c *convention) isResource(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && !f.IsList() && !f.IsMap() && f.Message().FullName() == c.resource.FullName()
}

// listOf returns the field of m's answer that lists the resources.
func (c *convention) listOf(m protoreflect.MethodDescriptor) protoreflect.FieldDescriptor {
	for i := range m.Output().Fields().Len() {
		f := m.Output().Fields().Get(i)
		if f.IsList() && f.Message() != nil && f.Message().FullName() == c.resource.FullName() {
			return f
		}
	}
	return nil
}

// only returns the name of the only field for which fits returns true; "" if there is none or more than one.
func (c *convention) only(m protoreflect.MessageDescriptor, fits func(protoreflect.FieldDescriptor) bool) string {
	found := ""
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if !fits(f) {
			continue
		}
		if found != "" {
			return ""
		}
		found = string(f.Name())
	}
	return found
}

// isThere reports whether a mapping names a method.
func isThere(m *MethodMapping) bool { return m != nil && m.Method != "" && m.Method != None }

// findMethod returns the method that a mapping names; nil if it names none or the service does not have it.
func (c *convention) findMethod(m *MethodMapping) protoreflect.MethodDescriptor {
	if !isThere(m) {
		return nil
	}
	found, err := c.descriptors.method(c.service, m.Method)
	if err != nil {
		return nil // the code that uses the method reports the error
	}
	return found
}

// method finds a method by its name. A full name such as pkg.Service.Method also names the service; otherwise the
// method belongs to s.
func (d *Descriptors) method(s protoreflect.ServiceDescriptor, name string) (protoreflect.MethodDescriptor, error) {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		var err error
		if s, err = d.service(name[:at]); err != nil {
			return nil, err
		}
		name = name[at+1:]
	}
	if m := s.Methods().ByName(protoreflect.Name(name)); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("the service %s has no method %q", s.FullName(), name)
}

// first does nothing if *to is set. Otherwise it sets *to to the first of the names that is a field of m and for which
// fits returns true.
func first(to *string, m protoreflect.MessageDescriptor, fits func(protoreflect.FieldDescriptor) bool, names ...string) {
	for _, name := range names {
		if *to != "" {
			return
		}
		if f := m.Fields().ByName(protoreflect.Name(name)); f != nil && fits(f) {
			*to = name
		}
	}
}

// completeKeys finds the fields by which the requests of get and delete identify the resource.
func (c *convention) completeKeys() {
	for _, method := range []*MethodMapping{c.Get, c.Delete} {
		m := c.findMethod(method)
		if m == nil {
			continue
		}
		noun := snake(string(c.resource.Name()))
		if method.Key == "" {
			method.Key = c.only(m.Input(), isText)
		}
		first(&method.Key, m.Input(), isText, "name", noun, noun+"_id", noun+"_name", snake(c.noun), "id", "resource_id")
		if c.Pattern == "" && has(c.Namespace) {
			first(&method.Namespace, m.Input(), isText, "namespace")
		}
	}
	if m := c.findMethod(c.Get); m != nil {
		if c.Get.Answer == "" {
			_, c.Get.Answer = answered(m.Output(), c.noun)
		}
		if c.Pattern == "" && has(c.Namespace) && c.Get.Namespace == "" {
			c.note("%s takes no namespace, so the kind is GLOBAL", m.Name())
			c.Namespace = None
		}
	}
	if m := c.findMethod(c.Delete); m != nil {
		first(&c.Delete.Tag, m.Input(), isText, "etag", "revision")
		first(&c.Delete.DryRun, m.Input(), isBool, "validate_only")
		first(&c.Delete.RequestID, m.Input(), isText, "request_id")
		if m.Output().FullName() == operationName {
			c.Delete.Operation = true
		}
	}
}

// has reports whether path is set and is not None.
func has(path string) bool { return path != "" && path != None }

func isBool(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.BoolKind && !f.IsList()
}

func isInteger(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return !f.IsList()
	}
	return false
}

// completeList finds the fields of list's request and answer for the page size, the page tokens, the resources and the
// parent.
func (c *convention) completeList() {
	m := c.findMethod(c.List)
	if m == nil {
		return
	}
	first(&c.List.Size, m.Input(), isInteger, "page_size", "limit")
	first(&c.List.Token, m.Input(), isText, "page_token", "next_token", "start_key")
	first(&c.List.Next, m.Output(), isText, "next_page_token", "next_token", "next_key")
	if f := c.listOf(m); f != nil && c.List.Answer == "" {
		c.List.Answer = string(f.Name())
	}
	c.completeParent(c.List, m)
}

// completeParent finds the field of a request for the part of the name before the collection, such as projects/p.
func (c *convention) completeParent(method *MethodMapping, m protoreflect.MethodDescriptor) {
	parent, _ := splitPattern(c.Pattern)
	if method.Parent != "" || parent == "" {
		return
	}
	first(&method.Parent, m.Input(), isText, "parent")
	if variable := lastVariable(c.Pattern, parent); method.Parent == "" && variable != "" {
		first(&method.Parent, m.Input(), isText, variable)
	}
}

// lastVariable returns the singular of the collection before the namespace, such as project for projects/{namespace};
// "" if the parent does not end with a namespace. In older APIs the field for the parent has this name.
func lastVariable(pattern, parent string) string {
	if !strings.HasSuffix(parent, "/{namespace}") || pattern == "" {
		return ""
	}
	segments := strings.Split(strings.TrimSuffix(parent, "/{namespace}"), "/")
	return strings.TrimSuffix(segments[len(segments)-1], "s")
}

// completeWrites finds the fields in the requests of create, update and upsert.
func (c *convention) completeWrites() {
	for _, method := range []*MethodMapping{c.Create, c.Update, c.Upsert} {
		m := c.findMethod(method)
		if m == nil {
			continue
		}
		if method.Resource == "" {
			method.Resource = c.only(m.Input(), c.isResource)
			if m.Input().FullName() == c.resource.FullName() {
				method.Resource = Itself
			}
		}
		first(&method.DryRun, m.Input(), isBool, "validate_only")
		first(&method.RequestID, m.Input(), isText, "request_id")
		if m.Output().FullName() == operationName {
			method.Operation = true
		}
		if method.Answer == "" && !method.Operation {
			resource, at := answered(m.Output(), string(c.resource.Name()))
			if resource != nil && resource.FullName() == c.resource.FullName() {
				method.Answer = at
			}
		}
	}
	if m := c.findMethod(c.Create); m != nil {
		noun := snake(string(c.resource.Name()))
		first(&c.Create.ID, m.Input(), isText, noun+"_id", "id", "resource_id")
		c.completeParent(c.Create, m)
	}
	for _, method := range []*MethodMapping{c.Update, c.Upsert} {
		if m := c.findMethod(method); m != nil {
			first(&method.Mask, m.Input(), isMask, "update_mask", "field_mask", "mask")
			first(&method.Tag, m.Input(), isText, "etag", "revision")
		}
	}
}

func isMask(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && !f.IsList() && f.Message().FullName() == maskName
}

// completeWatch finds the field of an event that has the resource.
func (c *convention) completeWatch() {
	m := c.findMethod(c.Watch)
	if m == nil || c.Watch.Answer != "" {
		return
	}
	c.Watch.Answer = c.only(m.Output(), c.isResource)
	if m.Output().FullName() == c.resource.FullName() {
		c.Watch.Answer = Itself
	}
}

package standard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file has the conventions by which a mapping is completed. They come from Teleport's RFD 153 (kind, version,
// metadata, spec, status) and from Google's API improvement proposals (https://google.aip.dev/121 to 164).

// The names of types by which methods and fields are recognised.
const (
	operationName = "google.longrunning.Operation"
	timestampName = "google.protobuf.Timestamp"
	maskName      = "google.protobuf.FieldMask"
)

// Candidate is a message that may become a kind, because a Get or List method returns it.
type Candidate struct {
	// Kind is the name that the kind would get.
	Kind string
	// Message is the full name of the message, and Service the full name of the service with the method.
	Message string
	Service string
}

// Candidates returns the messages that may become kinds: first those that Get methods return, then those that only List
// methods return.
func (d *Descriptors) Candidates() (out []Candidate) {
	seen := map[string]bool{}
	for _, prefix := range []string{"Get", "List"} {
		for _, s := range d.services {
			for i := range s.Methods().Len() {
				resource := resourceOf(s.Methods().Get(i), prefix)
				if isForeign(s) || resource == nil || seen[string(resource.FullName())] {
					continue
				}
				seen[string(resource.FullName())] = true
				out = append(out, Candidate{
					Kind: string(resource.Name()), Message: string(resource.FullName()), Service: string(s.FullName()),
				})
			}
		}
	}
	return out
}

// resourceOf returns the message type of the resource that the method m returns. It returns nil if m's name does not
// begin with prefix, which is Get or List.
func resourceOf(m protoreflect.MethodDescriptor, prefix string) protoreflect.MessageDescriptor {
	noun, ok := strings.CutPrefix(string(m.Name()), prefix)
	if !ok || isStream(m) {
		return nil
	}
	if prefix == "Get" {
		resource, _ := answered(m.Output(), noun)
		return resource
	}
	for i := range m.Output().Fields().Len() {
		f := m.Output().Fields().Get(i)
		if f.IsList() && f.Message() != nil && strings.HasPrefix(noun, string(f.Message().Name())) {
			return f.Message()
		}
	}
	return nil
}

// isForeign reports whether a service belongs to a common library, not to the API itself.
func isForeign(s protoreflect.ServiceDescriptor) bool {
	for _, prefix := range []string{"google.longrunning.", "google.iam.", "google.cloud.location.", "grpc."} {
		if strings.HasPrefix(string(s.FullName()), prefix) {
			return true
		}
	}
	return false
}

func isStream(m protoreflect.MethodDescriptor) bool {
	return m.IsStreamingClient() || m.IsStreamingServer()
}

// answered finds the resource in an answer of type output. It returns the resource's message type and the name of the
// field that holds it. The name is "." if the answer itself is the resource. Without a resource, it returns nil. noun
// is the name of the kind as the method's name has it, such as Topic in GetTopic.
func answered(output protoreflect.MessageDescriptor, noun string) (protoreflect.MessageDescriptor, string) {
	if string(output.Name()) == noun {
		return output, Itself
	}
	for i := range output.Fields().Len() {
		f := output.Fields().Get(i)
		if f.Message() != nil && !f.IsList() && !f.IsMap() && string(f.Message().Name()) == noun {
			return f.Message(), string(f.Name())
		}
	}
	if strings.HasPrefix(string(output.FullName()), "google.protobuf.") || strings.HasSuffix(string(output.Name()), "Response") {
		return nil, ""
	}
	return output, Itself
}

// convention completes the mapping of a kind.
type convention struct {
	descriptors *Descriptors
	name        string
	*KindMapping
	resource protoreflect.MessageDescriptor
	service  protoreflect.ServiceDescriptor
	// noun is the kind's name as method names have it, such as Topic in GetTopic.
	noun string
	// notes tell the operator what was not found and what to check.
	notes []string
}

func (c *convention) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// complete returns a copy of given. It fills in missing parts by the conventions.
func (d *Descriptors) complete(name string, given *KindMapping) (*convention, error) {
	k, err := given.clone()
	if err != nil {
		return nil, err
	}
	c := &convention{descriptors: d, name: name, KindMapping: k}
	if err := c.findMessage(); err != nil {
		return nil, err
	}
	if c.service, err = d.service(c.Service); err != nil {
		return nil, err
	}
	if c.resource, err = d.message(c.Message); err != nil {
		return nil, err
	}
	c.noun = c.findNoun()
	c.findPattern()
	c.findFields()
	c.findMethods()
	return c, nil
}

// findMessage finds the message and the service of the kind, unless the mapping has them.
func (c *convention) findMessage() error {
	if c.Message != "" && c.Service != "" {
		return nil
	}
	var fit []Candidate
	for _, one := range c.descriptors.Candidates() {
		switch {
		case c.Message != "" && one.Message != c.Message, c.Service != "" && one.Service != c.Service:
		case c.Message == "" && one.Kind != c.name:
		default:
			fit = append(fit, one)
		}
	}
	if len(fit) != 1 {
		var names []string
		for _, one := range fit {
			names = append(names, one.Message+" of "+one.Service)
		}
		if len(fit) == 0 {
			for _, one := range c.descriptors.Candidates() {
				names = append(names, one.Kind)
			}
			return fmt.Errorf("no method Get or List of the API answers a %s; there are %s; message and service say which one is "+
				"meant", c.name, listed(names))
		}
		return fmt.Errorf("several messages fit: %s; message and service say which one is meant", listed(names))
	}
	c.Message = fit[0].Message
	c.Service = fit[0].Service
	return nil
}

// listed joins names for an error. If there are many, some are left out.
func listed(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// findNoun returns the kind's name as the name of the Get method has it, such as Topic in GetTopic.
func (c *convention) findNoun() string {
	if c.Get != nil && c.Get.Method != "" && c.Get.Method != None {
		name := c.Get.Method[strings.LastIndexByte(c.Get.Method, '.')+1:]
		if noun, ok := strings.CutPrefix(name, "Get"); ok {
			return noun
		}
	}
	for i := range c.service.Methods().Len() {
		m := c.service.Methods().Get(i)
		noun, ok := strings.CutPrefix(string(m.Name()), "Get")
		if !ok || isStream(m) {
			continue
		}
		if resource, _ := answered(m.Output(), noun); resource != nil && resource.FullName() == c.resource.FullName() {
			return noun
		}
	}
	return string(c.resource.Name())
}

// patternVariable matches a variable in a name pattern, such as {topic} in projects/{project}/topics/{topic}.
var patternVariable = regexp.MustCompile(`\{([a-z][_a-z0-9]*)(=[^}]*)?\}`)

// findPattern sets the name pattern and the path of the name from the option google.api.resource. It does nothing if
// the mapping has a pattern.
func (c *convention) findPattern() {
	declared := messageOption(c.resource.Options(), optionResource)
	if c.Pattern != "" || declared == nil {
		return
	}
	patterns := textsAt(declared, "pattern")
	if name, ok := valueAt(declared, "name_field"); ok && c.Name == "" {
		c.Name = name.String()
	}
	for _, pattern := range patterns {
		variables := patternVariable.FindAllString(pattern, -1)
		switch len(variables) {
		case 1:
			c.Pattern = strings.Replace(pattern, variables[0], "{name}", 1)
		case 2:
			c.Pattern = strings.Replace(pattern, variables[0], "{namespace}", 1)
			c.Pattern = strings.Replace(c.Pattern, variables[1], "{name}", 1)
		default:
			continue
		}
		if len(patterns) > 1 {
			c.note("names have several patterns, of which %s is used: %s", pattern, strings.Join(patterns, ", "))
		}
		return
	}
	if len(patterns) > 0 {
		c.note("the names have the pattern %s, of which a namespace and a name can express only two variables: set "+
			"pattern to one with {namespace} and {name}, and with values in the place of the other variables", patterns[0])
	}
}

// findFields sets the paths of spec, status and metadata that the mapping lacks. For a resource with a field spec, it
// also sets the constants kind and version, if the mapping has no constants.
func (c *convention) findFields() {
	fields := c.resource.Fields()
	object := fields.ByName("spec")
	if c.Spec == "" {
		c.Spec = Itself
		if object != nil && object.Message() != nil && !object.IsList() && !object.IsMap() {
			c.Spec = "spec"
		}
	}
	if c.Status == "" {
		status := fields.ByName("status")
		switch {
		case c.Spec == Itself:
			c.Status = Itself
		case status != nil && status.Message() != nil && !status.IsList() && !status.IsMap():
			c.Status = "status"
		default:
			c.Status = None
		}
	}
	for _, one := range []struct {
		to    *string
		is    func(protoreflect.FieldDescriptor) bool
		names []string
	}{
		{&c.Name, isText, []string{"metadata.name", "name", "id"}},
		{&c.Namespace, isText, []string{"metadata.namespace"}},
		{&c.Tag, isText, []string{"metadata.revision", "etag", "metadata.etag", "metadata.resource_version", "revision"}},
		{&c.UID, isText, []string{"metadata.uid", "uid"}},
		{&c.Labels, isTextMap, []string{"metadata.labels", "labels"}},
		{&c.Annotations, isTextMap, []string{"metadata.annotations", "annotations"}},
		{&c.Description, isText, []string{"metadata.description", "description"}},
		{&c.CreatedAt, isTimestamp, []string{"metadata.create_time", "create_time", "metadata.created_at", "created_at"}},
		{&c.DeletedAt, isTimestamp, []string{"metadata.delete_time", "delete_time"}},
	} {
		for _, name := range one.names {
			if *one.to != "" {
				break
			}
			if f, err := fieldOf(c.resource, name); err == nil && one.is(f.last()) {
				*one.to = name
			}
		}
	}
	if c.Set == nil && c.Spec == "spec" {
		c.Set = map[string]string{}
		if f := fields.ByName("kind"); f != nil && isText(f) {
			c.Set["kind"] = snake(string(c.resource.Name()))
		}
		if f := fields.ByName("version"); f != nil && isText(f) {
			c.Set["version"] = "v1"
		}
		if len(c.Set) > 0 {
			c.note("each resource is written with %s: set says so, and can have other values", setTexts(c.Set))
		}
	}
}

func setTexts(set map[string]string) string {
	var out []string
	for path, text := range set {
		out = append(out, fmt.Sprintf("%s %q", path, text))
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}

func isText(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.StringKind && !f.IsList()
}

func isTextMap(f protoreflect.FieldDescriptor) bool {
	return f.IsMap() && f.MapKey().Kind() == protoreflect.StringKind && f.MapValue().Kind() == protoreflect.StringKind
}

func isTimestamp(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && !f.IsList() && !f.IsMap() && f.Message().FullName() == timestampName
}

// snake converts a name to lower case, with underscores between its words.
func snake(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

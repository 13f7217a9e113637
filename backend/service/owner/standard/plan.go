package standard

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/service/owner"
)

// plan is the completed and compiled mapping of a kind.
type plan struct {
	name string
	// mapping is the completed mapping. notes tell the operator what the conventions have not found.
	mapping *KindMapping
	notes   []string
	// omitted are the parts of the resource that are not part of the kind.
	omitted []Omitted

	resource protoreflect.MessageDescriptor
	// nameAt is the path of the name. Each of the other paths is empty if the API does not have such a field.
	nameAt, namespaceAt, tagAt, uidAt, labelsAt, annotationsAt fieldAt
	descriptionAt, createdAt, deletedAt                        fieldAt
	// specAt and statusAt are the paths of the messages of spec and status; empty if they are the resource itself.
	// status is nil if there is no status.
	specAt, statusAt fieldAt
	spec, status     *shape
	// set are the constant strings that each resource has.
	set []setText

	get, list, create, update, upsert, remove, watch *method
	// operation is the method for polling operations; nil if there are none.
	operation *method
}

// setText is a string field of a message and its constant value.
type setText struct {
	fieldAt
	text string
}

// fieldOf resolves path, such as spec.size, in the message m.
func fieldOf(m protoreflect.MessageDescriptor, path string) (fieldAt, error) {
	steps := strings.Split(path, ".")
	if len(steps) > maxDepth {
		return nil, fmt.Errorf("the path %q has more than %d names", shortText(path), maxDepth)
	}
	var out fieldAt
	for i, step := range steps {
		f := m.Fields().ByName(protoreflect.Name(step))
		if f == nil {
			return nil, fmt.Errorf("the message %s has no field %q", m.FullName(), shortText(step))
		}
		out = append(out, f)
		if i == len(steps)-1 {
			return out, nil
		}
		if f.Message() == nil || f.IsList() || f.IsMap() {
			return nil, fmt.Errorf("%s: the field %s is no message, so nothing is in it", shortText(path), step)
		}
		m = f.Message()
	}
	return out, nil
}

// compiler compiles the mapping of a kind.
type compiler struct {
	*convention
	plan *plan
	errs []error
}

func (c *compiler) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// at resolves path in the message m. It returns nil if the mapping names no path. If there is no such field, or fits
// returns false for it, at adds an error and returns nil. The error has key, which is the key in the mapping, and
// accepted, which describes the accepted fields.
func (c *compiler) at(
	m protoreflect.MessageDescriptor, key, path string, fits func(protoreflect.FieldDescriptor) bool, accepted string,
) fieldAt {
	if !has(path) || m == nil {
		return nil
	}
	out, err := fieldOf(m, path)
	switch {
	case err != nil:
		c.refuse("%s: %w", key, err)
		return nil
	case fits != nil && !fits(out.last()):
		c.refuse("%s: the field %s of %s is no %s", key, path, m.FullName(), accepted)
		return nil
	}
	return out
}

// compile compiles the mapping of a kind. The error joins all problems with the mapping and names the keys that have
// them.
func (d *Descriptors) compile(name string, given *KindMapping) (*plan, error) {
	completed, err := d.complete(name, given)
	if err != nil {
		return nil, err
	}
	c := &compiler{convention: completed}
	c.plan = &plan{name: name, mapping: completed.KindMapping, resource: completed.resource}
	if !graphName.MatchString(name) {
		c.refuse("a kind cannot be called %q", shortText(name))
	}
	c.compileFields()
	c.compileMethods()
	c.compileShapes()
	c.plan.notes = completed.notes
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return c.plan, nil
}

func (c *compiler) compileFields() {
	p := c.plan
	const text, textMap, timestamp = "text", "map of texts", "google.protobuf.Timestamp"
	p.nameAt = c.at(c.resource, "name", c.Name, isText, text)
	if p.nameAt == nil {
		c.refuse("name: no field of %s has the name of the resource; name says which one it is", c.resource.FullName())
	}
	p.namespaceAt = c.at(c.resource, "namespace", c.Namespace, isText, text)
	p.tagAt = c.at(c.resource, "tag", c.Tag, isText, text)
	p.uidAt = c.at(c.resource, "uid", c.UID, isText, text)
	p.labelsAt = c.at(c.resource, "labels", c.Labels, isTextMap, textMap)
	p.annotationsAt = c.at(c.resource, "annotations", c.Annotations, isTextMap, textMap)
	p.descriptionAt = c.at(c.resource, "description", c.Description, isText, text)
	p.createdAt = c.at(c.resource, "createdAt", c.CreatedAt, isTimestamp, timestamp)
	p.deletedAt = c.at(c.resource, "deletedAt", c.DeletedAt, isTimestamp, timestamp)
	if has(c.Pattern) {
		if err := checkPattern(c.Pattern); err != nil {
			c.refuse("pattern: %w", err)
		}
		p.namespaceAt = nil
	}
	for _, path := range slices.Sorted(maps.Keys(c.Set)) {
		if at := c.at(c.resource, "set", path, isText, text); at != nil {
			p.set = append(p.set, setText{at, c.Set[path]})
		}
	}
}

// compileMethods compiles the methods. Get and list are required.
func (c *compiler) compileMethods() {
	p := c.plan
	for _, one := range []struct {
		key   string
		given *MethodMapping
		to    **method
	}{
		{"get", c.Get, &p.get},
		{"list", c.List, &p.list},
		{"create", c.Create, &p.create},
		{"update", c.Update, &p.update},
		{"upsert", c.Upsert, &p.upsert},
		{"delete", c.Delete, &p.remove},
		{"watch", c.Watch, &p.watch},
	} {
		if isThere(one.given) {
			*one.to = c.compileMethod(one.key, one.given)
		}
	}
	for key, m := range map[string]*method{"get": p.get, "list": p.list} {
		if m == nil && len(c.errs) == 0 {
			c.refuse("%s: the service %s has no such method for %s, and nothing can be mirrored without it",
				key, c.service.FullName(), c.resource.Name())
		}
	}
	if len(c.errs) > 0 {
		return
	}
	c.checkMethods()
}

// checkMethods adds errors for methods whose messages lack a field that the gateway needs, and removes methods that
// cannot be used for their verb.
func (c *compiler) checkMethods() {
	p := c.plan
	for key, m := range map[string]*method{"get": p.get, "delete": p.remove} {
		if m != nil && m.keyAt == nil {
			c.refuse("%s.key: no field of %s is known to have the name; key says which one it is",
				key, m.Input().FullName())
		}
	}
	if p.get.answerAt == nil && !p.get.itself {
		c.refuse("get.answer: no field of %s has the resource; answer says which one it is", p.get.Output().FullName())
	}
	if p.list.answerAt == nil {
		c.refuse("list.answer: no field of %s has the resources; answer says which one it is", p.list.Output().FullName())
	}
	c.checkPages()
	if parent, _ := splitPattern(c.Pattern); strings.Contains(parent, namespaceVariable) && p.list.parentAt == nil {
		c.refuse("list.parent: no field of %s is known to have %s; parent says which one it is",
			p.list.Input().FullName(), parent)
	}
	for _, one := range []struct {
		key string
		m   **method
	}{{"create", &p.create}, {"update", &p.update}, {"upsert", &p.upsert}} {
		if *one.m != nil && (*one.m).resourceAt == nil && !(*one.m).resourceItself {
			c.note("%s has no field of the type %s, so it is not the verb %s", (*one.m).Name(), c.resource.Name(),
				strings.ToUpper(one.key))
			*one.m = nil
		}
	}
	if m := p.create; m != nil && has(c.Pattern) && m.idAt == nil && !m.resourceItself {
		c.note("%s takes no id, so the service chooses the names of what is created, and there is no verb CREATE; "+
			"create.id says if a field has it", m.Name())
		p.create = nil
	}
	c.checkCreatedName()
	if p.update != nil && !p.conditional() {
		c.note("%s is not conditional: %s; there are no verbs UPDATE and PATCH", p.update.Name(), c.whyUnconditional())
	}
	c.checkWatch()
	if p.conditional() && p.remove != nil && p.remove.tagAt == nil {
		c.note("%s takes no tag: the tag is compared just before the call, and not in the same step", p.remove.Name())
	}
}

// checkWatch drops a stream whose events do not name the resource. If no field of an event names a deleted resource, it
// adds a note.
func (c *compiler) checkWatch() {
	m := c.plan.watch
	switch {
	case m == nil || m.headerAt != nil:
	case m.answerAt == nil && !m.itself:
		c.note("no field of %s is known to have the resource or to name it, so %s is not used, and everything is compared "+
			"every 30 s; watch.answer and watch.header say which fields do", m.Output().FullName(), m.Name())
		c.plan.watch = nil
	default:
		c.note("a deletion is noticed by %s if its event has the resource, and otherwise when everything is compared, every 10 "+
			"minutes; watch.header says which field names a deleted resource", m.Name())
	}
}

// checkPages adds an error if list seems to have pages but the mapping lacks the fields by which pages are requested.
// Otherwise only the first page would be read.
func (c *compiler) checkPages() {
	m := c.plan.list
	if m.tokenAt != nil && m.nextAt != nil || c.List.Token == None || c.List.Next == None {
		return
	}
	found := c.pageField(m)
	switch {
	case m.tokenAt != nil:
		found = c.List.Token
	case m.nextAt != nil:
		found = c.List.Next
	}
	if found == "" {
		c.note("%s has no pages: each answer is taken for the list of all", m.Name())
		return
	}
	c.refuse("list.token, list.next: the pages of %s are not recognised (it has the field %s), and only the first one "+
		"would be read; token and next say which fields have them, and - says that each answer has all resources",
		m.Name(), found)
}

// pageField returns the name of a field of list's request or answer that may be about pages; "" if there is none.
func (c *compiler) pageField(m *method) string {
	answer := m.Output().Fields()
	for i := range answer.Len() {
		f := answer.Get(i)
		if !f.IsList() && !f.IsMap() {
			return string(f.Name())
		}
	}
	request := m.Input().Fields()
	for i := range request.Len() {
		f := request.Get(i)
		if isInteger(f) || pageName.MatchString(string(f.Name())) {
			return string(f.Name())
		}
	}
	return ""
}

// pageName matches names of fields that may select a page.
var pageName = regexp.MustCompile(`page|pagination|token|cursor|limit|offset|start|after|continue`)

// checkCreatedName removes create if its request has no place for the name: neither an id nor the resource.
func (c *compiler) checkCreatedName() {
	m := c.plan.create
	if m == nil || m.idAt != nil {
		return
	}
	name := c.plan.nameAt.last()
	if behaves(name, behaviorOutputOnly) || behaves(name, behaviorIdentifier) && !has(c.Pattern) {
		c.note("%s takes no id, and callers do not set the field %s, so the service chooses the names of what is "+
			"created, and there is no verb CREATE; create.id says if a field has it", m.Name(), c.Name)
		c.plan.create = nil
		return
	}
	if c.Name == "id" {
		c.note("%s takes no id but that of the resource: if the service chooses it, set create.method to -", m.Name())
	}
}

func (c *compiler) whyUnconditional() string {
	if c.Unconditional {
		return "the mapping says so"
	}
	return "the resource has no tag, such as etag or metadata.revision; tag says if a field is one"
}

// conditional reports whether updates are conditional on a tag.
func (p *plan) conditional() bool {
	return p.update != nil && p.tagAt != nil && !p.mapping.Unconditional
}

// compileMethod compiles a method. It returns nil after it has added an error.
func (c *compiler) compileMethod(key string, given *MethodMapping) *method {
	found, err := c.descriptors.method(c.service, given.Method)
	if err != nil {
		c.refuse("%s.method: %w", key, err)
		return nil
	}
	if found.IsStreamingClient() || found.IsStreamingServer() != (key == "watch") {
		c.refuse("%s.method: %s is of another form: watch takes a method that streams its answers, all others one that "+
			"has one request and one answer", key, found.FullName())
		return nil
	}
	m := &method{MethodDescriptor: found, operation: given.Operation}
	in, out := found.Input(), found.Output()
	m.requires = hasRequired(in, map[protoreflect.FullName]bool{})
	for _, one := range []struct {
		key  string
		path string
		to   *fieldAt
		of   protoreflect.MessageDescriptor
		fits func(protoreflect.FieldDescriptor) bool
		is   string
	}{
		{"key", given.Key, &m.keyAt, in, isText, "text"},
		{"namespace", given.Namespace, &m.namespaceAt, in, isText, "text"},
		{"parent", given.Parent, &m.parentAt, in, isText, "text"},
		{"id", given.ID, &m.idAt, in, isText, "text"},
		{"mask", given.Mask, &m.maskAt, in, isMask, "google.protobuf.FieldMask"},
		{"tag", given.Tag, &m.tagAt, in, isText, "text"},
		{"dryRun", given.DryRun, &m.dryRunAt, in, isBool, "bool"},
		{"requestId", given.RequestID, &m.requestAt, in, isText, "text"},
		{"size", given.Size, &m.sizeAt, in, isInteger, "integer"},
		{"token", given.Token, &m.tokenAt, in, isText, "text"},
		{"next", given.Next, &m.nextAt, out, isText, "text"},
	} {
		*one.to = c.at(one.of, key+"."+one.key, one.path, one.fits, one.is)
	}
	m.resourceItself = given.Resource == Itself && in.FullName() == c.resource.FullName()
	if !m.resourceItself {
		m.resourceAt = c.at(in, key+".resource", given.Resource, c.isResource, string(c.resource.FullName()))
	}
	if m.operation {
		c.compileOperation(key, m)
	} else {
		c.compileAnswer(key, given, m)
	}
	c.compileHeader(key, given, m)
	if len(given.Set) > 0 {
		m.template = dynamicpb.NewMessage(in)
		read := protojson.UnmarshalOptions{Resolver: c.descriptors.types}
		if err := read.Unmarshal(given.Set, m.template); err != nil {
			c.refuse("%s.set: it is no %s: %w", key, in.FullName(), err)
		}
	}
	return m
}

// compileAnswer finds the resource in the answer of a method.
func (c *compiler) compileAnswer(key string, given *MethodMapping, m *method) {
	fits := c.isResource
	if key == "list" {
		fits = func(f protoreflect.FieldDescriptor) bool {
			return f.IsList() && f.Message() != nil && f.Message().FullName() == c.resource.FullName()
		}
	}
	m.itself = given.Answer == Itself
	if !m.itself {
		m.answerAt = c.at(m.Output(), key+".answer", given.Answer, fits, string(c.resource.FullName()))
		return
	}
	if m.Output().FullName() != c.resource.FullName() || key == "list" {
		c.refuse("%s.answer: the answer of %s is no %s", key, m.Name(), c.resource.FullName())
	}
}

// compileHeader resolves the paths of the header in an event.
func (c *compiler) compileHeader(key string, given *MethodMapping, m *method) {
	if !has(given.Header) {
		return
	}
	isMessage := func(f protoreflect.FieldDescriptor) bool { return f.Message() != nil && !f.IsList() && !f.IsMap() }
	m.headerAt = c.at(m.Output(), key+".header", given.Header, isMessage, "message")
	if m.headerAt == nil {
		return
	}
	header := m.headerAt.last().Message()
	name := given.HeaderName
	if name == "" {
		name = c.Name
	}
	m.headerNameAt = c.at(header, key+".headerName", name, isText, "text")
	m.headerNamespaceAt = c.at(header, key+".headerNamespace", given.HeaderNamespace, isText, "text")
	for _, path := range slices.Sorted(maps.Keys(given.HeaderIs)) {
		if at := c.at(header, key+".headerIs", path, isText, "text"); at != nil {
			m.headerIs = append(m.headerIs, setText{at, given.HeaderIs[path]})
		}
	}
}

// compileOperation finds the method that polls the operations which m returns.
func (c *compiler) compileOperation(key string, m *method) {
	if !isOperation(m.Output()) {
		c.refuse("%s.operation: the answer of %s is no %s", key, m.Name(), operationName)
		return
	}
	poll, err := c.descriptors.method(c.service, "google.longrunning.Operations.GetOperation")
	if err != nil {
		c.refuse("%s.operation: it cannot be polled: %w", key, err)
		return
	}
	name := poll.Input().Fields().ByName("name")
	if name == nil || !isText(name) || !isOperation(poll.Output()) {
		c.refuse("%s.operation: %s is of another form than Google's", key, poll.FullName())
		return
	}
	c.plan.operation = &method{
		MethodDescriptor: poll, keyAt: fieldAt{name}, requires: hasRequired(poll.Input(), map[protoreflect.FullName]bool{}),
	}
}

// isOperation reports whether a message is a google.longrunning.Operation with all fields that are needed.
func isOperation(m protoreflect.MessageDescriptor) bool {
	name := m.Fields().ByName("name")
	done := m.Fields().ByName("done")
	failed := m.Fields().ByName("error")
	return m.FullName() == operationName && name != nil && isText(name) && done != nil && isBool(done) &&
		failed != nil && failed.Message() != nil && !failed.IsList() && !failed.IsMap()
}

// compileShapes compiles the shapes of spec and status.
func (c *compiler) compileShapes() {
	if len(c.errs) > 0 {
		return
	}
	p := c.plan
	shape := func(key, path string, status bool, chosen func(protoreflect.FieldDescriptor) bool) (fieldAt, *shape) {
		s := &shaper{status: status, omit: setOf(c.Omit), text: setOf(c.Text)}
		m := c.resource
		var at fieldAt
		if path != Itself {
			at = c.at(c.resource, key, path, func(f protoreflect.FieldDescriptor) bool {
				return f.Message() != nil && !f.IsList() && !f.IsMap()
			}, "message")
			if at == nil {
				return nil, nil
			}
			m = at.last().Message()
			chosen = nil
		} else {
			path = ""
		}
		out, err := s.shape(m, path, nil, chosen)
		if err != nil {
			c.refuse("%s: %w", key, err)
			return nil, nil
		}
		for _, one := range s.omitted {
			p.omitted = append(p.omitted, Omitted{Path: p.name + "." + one.Path, Why: one.Why})
		}
		return at, out
	}
	if c.Spec == None {
		c.refuse("spec: a kind must have a spec: the path of a message and . for the resource itself are accepted")
		return
	}
	taken := c.taken()
	p.specAt, p.spec = shape("spec", c.Spec, false, func(f protoreflect.FieldDescriptor) bool {
		return !taken[f.Name()] && !behaves(f, behaviorOutputOnly) && !behaves(f, behaviorIdentifier)
	})
	if c.Status == None {
		return
	}
	p.statusAt, p.status = shape("status", c.Status, true, func(f protoreflect.FieldDescriptor) bool {
		return !taken[f.Name()] && behaves(f, behaviorOutputOnly)
	})
	if p.status != nil && len(p.status.fields) == 0 {
		p.status = nil
	}
}

// taken returns the fields that have another use in the mapping. A spec that is the resource itself does not have them.
func (c *compiler) taken() map[protoreflect.Name]bool {
	p := c.plan
	out := map[protoreflect.Name]bool{}
	all := []fieldAt{
		p.nameAt, p.namespaceAt, p.tagAt, p.uidAt, p.labelsAt, p.annotationsAt, p.descriptionAt, p.createdAt, p.deletedAt,
	}
	for _, text := range p.set {
		all = append(all, text.fieldAt)
	}
	for _, at := range all {
		if len(at) > 0 {
			out[at[0].Name()] = true
		}
	}
	if c.Status != Itself && has(c.Status) {
		name, _, _ := strings.Cut(c.Status, ".")
		out[protoreflect.Name(name)] = true
	}
	return out
}

func setOf(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// described returns the kind with the capabilities that follow from its methods and fields.
func (p *plan) described() owner.Kind {
	out := owner.Kind{
		Name:          p.name,
		Changes:       p.watch != nil,
		Writes:        p.create != nil || p.update != nil || p.upsert != nil || p.remove != nil,
		Conditional:   p.conditional(),
		DryRun:        p.create != nil && (p.update != nil || p.upsert != nil),
		NoCreate:      p.create == nil,
		Partial:       true,
		NoLabels:      p.labelsAt == nil,
		NoAnnotations: p.annotationsAt == nil,
		NoDescription: p.descriptionAt == nil,
	}
	for _, m := range []*method{p.create, p.update, p.upsert} {
		out.DryRun = out.DryRun && (m == nil || m.dryRunAt != nil)
	}
	return out
}

// namespaced reports whether the kind has namespaces.
func (p *plan) namespaced() bool {
	return p.namespaceAt != nil || strings.Contains(p.mapping.Pattern, namespaceVariable)
}

// pattern returns the pattern of names; "" if there is none.
func (p *plan) pattern() string {
	if p.mapping.Pattern == None {
		return ""
	}
	return p.mapping.Pattern
}

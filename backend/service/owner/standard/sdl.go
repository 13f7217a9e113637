package standard

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits are what the SDL must respect besides what the API declares.
type Limits struct {
	// Length is the maximum length of a string in characters. Items is the maximum length of a list or map. They are
	// for values for which the API does not declare any bound.
	Length, Items int
	// Reserved reports whether no catalogue may have a type with this name. nil: no name is reserved.
	Reserved func(name string) bool
}

// Defaults of [Limits].
const (
	DefaultLength = 1000
	DefaultItems  = 1000
)

// Catalogue is what a gateway needs to serve an API.
type Catalogue struct {
	SDL string
	// Mapping is the completed mapping of the kinds.
	Mapping *Mapping
	// Kinds are the kinds that can be served, in the order of the SDL.
	Kinds []string
	// Refused lists the kinds that cannot be served. Omitted lists the missing parts of the other kinds.
	Refused, Omitted []Omitted
	// Notes tell the operator what to check. Limited lists the values whose bounds are from Limits.
	Notes, Limited []Omitted
}

// Catalogue returns the SDL and the mapping for the service with the name service. If kinds is empty, the result has
// all kinds that can be served. given is a mapping written by hand; nil if there is none.
func (d *Descriptors) Catalogue(service string, kinds []string, given *Mapping, limits Limits) (*Catalogue, error) {
	out := &Catalogue{Mapping: &Mapping{Kinds: map[string]*KindMapping{}}}
	if given == nil {
		given = &Mapping{}
	}
	chosen, err := d.choose(kinds, given)
	if err != nil {
		return nil, err
	}
	out.Refused = chosen.refused
	w := &sdlWriter{limits: limits, service: service, names: map[string]any{}, derived: map[string]bool{}, out: out}
	var plans []*plan
	for _, name := range chosen.names {
		p, err := d.compile(name, chosen.mappings[name])
		if err == nil {
			err = servable(p)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				out.Refused = append(out.Refused, Omitted{Path: name, Why: line})
			}
			continue
		}
		out.Kinds = append(out.Kinds, name)
		out.Mapping.Kinds[name] = p.mapping
		out.Omitted = append(out.Omitted, p.omitted...)
		for _, note := range p.notes {
			out.Notes = append(out.Notes, Omitted{Path: name, Why: note})
		}
		plans = append(plans, p)
		w.take(name, p)
	}
	for _, p := range plans {
		w.kind(p)
	}
	out.SDL = strings.TrimLeft(w.text.String(), "\n")
	return out, nil
}

// servable returns an error for a kind that cannot be expressed in SDL.
func servable(p *plan) error {
	if len(p.spec.fields) == 0 {
		return fmt.Errorf("no field of %s is one that callers set and that can be expressed, and a kind must have one",
			p.resource.FullName())
	}
	return nil
}

func (p *plan) verbs() []string {
	out := []string{"GET", "LIST", "WATCH"}
	for _, one := range []struct {
		verb string
		is   bool
	}{
		{"CREATE", p.create != nil},
		{"UPDATE", p.conditional()},
		{"PATCH", p.conditional()},
		{"UPSERT", p.create != nil && (p.upsert != nil || p.update != nil)},
		{"DELETE", p.remove != nil},
	} {
		if one.is {
			out = append(out, one.verb)
		}
	}
	return out
}

// sdlWriter writes the SDL of kinds.
type sdlWriter struct {
	limits  Limits
	service string
	text    strings.Builder
	// names maps the used names of types to their kinds, shapes or enums. derived has the names of the types that the
	// gateway derives from them.
	names   map[string]any
	derived map[string]bool
	out     *Catalogue
	// plan is the kind that is being written. status reports whether the writer is within the kind's status.
	plan   *plan
	status bool
}

// apiVersion matches a version as the last part of the name of a package.
var apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]*)?$`)

// groupOf derives the group and the version of kinds from the name of their package: pubsub.google and v1 from
// google.pubsub.v1.
func groupOf(name protoreflect.FullName) (group, version string) {
	parts := strings.Split(strings.ReplaceAll(strings.ToLower(string(name)), "_", "-"), ".")
	version = "v1"
	if last := parts[len(parts)-1]; apiVersion.MatchString(last) {
		version = last
		parts = parts[:len(parts)-1]
	}
	slices.Reverse(parts)
	return strings.Join(parts, "."), version
}

func lowerFirst(text string) string {
	runes := []rune(text)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

// plural returns the plural of the kind's name for the SDL, beginning with a lower-case letter.
func (p *plan) plural() string {
	name := strings.TrimPrefix(string(p.list.Name()), "List")
	if noun := strings.TrimPrefix(string(p.get.Name()), "Get"); name == noun || name == p.name || !graphName.MatchString(name) {
		name = p.name + "s"
	}
	return lowerFirst(name)
}

func (w *sdlWriter) kind(p *plan) {
	w.plan = p
	group, version := groupOf(p.resource.ParentFile().Package())
	scope := "GLOBAL"
	if p.namespaced() {
		scope = "NAMESPACED"
	}
	w.describe("", p.resource, "A "+p.name+" of the service "+w.service+".")
	fmt.Fprintf(&w.text, "type %s\n  @resource(\n    plural: %s\n    group: %s\n    version: %s\n    scope: %s\n    service: %s\n"+
		"    verbs: [%s]\n  ) {\n", p.name, quoted(p.plural()), quoted(group), quoted(version), scope, quoted(w.service),
		strings.Join(p.verbs(), ", "))
	spec := w.reserve(p.name+"Spec", p.spec)
	fmt.Fprintf(&w.text, "  spec: %s!\n", spec)
	status := ""
	if p.status != nil {
		status = w.reserve(p.name+"Status", p.status)
		fmt.Fprintf(&w.text, "  status: %s\n", status)
	}
	w.text.WriteString("}\n")
	w.status = false
	w.object(spec, p.spec, p.name+".spec")
	if p.status != nil {
		w.status = true
		w.object(status, p.status, p.name+".status")
	}
}

// reserve returns an unused name for a type, and marks the name as used.
func (w *sdlWriter) reserve(name string, of any) string {
	name = w.allowed(name)
	free := name
	for i := 2; !w.free(free, of); i++ {
		free = name + strconv.Itoa(i)
	}
	w.take(free, of)
	return free
}

// typeOf returns the SDL name for a message or an enum. written reports whether its type was written already.
func (w *sdlWriter) typeOf(d protoreflect.Descriptor, of any) (name string, written bool) {
	relative := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	relative = strings.ReplaceAll(relative, ".", "")
	relative = strings.ReplaceAll(strings.TrimPrefix(relative, w.plan.name), "_", "")
	prefix := w.plan.name
	if w.status {
		prefix += "Status"
		relative = strings.TrimPrefix(relative, "Status")
	}
	base := w.allowed(prefix + relative)
	name = base
	for i := 2; !w.free(name, of); i++ {
		if sameType(w.names[name], of) {
			return name, true
		}
		name = base + strconv.Itoa(i)
	}
	w.take(name, of)
	return name, false
}

// sameType reports whether one SDL type can stand for both shapes or enums.
func sameType(a, b any) bool {
	switch a := a.(type) {
	case *shape:
		b, ok := b.(*shape)
		if !ok || a.FullName() != b.FullName() || len(a.fields) != len(b.fields) {
			return false
		}
		for i := range a.fields {
			x, y := a.fields[i], b.fields[i]
			if x.name != y.name || x.form != y.form || x.shape != nil && !sameType(x.shape, y.shape) {
				return false
			}
		}
		return true
	case protoreflect.EnumDescriptor:
		b, ok := b.(protoreflect.EnumDescriptor)
		return ok && a.FullName() == b.FullName()
	}
	return false
}

// quoted returns a text as a GraphQL string.
func quoted(text string) string {
	raw, err := plainJSON(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// maxDescription is the maximum length of a description, in characters.
const maxDescription = 400

// describe writes a description. It is the comment in the .proto file. If the descriptors have no comment, it is the
// argument otherwise.
func (w *sdlWriter) describe(indent string, d protoreflect.Descriptor, otherwise string) {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > maxDescription {
		text = string(runes[:maxDescription]) + "..."
	}
	if text == "" {
		text = otherwise
	}
	if indent == "" {
		w.text.WriteString("\n")
	}
	if text != "" {
		w.text.WriteString(indent + quoted(text) + "\n")
	}
}

// object writes a type, and then the types of its fields.
func (w *sdlWriter) object(name string, s *shape, path string) {
	type part struct {
		name, path string
		shape      *shape
	}
	var parts []part
	type enum struct {
		name string
		of   protoreflect.EnumDescriptor
	}
	var enums []enum
	w.describe("", s.MessageDescriptor, "")
	w.text.WriteString("type " + name)
	if !w.status {
		for _, rule := range oneofRules(s) {
			w.text.WriteString("\n  " + rule)
		}
	}
	w.text.WriteString(" {\n")
	for _, f := range s.fields {
		at := path + "." + f.name
		typeName := w.scalar(f)
		switch {
		case f.shape != nil:
			inner, written := w.typeOf(f.shape.MessageDescriptor, f.shape)
			if !written {
				parts = append(parts, part{inner, at, f.shape})
			}
			typeName = inner
		case f.form == formEnum && !w.status:
			inner, written := w.typeOf(f.Enum(), f.Enum())
			if !written {
				enums = append(enums, enum{inner, f.Enum()})
			}
			typeName = inner
		}
		w.describe("  ", f.FieldDescriptor, "")
		fmt.Fprintf(&w.text, "  %s: %s%s%s\n", w.fieldName(s, f, path), w.typeText(f, typeName), w.stored(s, f), w.directives(f, at))
	}
	w.text.WriteString("}\n")
	for _, one := range enums {
		w.enum(one.name, one.of)
	}
	for _, one := range parts {
		w.object(one.name, one.shape, one.path)
	}
}

func (w *sdlWriter) enum(name string, d protoreflect.EnumDescriptor) {
	w.describe("", d, "")
	w.text.WriteString("enum " + name + " {\n")
	for i := range d.Values().Len() {
		w.describe("  ", d.Values().Get(i), "")
		fmt.Fprintf(&w.text, "  %s\n", d.Values().Get(i).Name())
	}
	w.text.WriteString("}\n")
}

// scalar returns the SDL type of a field that is neither a message nor an enum.
func (w *sdlWriter) scalar(f *field) string {
	switch f.form {
	case formInt:
		return "Int"
	case formSafe:
		return "SafeInt"
	case formFloat:
		return "Float"
	case formBool:
		return "Boolean"
	case formTime:
		return "Time"
	case formMap:
		return "MapEntry"
	}
	return "String"
}

// typeText returns the SDL type of a field.
func (w *sdlWriter) typeText(f *field, name string) string {
	if f.list || f.form == formMap || f.form == formEntries {
		name = "[" + name + "!]"
	}
	isThere := f.required && f.form != formMessage || f.Cardinality() == protoreflect.Required
	if !w.status && (isThere || w.defaultOf(f) != "") {
		name += "!"
	}
	return name
}

// unspecified reports whether the zero value of an enum means that no value is set.
func unspecified(d protoreflect.EnumDescriptor) bool {
	zero := d.Values().ByNumber(0)
	return zero == nil || strings.HasSuffix(string(zero.Name()), "UNSPECIFIED")
}

// defaultOf returns the default of a field in a spec; "" if it has none.
func (w *sdlWriter) defaultOf(f *field) string {
	if w.status || f.list || f.required || f.HasPresence() {
		return ""
	}
	r := rulesOf(f.FieldDescriptor)
	switch f.form {
	case formInt, formSafe, formFloat:
		if r.least != nil && *r.least > 0 || r.most != nil && *r.most < 0 {
			return ""
		}
		return "0"
	case formBool:
		return "false"
	case formEnum:
		if !unspecified(f.Enum()) {
			return string(f.Enum().Values().ByNumber(0).Name())
		}
	}
	return ""
}

// directives returns the directives of a field, each after a space.
func (w *sdlWriter) directives(f *field, path string) string {
	if w.status {
		if f.form == formMap {
			return " @map"
		}
		return ""
	}
	out := ""
	switch {
	case f.form == formMap:
		out += " @map"
	case f.form == formEntries:
		out += ` @list(type: MAP, keys: ["key"])`
	case f.list:
		out += " @list(type: ATOMIC)"
	}
	if bounds := w.bounds(f, path); len(bounds) > 0 {
		out += " @constraint(" + strings.Join(bounds, ", ") + ")"
	}
	if value := w.defaultOf(f); value != "" {
		out += " @default(value: " + value + ")"
	}
	if f.immutable {
		out += " @immutable"
	}
	return out
}

// limit returns the declared bound as an argument of @constraint. If none is declared, it uses the argument otherwise,
// which is from Limits, and adds the field to Limited.
func (w *sdlWriter) limit(path, name string, declared *int, otherwise int) string {
	if declared != nil {
		return fmt.Sprintf("%s: %d", name, *declared)
	}
	w.out.Limited = append(w.out.Limited, Omitted{Path: path, Why: fmt.Sprintf("%s %d", name, otherwise)})
	return fmt.Sprintf("%s: %d", name, otherwise)
}

// bounds returns the arguments of @constraint for a field in a spec.
func (w *sdlWriter) bounds(f *field, path string) (out []string) {
	r := rulesOf(f.FieldDescriptor)
	values := r
	if f.list || f.form == formMap {
		values = rules{}
		if r.items != nil {
			values = *r.items
		}
	}
	switch {
	case f.form == formMap:
		if r.minItems != nil {
			out = append(out, fmt.Sprintf("minProperties: %d", *r.minItems))
		}
		keys := rules{}
		if r.keys != nil {
			keys = *r.keys
		}
		out = append(out, w.limit(path, "maxProperties", r.maxItems, w.limits.Items))
		return append(out, w.limit(path, "maxLength", values.maxLength, w.limits.Length),
			w.limit(path, "keyMaxLength", keys.maxLength, min(w.limits.Length, maxKeyLength)))
	case f.list, f.form == formEntries:
		if r.minItems != nil {
			out = append(out, fmt.Sprintf("minItems: %d", *r.minItems))
		}
		out = append(out, w.limit(path, "maxItems", r.maxItems, w.limits.Items))
		if r.unique && f.form != formMessage && f.form != formEntries {
			out = append(out, "unique: true")
		}
	}
	return append(out, w.valueBounds(f, values, path)...)
}

// maxKeyLength is the maximum length of the keys of a map, in characters, if the API does not declare any.
const maxKeyLength = 253

func (w *sdlWriter) valueBounds(f *field, r rules, path string) (out []string) {
	switch f.form {
	case formInt, formSafe, formFloat:
		for _, of := range []struct {
			name  string
			bound *float64
		}{{"min", r.least}, {"max", r.most}} {
			if of.bound != nil && math.Abs(*of.bound) <= maxSafe {
				out = append(out, of.name+": "+strconv.FormatFloat(*of.bound, 'f', -1, 64))
			}
		}
	case formText64:
		out = append(out, "maxLength: 20", `pattern: "^-?[0-9]+$"`)
	case formDuration:
		out = append(out, "maxLength: 64", `format: "duration"`)
	case formBytes:
		out = append(out, w.limit(path, "maxLength", r.maxLength, w.limits.Length), `format: "base64"`)
	case formText:
		if len(r.in) > 0 {
			var accepted []string
			for _, text := range r.in {
				accepted = append(accepted, quoted(text))
			}
			return append(out, "in: ["+strings.Join(accepted, ", ")+"]")
		}
		if r.minLength != nil {
			out = append(out, fmt.Sprintf("minLength: %d", *r.minLength))
		}
		if r.uuid {
			return append(out, "maxLength: 36", `format: "uuid"`)
		}
		out = append(out, w.limit(path, "maxLength", r.maxLength, w.limits.Length))
		if r.pattern != "" {
			if _, err := regexp.Compile(r.pattern); err == nil {
				out = append(out, "pattern: "+quoted(r.pattern))
			}
		}
	}
	return out
}

// oneofRules returns rules that allow at most one field of each oneof.
func oneofRules(s *shape) (out []string) {
	members := map[protoreflect.FullName][]string{}
	var order []protoreflect.FullName
	for _, f := range s.fields {
		choice := f.ContainingOneof()
		if choice == nil || choice.IsSynthetic() {
			continue
		}
		if members[choice.FullName()] == nil {
			order = append(order, choice.FullName())
		}
		members[choice.FullName()] = append(members[choice.FullName()], f.name)
	}
	for _, name := range order {
		names := members[name]
		if len(names) < 2 {
			continue
		}
		var counts []string
		for _, member := range names {
			counts = append(counts, "(has(self."+celName(member)+") ? 1 : 0)")
		}
		out = append(out, fmt.Sprintf("@rule(cel: %s, message: %s)", quoted(strings.Join(counts, " + ")+" <= 1"),
			quoted("set only one of "+strings.Join(names, ", "))))
	}
	return out
}

// celName returns the name of a field as rules write it.
func celName(name string) string {
	reserved := []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while",
	}
	if slices.Contains(reserved, name) {
		return "__" + name + "__"
	}
	return name
}

package proto

import (
	"fmt"
	"strings"
	"unicode"
)

// printer writes a model as text.
type printer struct {
	strings.Builder
	model *model
	// hidden has the first parts of type names that would mean a field of the current message. Such a name is written
	// with its package.
	hidden map[string]bool
}

// print returns the model as the text of a file.
func (m *model) print() string {
	p := &printer{model: m}
	p.WriteString("// Made from a catalogue of kinds by sluice proto print. Do not edit.\n\nsyntax = \"proto3\";\n\n")
	p.WriteString("package " + m.pkg + ";\n\n")
	for _, path := range imports() {
		fmt.Fprintf(p, "import %q;\n", path)
	}
	for i := range m.services {
		p.service(&m.services[i])
	}
	for i := range m.messages {
		p.message(&m.messages[i])
	}
	for i := range m.enums {
		p.enum(&m.enums[i])
	}
	return p.String()
}

func (p *printer) comment(indent, text string) {
	if text == "" {
		return
	}
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimRightFunc(strings.Map(printable, l), unicode.IsSpace)
		p.WriteString(strings.TrimRight(indent+"// "+l, " ") + "\n")
	}
}

// printable returns a space for control characters and line separators, which would end the line of a comment. It
// returns other characters unchanged.
func printable(r rune) rune {
	if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}

func (p *printer) service(s *service) {
	p.WriteString("\n")
	p.comment("", s.comment)
	fmt.Fprintf(p, "service %s {\n", s.name)
	for i, m := range s.methods {
		if i > 0 {
			p.WriteString("\n")
		}
		p.comment("  ", m.comment)
		stream := ""
		if m.streams {
			stream = "stream "
		}
		fmt.Fprintf(p, "  rpc %s(%s) returns (%s%s);\n", m.name, p.typeName(m.input), stream, p.typeName(m.output))
	}
	p.WriteString("}\n")
}

func (p *printer) message(m *message) {
	p.hidden = map[string]bool{}
	for i := range m.fields {
		p.hidden[m.fields[i].name] = true
	}
	p.WriteString("\n")
	p.comment("", m.comment)
	fmt.Fprintf(p, "message %s {\n", m.name)
	p.reserved(m.reserved, m.reservedNames)
	for i := range m.fields {
		p.field(&m.fields[i])
	}
	p.WriteString("}\n")
	p.hidden = nil
}

// reserved writes the reserved numbers and names of a message.
func (p *printer) reserved(numbers []int32, names []string) {
	if len(numbers) > 0 {
		p.WriteString("  reserved " + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]") + ";\n")
	}
	if len(names) > 0 {
		p.WriteString(`  reserved "` + strings.Join(names, `", "`) + `";` + "\n")
	}
}

func (p *printer) field(f *field) {
	p.comment("  ", f.comment)
	label := ""
	switch {
	case f.repeated:
		label = "repeated "
	case f.optional:
		label = "optional "
	}
	typ := f.typ
	if f.isMessage || f.isEnum {
		typ = p.typeName(f.typ)
	}
	var options []string
	if f.jsonName() != camel(f.name) {
		options = append(options, fmt.Sprintf("json_name = %q", f.jsonName()))
	}
	if f.deprecated {
		options = append(options, "deprecated = true")
	}
	with := ""
	if len(options) > 0 {
		with = " [" + strings.Join(options, ", ") + "]"
	}
	fmt.Fprintf(p, "  %s%s %s = %d%s;\n", label, typ, f.name, f.number, with)
}

// typeName returns the name of a type. It includes the package if the name without it would mean something else.
func (p *printer) typeName(typ string) string {
	first, _, _ := strings.Cut(typ, ".")
	clear := unicode.IsUpper(rune(first[0]))
	if first == "google" {
		clear = !strings.Contains("."+p.model.pkg+".", ".google.")
	}
	if clear && !p.hidden[first] {
		return typ
	}
	return p.model.full(typ)
}

func (p *printer) enum(e *enum) {
	p.WriteString("\n")
	p.comment("", e.comment)
	fmt.Fprintf(p, "enum %s {\n", e.name)
	p.reserved(e.reserved, e.reservedNames)
	for _, v := range e.values {
		p.comment("  ", v.comment)
		fmt.Fprintf(p, "  %s = %d;\n", v.name, v.number)
	}
	p.WriteString("}\n")
}

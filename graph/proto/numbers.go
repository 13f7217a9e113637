package proto

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultPackage is the default package of a catalogue's messages.
const DefaultPackage = "sluice.kinds.v1"

// MaxFile is the maximum size of a file of numbers, in bytes.
const MaxFile = 8 << 20

// Numbers are the numbers of the fields of messages, and of the values of enums. A number never changes, and the number
// of a removed field is never used again. They are stored in a file with a line for each field and value:
//
//	package sluice.kinds.v1
//
//	message TeamSpec
//	  1 string email email
//	  2 enum:Tier tier tier
//	  3 []string tags tags
//
//	enum Tier
//	  1 TIER_BASIC BASIC
//
// The line of a field has its number, its type, its name in protobuf, and its stored name, which does not change if the
// field is renamed in the API. The line of a value has its number, its name in protobuf, and its stored form. If the
// type of a field changes, it is treated as a new field: it gets another line and number.
type Numbers struct {
	// Package is the protobuf package of the messages.
	Package  string
	messages map[string]*section
	enums    map[string]*section
}

// section has the lines of one message or enum.
type section struct {
	// name is the name in the SDL. as is the name in protobuf.
	name, as string
	lines    []line
}

// line is the line of a field of a message or of a value of an enum. typ is empty for a value.
type line struct {
	number int32
	typ    string
	name   string
	stored string
}

// NewNumbers returns numbers without messages. pkg is the protobuf package.
func NewNumbers(pkg string) (*Numbers, error) {
	n := &Numbers{Package: pkg, messages: map[string]*section{}, enums: map[string]*section{}}
	return n, checkPackage(pkg)
}

var (
	packageForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	nameForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	typeForm    = regexp.MustCompile(`^(\[\])?((enum|message):)?[A-Za-z_][A-Za-z0-9_]*$`)
)

// checkPackage returns an error for an invalid name of a package, and for the packages of protobuf itself.
func checkPackage(pkg string) error {
	switch {
	case !packageForm.MatchString(pkg):
		return fmt.Errorf("package: %q; names joined by dots are accepted, like acme.network.v1", pkg)
	case pkg == "google" || strings.HasPrefix(pkg, "google."):
		return fmt.Errorf("package: %s belongs to protobuf; choose one of your own, like acme.network.v1", pkg)
	}
	return nil
}

// The maximum field number of protobuf, and the range of numbers that protobuf reserves.
const (
	maxNumber     = 1<<29 - 1
	firstReserved = 19000
	lastReserved  = 19999
	maxEnumNumber = 1<<31 - 1
)

// ParseNumbers parses a file of numbers.
func ParseNumbers(file []byte) (*Numbers, error) {
	if len(file) > MaxFile {
		return nil, fmt.Errorf("it has %d bytes; at most %d are accepted", len(file), MaxFile)
	}
	p := numbersParser{out: &Numbers{messages: map[string]*section{}, enums: map[string]*section{}}}
	scan := bufio.NewScanner(bytes.NewReader(file))
	scan.Buffer(nil, MaxFile+1)
	for at := 1; scan.Scan(); at++ {
		text, _, _ := strings.Cut(scan.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := p.read(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	if p.out.Package == "" {
		return nil, errors.New("there is no line like package " + DefaultPackage)
	}
	return p.out, nil
}

// numbersParser is the state of [ParseNumbers].
type numbersParser struct {
	out *Numbers
	// current is the section to which the next lines belong. isEnum reports whether it is an enum.
	current *section
	isEnum  bool
	// names has the protobuf names of all sections.
	names map[string]bool
	// numbers maps the numbers in the current section to the names of their lines.
	numbers map[int32]string
	// keys maps types and stored names in the current section to the numbers of their lines.
	keys map[line]int32
}

// read parses the words of a line.
func (p *numbersParser) read(words []string) error {
	switch words[0] {
	case "package":
		if len(words) != 2 || p.out.Package != "" {
			return errors.New("one line with package and a name is accepted")
		}
		p.out.Package = words[1]
		return checkPackage(words[1])
	case "message", "enum":
		return p.begin(words)
	}
	if p.current == nil {
		return fmt.Errorf("%q: a line with package, message or enum is accepted here", words[0])
	}
	l, err := p.line(words)
	if err != nil {
		return err
	}
	if other, taken := p.numbers[l.number]; taken {
		return fmt.Errorf("the number %d of %s belongs to %s already", l.number, l.name, other)
	}
	key := line{typ: l.typ, stored: l.stored}
	if other, taken := p.keys[key]; taken {
		return fmt.Errorf("%s has the number %d already", l.stored, other)
	}
	p.numbers[l.number] = l.name
	p.keys[key] = l.number
	p.current.lines = append(p.current.lines, l)
	return nil
}

// begin begins a section. words are message NAME, or message NAME as NAME.
func (p *numbersParser) begin(words []string) error {
	s := &section{}
	switch {
	case len(words) == 2:
		s.name, s.as = words[1], words[1]
	case len(words) == 4 && words[2] == "as":
		s.name, s.as = words[1], words[3]
	default:
		return fmt.Errorf("%s NAME is accepted, or %s NAME as NAME", words[0], words[0])
	}
	if !nameForm.MatchString(s.name) || !nameForm.MatchString(s.as) {
		return fmt.Errorf("%q is no name", strings.Join(words[1:], " "))
	}
	p.isEnum = words[0] == "enum"
	sections := p.out.messages
	if p.isEnum {
		sections = p.out.enums
	}
	if sections[s.name] != nil {
		return fmt.Errorf("there are two sections %s %s", words[0], s.name)
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	if p.names[s.as] {
		return fmt.Errorf("there are two sections whose name in protobuf is %s", s.as)
	}
	p.names[s.as] = true
	sections[s.name] = s
	p.current = s
	p.numbers = map[int32]string{}
	p.keys = map[line]int32{}
	return nil
}

// line parses the line of a field or a value.
func (p *numbersParser) line(words []string) (l line, err error) {
	number, err := strconv.ParseInt(words[0], 10, 32)
	if err != nil {
		return l, fmt.Errorf("%q is no number", words[0])
	}
	l.number = int32(number)
	words = words[1:]
	switch {
	case p.isEnum && len(words) == 2 && number >= 1 && number <= maxEnumNumber:
	case p.isEnum:
		return l, errors.New("NUMBER NAME VALUE is accepted, with a number from 1")
	case len(words) != 3 || number < 1 || number > maxNumber || number >= firstReserved && number <= lastReserved:
		return l, errors.New("NUMBER TYPE NAME FIELD is accepted, with a number that protobuf accepts for a field")
	default:
		l.typ = words[0]
		words = words[1:]
		if !typeForm.MatchString(l.typ) {
			return l, fmt.Errorf("%q is no type", l.typ)
		}
	}
	l.name = words[0]
	l.stored = words[1]
	if !nameForm.MatchString(l.name) {
		return l, fmt.Errorf("%q is no name", l.name)
	}
	if p.isEnum {
		l.stored, err = unquoteStored(l.stored)
	}
	return l, err
}

// unquoteStored parses the stored form of a value. It is in quotes if it has other characters than letters, digits,
// '_', '-' and '.'.
func unquoteStored(text string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		return text, nil
	}
	out, err := strconv.Unquote(text)
	if err != nil {
		return "", fmt.Errorf("%s is no text", text)
	}
	return out, nil
}

var plainStored = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// quoteStored formats the stored form of a value as one word without '#', in quotes if necessary.
func quoteStored(text string) string {
	if plainStored.MatchString(text) {
		return text
	}
	return strings.NewReplacer(" ", `\x20`, "#", `\x23`).Replace(strconv.QuoteToASCII(text))
}

// head is the beginning of a file of numbers.
const head = `# The numbers of the fields and values that gateways serve over gRPC, kept by sluice proto print --numbers.
# Commit this file with the catalogue. Lines stay when a field goes: its number must not be used again.
`

// File returns the text of the file. Equal numbers result in equal texts.
func (n *Numbers) File() []byte {
	var out bytes.Buffer
	out.WriteString(head + "package " + n.Package + "\n")
	write := func(keyword string, sections map[string]*section) {
		all := make([]*section, 0, len(sections))
		for _, s := range sections {
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b *section) int { return cmp.Compare(a.name, b.name) })
		for _, s := range all {
			fmt.Fprintf(&out, "\n%s %s", keyword, s.name)
			if s.as != s.name {
				out.WriteString(" as " + s.as)
			}
			out.WriteByte('\n')
			lines := slices.Clone(s.lines)
			slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.number, b.number) })
			for _, l := range lines {
				if keyword == "enum" {
					fmt.Fprintf(&out, "  %d %s %s\n", l.number, l.name, quoteStored(l.stored))
				} else {
					fmt.Fprintf(&out, "  %d %s %s %s\n", l.number, l.typ, l.name, l.stored)
				}
			}
		}
	}
	write("message", n.messages)
	write("enum", n.enums)
	return out.Bytes()
}

func (n *Numbers) clone() *Numbers {
	out := &Numbers{Package: n.Package, messages: map[string]*section{}, enums: map[string]*section{}}
	for name, s := range n.messages {
		out.messages[name] = &section{s.name, s.as, slices.Clone(s.lines)}
	}
	for name, s := range n.enums {
		out.enums[name] = &section{s.name, s.as, slices.Clone(s.lines)}
	}
	return out
}

// next returns the next free number of the section, which is at least first. It is greater than the numbers of all
// lines.
func (s *section) next(first int32) int32 {
	out := first
	for _, l := range s.lines {
		out = max(out, l.number+1)
	}
	if out >= firstReserved && out <= lastReserved {
		out = lastReserved + 1
	}
	return out
}

// find returns the line of a field or value; nil if there is none.
func (s *section) find(typ, stored string) *line {
	for i := range s.lines {
		if s.lines[i].typ == typ && s.lines[i].stored == stored {
			return &s.lines[i]
		}
	}
	return nil
}

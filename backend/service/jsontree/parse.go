package jsontree

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Parse reads one JSON object, numbers as written, without null members:
// null is the same as absent.
func Parse(raw []byte) (map[string]any, error) {
	p := parser{text: string(raw)}
	p.space()
	if p.peek() != '{' {
		return nil, fmt.Errorf("json: an object wanted")
	}
	out, err := p.object(MaxDepth)
	if err != nil {
		return nil, err
	}
	return out, p.end()
}

// Members reads one JSON object and gives each of its members to visit, in the
// order in which they stand. The member is read when visit asks for it. The texts that
// are read share the memory of raw, which must not change any more.
func Members(raw []byte, visit func(name string, m *Member) error) error {
	p := parser{text: unsafe.String(unsafe.SliceData(raw), len(raw))}
	p.space()
	if err := p.visit(raw, visit); err != nil {
		return err
	}
	return p.end()
}

// visit gives the members of an object to visit.
func (p *parser) visit(raw []byte, visit func(name string, m *Member) error) error {
	if p.peek() != '{' {
		return fmt.Errorf("json: an object wanted")
	}
	p.at++
	m := Member{p: p, raw: raw}
	return p.members(func(name string) error {
		m.read = false
		if err := visit(name, &m); err != nil || m.read {
			return err
		}
		_, err := m.Skip()
		return err
	})
}

// Member is the value of a member, which is read once.
type Member struct {
	p    *parser
	raw  []byte
	read bool
}

// Tree is the value as [Parse] makes it, nil for null, and its bytes, which share the
// memory that is read.
func (m *Member) Tree() (value any, raw []byte, err error) {
	begin := m.p.at
	m.read = true
	if value, err = m.p.value(MaxDepth); err != nil {
		return nil, nil, err
	}
	return value, m.raw[begin:m.p.at], nil
}

// IsNull says whether the value is null.
func (m *Member) IsNull() bool { return m.p.peek() == 'n' }

// Members gives the members of the value, an object, to visit, as [Members] does.
func (m *Member) Members(visit func(name string, m *Member) error) error {
	m.read = true
	return m.p.visit(m.raw, visit)
}

// Skip are the bytes of the value, which share the memory that is read. They are as
// good as those of which a tree is made.
func (m *Member) Skip() (raw []byte, err error) {
	m.p.skipping = true
	_, raw, err = m.Tree()
	m.p.skipping = false
	return raw, err
}

// parser reads JSON as [encoding/json] does, in one pass. Strings share the memory
// of the text.
type parser struct {
	text string
	at   int
	// skipping says that values are passed over: nothing is made of them.
	skipping bool
}

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// space passes over white space.
func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\r', '\t':
			p.at++
		default:
			return
		}
	}
}

// end wants that nothing follows but white space.
func (p *parser) end() error {
	if p.space(); p.at < len(p.text) {
		return fmt.Errorf("json: more than one value")
	}
	return nil
}

func (p *parser) unexpected() error {
	if p.at >= len(p.text) {
		return fmt.Errorf("json: unexpected end")
	}
	return fmt.Errorf("json: unexpected %q at byte %d", p.text[p.at], p.at)
}

// value reads a value that is nested no deeper than depth.
func (p *parser) value(depth int) (any, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	switch c := p.peek(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case '"':
		text, err := p.string()
		if p.skipping {
			return nil, err
		}
		return text, err
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	}
	return p.number()
}

func (p *parser) literal(word string) error {
	if !strings.HasPrefix(p.text[p.at:], word) {
		return p.unexpected()
	}
	p.at += len(word)
	return nil
}

func (p *parser) object(depth int) (map[string]any, error) {
	p.at++
	var out map[string]any
	if !p.skipping {
		out = map[string]any{}
	}
	err := p.members(func(name string) error {
		if p.peek() == 'n' {
			delete(out, name) // the last of two members with one name counts
			return p.literal("null")
		}
		value, err := p.value(depth - 1)
		if !p.skipping {
			out[name] = value
		}
		return err
	})
	return out, err
}

// members reads the members of an object behind its brace. read reads the value.
func (p *parser) members(read func(name string) error) error {
	if p.space(); p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		p.space()
		if p.peek() != '"' {
			return p.unexpected()
		}
		name, err := p.string()
		if err != nil {
			return err
		}
		if p.space(); p.peek() != ':' {
			return p.unexpected()
		}
		p.at++
		p.space()
		if err := read(name); err != nil {
			return err
		}
		if more, err := p.further('}'); !more {
			return err
		}
	}
}

// further passes over the comma between two elements, or the end of them.
func (p *parser) further(end byte) (bool, error) {
	p.space()
	switch p.peek() {
	case ',':
		p.at++
		return true, nil
	case end:
		p.at++
		return false, nil
	}
	return false, p.unexpected()
}

func (p *parser) list(depth int) ([]any, error) {
	p.at++
	if p.space(); p.peek() == ']' {
		p.at++
		return []any{}, nil
	}
	var out []any
	if !p.skipping {
		out = make([]any, 0, 4)
	}
	for {
		p.space()
		value, err := p.value(depth - 1)
		if err != nil {
			return nil, err
		}
		if !p.skipping {
			out = append(out, value)
		}
		if more, err := p.further(']'); !more {
			return out, err
		}
	}
}

// string reads a string. One that is not stored as it is read is left to [encoding/json].
func (p *parser) string() (string, error) {
	begin := p.at
	p.at += 1 + plainLength(p.text[p.at+1:])
	if p.peek() == '"' {
		p.at++
		return p.text[begin+1 : p.at-1], nil
	}
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			if text := p.text[begin+1 : p.at-1]; utf8.ValidString(text) && strings.IndexByte(text, '\\') < 0 {
				return text, nil
			}
			var out string
			if err := json.Unmarshal([]byte(p.text[begin:p.at]), &out); err != nil {
				return "", fmt.Errorf("json: %w", err)
			}
			return out, nil
		case c == '\\':
			p.at++
		case c < ' ':
			return "", p.unexpected()
		}
	}
	return "", p.unexpected()
}

// plainLength returns how many bytes of ASCII text begins with that stand for themselves in a
// JSON string.
func plainLength(text string) int {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

// number reads a number, as it is written.
func (p *parser) number() (any, error) {
	begin := p.at
	if p.peek() == '-' {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case !p.digits():
		return nil, p.unexpected()
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return nil, p.unexpected()
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return nil, p.unexpected()
		}
	}
	if p.skipping {
		return nil, nil
	}
	return json.Number(p.text[begin:p.at]), nil
}

// digits passes over digits, of which there must be one.
func (p *parser) digits() bool {
	begin := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at > begin
}

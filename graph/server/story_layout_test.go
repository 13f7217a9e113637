package server_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// width is the most characters of an object or a list that stays on one line.
const width = 100

// layout breaks JSON into lines where it is long, keeps the order of keys, and
// writes a text of several lines as a block. Other text stays as it is, except
// objects behind a name and a colon, as in the data of server-sent events.
func layout(text string) string {
	var b strings.Builder
	var compact bytes.Buffer
	if first := strings.TrimSpace(text); first == "" || !strings.ContainsAny(first[:1], "{[") || json.Compact(&compact, []byte(text)) != nil {
		for line := range strings.Lines(text) {
			field, value, ok := strings.Cut(line, ": {")
			if ok && json.Valid([]byte("{"+value)) {
				line = field + ": " + layout("{"+value) + "\n"
			}
			b.WriteString(line)
		}
		return b.String()
	}
	place(&b, compact.String(), "")
	return b.String()
}

// place writes a value of compact JSON behind what stands on the line already.
func place(b *strings.Builder, value, indent string) {
	open := value[0]
	if open == '"' && strings.Contains(value, `\n`) {
		block(b, value, indent)
		return
	}
	line := spaced(value)
	if open != '{' && open != '[' || !strings.Contains(line, `\n`) && utf8.RuneCountInString(indent)+utf8.RuneCountInString(line) <= width {
		b.WriteString(line)
		return
	}
	deeper := indent + "  "
	b.WriteString(value[:1])
	for i, part := range parts(value[1 : len(value)-1]) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + deeper)
		if open == '{' {
			key := part[:end(part)]
			b.WriteString(key + ": ")
			part = part[len(key)+1:]
		}
		place(b, part, deeper)
	}
	b.WriteString("\n" + indent + value[len(value)-1:])
}

// block writes a text of several lines as such, in the form of a block string of GraphQL.
func block(b *strings.Builder, quoted, indent string) {
	var text string
	_ = json.Unmarshal([]byte(quoted), &text) // it is JSON
	b.WriteString(`"""`)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString("\n" + indent + "  " + line)
	}
	b.WriteString("\n" + indent + `"""`)
}

// parts splits what stands within an object or a list at its commas.
func parts(inner string) []string {
	var out []string
	for inner != "" {
		n := end(inner)
		if n < len(inner) && inner[n] == ':' {
			n += 1 + end(inner[n+1:])
		}
		out = append(out, inner[:n])
		inner = strings.TrimPrefix(inner[n:], ",")
	}
	return out
}

// end is where the value at the beginning of compact JSON ends.
func end(text string) int {
	d := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return len(text)
	}
	return int(d.InputOffset())
}

// spaced is compact JSON with a space after each comma and colon that is no text.
func spaced(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		b.WriteByte(c)
		switch {
		case quoted && c == '\\':
			i++
			b.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

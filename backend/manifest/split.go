package manifest

import (
	"encoding/json"
	"strings"
)

// Part is one document of a file, which may have several.
type Part struct {
	Text string
	// Line is the line on which the document begins, counted from 1.
	Line int
}

// byteOrderMark may precede each document.
const byteOrderMark = "\ufeff"

// Split splits a text into documents. YAML documents are separated by the markers --- and ..., JSON documents follow
// each other. Documents without content are left out.
func Split(text string) []Part {
	var parts []Part
	begin, line := 0, 1
	cut := func(end, next, nextLine int) {
		part := withoutMark(text[begin:end])
		if hasContent(part) {
			parts = append(parts, splitJSON(Part{Text: part, Line: line})...)
		}
		begin, line = next, nextLine
	}
	at := 1
	for pos := 0; pos < len(text); at++ {
		end := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		row := strings.TrimRight(text[pos:end], "\r\n")
		if marked, rest := cutMarker(strings.TrimPrefix(row, byteOrderMark), "---"); marked {
			cut(pos, pos+len(row)-len(rest), at)
		} else if marked, rest := cutMarker(row, "..."); marked && (rest == "" || rest[0] == '#') {
			cut(pos, end, at+1)
		}
		pos = end
	}
	cut(len(text), len(text), at)
	return parts
}

// withoutMark removes the byte order mark before the content of a part.
func withoutMark(part string) string {
	content := strings.TrimLeft(part, " \t\r\n")
	rest, marked := strings.CutPrefix(content, byteOrderMark)
	if !marked {
		return part
	}
	return part[:len(part)-len(content)] + rest
}

// cutMarker reports whether a line begins with a marker, and returns the rest of the line. It removes blanks before the
// rest, because YAML does not accept a tab there.
func cutMarker(row, marker string) (marked bool, rest string) {
	rest, marked = strings.CutPrefix(row, marker)
	content := strings.TrimLeft(rest, " \t")
	if !marked || rest != "" && len(content) == len(rest) {
		return false, ""
	}
	return true, content
}

// splitJSON splits a part that has several JSON objects.
func splitJSON(part Part) []Part {
	text := strings.TrimLeft(part.Text, " \t\r\n")
	if !strings.HasPrefix(text, "{") || json.Valid([]byte(text)) {
		return []Part{part}
	}
	line := part.Line + strings.Count(part.Text[:len(part.Text)-len(text)], "\n")
	var parts []Part
	for text != "" {
		dec := json.NewDecoder(strings.NewReader(text))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil || value[0] != '{' {
			return []Part{part}
		}
		parts = append(parts, Part{Text: string(value), Line: line})
		next := strings.TrimLeft(text[dec.InputOffset():], " \t\r\n"+byteOrderMark)
		line += strings.Count(text[:len(text)-len(next)], "\n")
		text = next
	}
	return parts
}

func hasContent(part string) bool {
	for row := range strings.Lines(part) {
		row = strings.TrimSpace(row)
		if row != "" && row != "..." && !strings.HasPrefix(row, "#") && !strings.HasPrefix(row, "%") {
			return true
		}
	}
	return false
}

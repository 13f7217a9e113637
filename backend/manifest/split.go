package manifest

import "strings"

// Part is one document of a file.
type Part struct {
	Text string
	// Line of the file on which it begins, from 1.
	Line int
}

// Split cuts a stream of YAML documents at its markers; parts without content
// are left out. A line that begins with "---" can be nothing else in YAML.
func Split(text string) []Part {
	var parts []Part
	begin, line := 0, 1
	cut := func(end, next, nextLine int) {
		if part := text[begin:end]; hasContent(part) {
			parts = append(parts, Part{Text: part, Line: line})
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
		if row == "---" || strings.HasPrefix(row, "--- ") || strings.HasPrefix(row, "---\t") {
			next := pos + len("---")
			cut(pos, next, at)
		}
		pos = end
	}
	cut(len(text), len(text), at)
	return parts
}

func hasContent(part string) bool {
	for row := range strings.Lines(part) {
		if row = strings.TrimSpace(row); row != "" && row != "..." && !strings.HasPrefix(row, "#") && !strings.HasPrefix(row, "%") {
			return true
		}
	}
	return false
}

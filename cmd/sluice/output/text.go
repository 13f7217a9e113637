package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// maxCell is the maximum width of a cell on a terminal.
const maxCell = 64

// Cell formats a stored value for a table: on one line, and without characters that move the cursor or otherwise
// control the terminal.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return Printable(s)
}

// cut shortens a text that is too wide for a column.
func cut(s string) string { return terminal().Truncate(s, maxCell, "…") }

// Width returns the width of a text on a terminal. For example, a Chinese character has the width 2, a combining accent
// 0.
func Width(s string) int { return terminal().StringWidth(s) }

// terminal returns the widths of characters. They do not depend on the environment.
func terminal() *runewidth.Condition {
	return &runewidth.Condition{StrictEmojiNeutral: true}
}

// Printable escapes the characters that control a terminal, in the way of Go strings. For example, an escape character
// becomes \x1b.
func Printable(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case r == ' ' || unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}

// PrintableLines is like Printable, but keeps line breaks.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// writeLines writes the lines of a text, each after an indent and with control characters escaped.
func writeLines(w io.Writer, indent, text string) {
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, Printable(strings.TrimSuffix(line, "\n")))
	}
}

// PrintableJSON escapes the characters in a JSON text that control a terminal. It does not change the JSON value.
func PrintableJSON(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && r != '\x7f', unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			_, _ = fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

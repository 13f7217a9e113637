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

// maxCell is the maximum width of a text in a table on a terminal, in places.
const maxCell = 64

// Cell formats a stored value for a table: in one line, without characters that move
// the cursor or change the terminal.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return Printable(s)
}

// cut shortens a text that is too wide for a column.
func cut(s string) string { return terminal().Truncate(s, maxCell, "…") }

// Width returns the number of places that a text takes on a terminal: two for a Chinese
// character, none for a combining accent.
func Width(s string) int { return terminal().StringWidth(s) }

// terminal returns the widths of characters, independent of the environment.
func terminal() *runewidth.Condition {
	return &runewidth.Condition{StrictEmojiNeutral: true}
}

// Printable escapes the characters that control a terminal, as in a Go string: an
// escape becomes \x1b.
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

// PrintableLines is Printable for each line of a text.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// writeLines writes each line of a text with an indent, safe for a terminal.
func writeLines(w io.Writer, indent, text string) {
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, Printable(strings.TrimSuffix(line, "\n")))
	}
}

// PrintableJSON escapes the characters in a JSON text that control a terminal. The JSON value does
// not change.
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

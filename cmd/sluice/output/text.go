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

// maxCell is the widest text in a column of a table on a terminal, in places of it.
const maxCell = 64

// Cell returns a stored value as a table shows it: in one line, without characters
// that move the cursor or change the terminal.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return Printable(s)
}

// cut returns the beginning of a text that is too wide for a column.
func cut(s string) string { return terminal().Truncate(s, maxCell, "…") }

// Width returns how many places a text takes in a line of a terminal: a Chinese
// character takes two, a combining accent none.
func Width(s string) int { return terminal().StringWidth(s) }

// terminal returns the widths of characters, independent of the environment.
func terminal() *runewidth.Condition {
	return &runewidth.Condition{StrictEmojiNeutral: true}
}

// Printable escapes characters that a terminal would act on, as Go does in a string:
// an escape is \x1b. All others stay.
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

// PrintableLines is Printable for a text of several lines, which stay lines.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// writeLines writes each line of a text behind an indent, as a terminal may show it.
func writeLines(w io.Writer, indent, text string) {
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, Printable(strings.TrimSuffix(line, "\n")))
	}
}

// PrintableJSON escapes characters in a JSON text that a terminal would act on. The text means the same.
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

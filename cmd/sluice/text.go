package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxCell is the longest text in a column of a table, in characters.
const maxCell = 64

// cell is a stored value as a table shows it: in one line, without characters
// that move the cursor or change the terminal, and not too long.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	s = printable(s)
	if utf8.RuneCountInString(s) > maxCell {
		s = string([]rune(s)[:maxCell-1]) + "…"
	}
	return s
}

// printable writes what a terminal would act on instead of showing it as Go
// does in a string: an escape is \x1b. Everything else stays.
func printable(s string) string {
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

// printableJSON is a JSON text that means the same, in which what a terminal
// would act on is escaped.
func printableJSON(s string) string {
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

package server

import (
	"strings"

	"github.com/sluicegw/sluice/graph/transport"
)

// joinSurrogates replaces the escapes of surrogate pairs in the strings of a
// document by the characters that they stand for, because gqlparser decodes each
// half separately into a replacement character. It returns false if there is a
// half without the other, which stands for no character.
func joinSurrogates(document string) (string, bool) {
	if !strings.Contains(document, `\u`) {
		return document, true
	}
	var out strings.Builder
	done := 0 // of the document
	for i := 0; i < len(document); {
		switch {
		case document[i] == '#':
			i += lineLength(document[i:])
		case strings.HasPrefix(document[i:], `"""`):
			i += blockLength(document[i:])
		case document[i] == '"':
			for i++; i < len(document) && document[i] != '"' && document[i] != '\n' && document[i] != '\r'; {
				if document[i] != '\\' {
					i++
					continue
				}
				r, n, ok := transport.DecodeEscape(document[i:])
				if !ok {
					return "", false
				}
				if n == transport.PairLength {
					out.WriteString(document[done:i])
					out.WriteRune(r)
					done = i + n
				}
				i += n
			}
			i++
		default:
			i++
		}
	}
	out.WriteString(document[done:])
	return out.String(), true
}

// lineLength is how long a comment is.
func lineLength(s string) int {
	if n := strings.IndexAny(s, "\r\n"); n >= 0 {
		return n
	}
	return len(s)
}

// blockLength is how long a block string is.
func blockLength(s string) int {
	for i := 3; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], `\"""`):
			i += 3
		case strings.HasPrefix(s[i:], `"""`):
			return i + 3
		}
	}
	return len(s)
}

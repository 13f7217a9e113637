package server

import (
	"strconv"
	"strings"
	"unicode/utf16"
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
				r, n, ok := escaped(document[i:])
				if !ok {
					return "", false
				}
				if n == pairLength {
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

// pairLength is that of the escape of a surrogate pair, \ud83d\ude00.
const pairLength = 12

// escaped reads the escape at the start of s. It returns its length, and the
// character if it is a surrogate pair; ok is false for half a pair.
func escaped(s string) (r rune, length int, ok bool) {
	first, isUnit := codeUnit(s)
	switch {
	case !isUnit:
		return 0, min(2, len(s)), true
	case !utf16.IsSurrogate(first):
		return 0, 6, true
	}
	second, _ := codeUnit(s[6:])
	r = utf16.DecodeRune(first, second)
	return r, pairLength, r != '\uFFFD'
}

// codeUnit reads \uXXXX.
func codeUnit(s string) (rune, bool) {
	if len(s) < 6 || s[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
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

package body

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text parses a string. escaped reports whether its bytes differ from its text, because there are escapes or invalid
// UTF-8.
func (r *parser) text(i int) (end int, escaped bool, err error) {
	if !r.is(i, '"') {
		return i, false, r.bad(i, "a string")
	}
	raw := r.raw
	for j := i + 1; j < len(raw); j++ {
		c := raw[j]
		if c > '"' && c != '\\' || c == '!' || c == ' ' {
			continue
		}
		switch {
		case c == '"':
			if r.invalid && !escaped {
				escaped = !utf8.Valid(raw[i : j+1])
			}
			return j + 1, escaped, nil
		case c == '\\':
			escaped = true
			if j++; r.is(j, 'u') {
				if _, ok := hex4(raw, j+1); !ok {
					return j, false, r.bad(j, "four hexadecimal digits")
				}
				j += 4
			} else if j >= len(raw) || escapes[raw[j]] == 0 {
				return j, false, r.bad(j, "an escape of JSON")
			}
		default:
			return j, false, r.bad(j, "no control character")
		}
	}
	return i, false, r.bad(len(r.raw), "the end of a string")
}

// escapes maps the character after a backslash to the character that the escape stands
// for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Unquote appends the text of a JSON string that was parsed before. Invalid UTF-8 is replaced by U+FFFD, as in
// encoding/json.
func Unquote(dst, raw []byte) []byte {
	for i := 1; i < len(raw)-1; {
		c := raw[i]
		switch {
		case c == '\\' && raw[i+1] == 'u':
			r, _ := hex4(raw, i+2)
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(0)
				if i+6 < len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low, _ = hex4(raw, i+2)
				}
				r = utf16.DecodeRune(r, low)
				if r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		case c == '\\':
			dst = append(dst, escapes[raw[i+1]])
			i += 2
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(raw[i : len(raw)-1])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// Text returns the text of a JSON string that was parsed before. See [Unquote].
func Text(raw []byte) string {
	if inside := raw[1 : len(raw)-1]; bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	return string(Unquote(nil, raw))
}

// hex4 parses the four hexadecimal digits of an escape, at position i.
func hex4(raw []byte, i int) (rune, bool) {
	if i+4 > len(raw) {
		return 0, false
	}
	r, err := strconv.ParseUint(string(raw[i:i+4]), 16, 16)
	return rune(r), err == nil
}

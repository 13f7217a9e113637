package backend

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// The tuple encoding is the form of keys in every driver, and of values in the index in memory. Encoded tuples are
// ordered like the tuples, element by element. No tuple is a prefix of another one with the same types.
//
// An element begins with a tag for its type. A string ends with 0x00, and a 0x00 in it is written as 0x00 0xFF, as in
// the tuple layer of FoundationDB. An integer is big-endian with the sign bit flipped. All tags are less than 0xFF, so
// a prefix followed by 0xFF is greater than everything that extends the prefix.
const (
	tagString byte = 0x02
	tagInt    byte = 0x03
	tagFalse  byte = 0x26
	tagTrue   byte = 0x27
)

// AppendString appends s as one tuple element.
func AppendString(dst []byte, s string) []byte {
	return append(AppendStringPrefix(dst, s), 0)
}

// AppendStringPrefix appends s without its terminator: the common prefix of
// all strings that start with s.
func AppendStringPrefix(dst []byte, s string) []byte {
	dst = append(dst, tagString)
	if strings.IndexByte(s, 0) < 0 {
		return append(dst, s...)
	}
	for i := range len(s) {
		dst = append(dst, s[i])
		if s[i] == 0 {
			dst = append(dst, 0xFF)
		}
	}
	return dst
}

// AppendInt appends i as one tuple element.
func AppendInt(dst []byte, i int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tagInt), uint64(i)^(1<<63))
}

// AppendBool appends b as one tuple element; false sorts before true.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, tagTrue)
	}
	return append(dst, tagFalse)
}

// PrefixEnd returns the exclusive upper bound of all tuples that extend prefix, which consists of whole elements. See
// [StringPrefixEnd] for a prefix that ends within a string.
func PrefixEnd(prefix []byte) []byte {
	return append(append(make([]byte, 0, len(prefix)+1), prefix...), 0xFF)
}

// StringPrefixEnd is like [PrefixEnd] for a prefix whose last element was written by [AppendStringPrefix]. A string may
// continue with the byte 0xFF, so the bound is the next byte string that does not start with prefix.
func StringPrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xFF {
			end[i]++
			return end[:i+1]
		}
	}
	return PrefixEnd(prefix)
}

// Successor returns the smallest byte string that is greater than b. As an inclusive lower bound it excludes b; as an
// exclusive upper bound it includes b.
func Successor(b []byte) []byte {
	return append(append(make([]byte, 0, len(b)+1), b...), 0)
}

// TakeString decodes the string element at the beginning of b, and returns the rest of b. If b does not begin with a
// string, the error is ErrUnreadable.
func TakeString(b []byte) (s string, rest []byte, err error) {
	text, rest, err := TakeText(b)
	return string(text), rest, err
}

// TakeText is like [TakeString], but text shares the memory of b where possible.
func TakeText(b []byte) (text, rest []byte, err error) {
	if len(b) == 0 || b[0] != tagString {
		return nil, nil, fmt.Errorf("tuple: no string element: %w", ErrUnreadable)
	}
	if rest, err = SkipElement(b); err != nil {
		return nil, nil, err
	}
	text = b[1 : len(b)-len(rest)-1]
	if bytes.IndexByte(text, 0) >= 0 {
		text = bytes.ReplaceAll(text, []byte{0, 0xFF}, []byte{0})
	}
	return text, rest, nil
}

// TakeInt is like [TakeString] for an integer element.
func TakeInt(b []byte) (i int64, rest []byte, err error) {
	if len(b) < 9 || b[0] != tagInt {
		return 0, nil, fmt.Errorf("tuple: no integer element: %w", ErrUnreadable)
	}
	return int64(binary.BigEndian.Uint64(b[1:]) ^ (1 << 63)), b[9:], nil
}

// TakeBool is like [TakeString] for a Boolean element.
func TakeBool(b []byte) (value bool, rest []byte, err error) {
	if len(b) == 0 || b[0] != tagFalse && b[0] != tagTrue {
		return false, nil, fmt.Errorf("tuple: no Boolean element: %w", ErrUnreadable)
	}
	return b[0] == tagTrue, b[1:], nil
}

// SkipElement returns the bytes after the first element of b, which may have any type.
func SkipElement(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("tuple: no element: %w", ErrUnreadable)
	}
	switch b[0] {
	case tagString:
		for i := 1; i < len(b); i++ {
			n := bytes.IndexByte(b[i:], 0)
			if n < 0 {
				break
			}
			i += n + 1
			if i == len(b) || b[i] != 0xFF {
				return b[i:], nil
			}
		}
		return nil, fmt.Errorf("tuple: string without end: %w", ErrUnreadable)
	case tagInt:
		if len(b) < 9 {
			return nil, fmt.Errorf("tuple: short integer: %w", ErrUnreadable)
		}
		return b[9:], nil
	case tagFalse, tagTrue:
		return b[1:], nil
	}
	return nil, fmt.Errorf("tuple: unknown tag %#x: %w", b[0], ErrUnreadable)
}

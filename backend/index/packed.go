package index

import (
	"encoding/binary"
	"iter"
	"math"
	"unsafe"
)

// packed are the rows of an entry in one piece, which has no pointers for the collector
// to follow: of each the number of its index and the length of its value, both as a
// varint, and the value. They are ordered by index and value.
type packed string

// pack returns rows in one piece.
func pack(rows []row) []byte {
	dst := make([]byte, 0, usualRow*len(rows))
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r.index))
		dst = binary.AppendUvarint(dst, uint64(len(r.value)))
		dst = append(dst, r.value...)
	}
	return dst
}

// usualRow is enough room for most rows.
const usualRow = 32

// first takes the first row off, whose value shares the piece; of none it is a row behind
// all others.
func (p packed) first() (r row, rest packed) {
	if p == "" {
		return row{index: math.MaxInt}, ""
	}
	index, p := p.varint()
	length, p := p.varint()
	return row{index, string(p[:length])}, p[length:]
}

func (p packed) varint() (n int, rest packed) {
	if p[0] < 0x80 {
		return int(p[0]), p[1:]
	}
	v, size := binary.Uvarint(unsafe.Slice(unsafe.StringData(string(p)), len(p)))
	return int(v), p[size:]
}

// all returns the rows in order.
func (p packed) all() iter.Seq[row] {
	return func(yield func(row) bool) {
		for len(p) > 0 {
			var r row
			r, p = p.first()
			if !yield(r) {
				return
			}
		}
	}
}

package index

import (
	"encoding/binary"
	"iter"
	"math"
	"unsafe"
)

// packed has the rows of an entry in one string without pointers, which the garbage
// collector does not scan: for each row the number of its index and the length of its
// value, as varints, and the value. Rows are ordered by index and value.
type packed string

// pack returns rows as one packed piece.
func pack(rows []row) []byte {
	dst := make([]byte, 0, usualRow*len(rows))
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r.index))
		dst = binary.AppendUvarint(dst, uint64(len(r.value)))
		dst = append(dst, r.value...)
	}
	return dst
}

// usualRow is a capacity that suffices for most rows.
const usualRow = 32

// first returns the first row, whose value shares the piece's memory, and the other rows.
// If p is empty, the row orders after all others.
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

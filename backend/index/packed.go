package index

import (
	"encoding/binary"
	"iter"
	"math"
	"unsafe"
)

// packed has the rows of an entry, ordered by index and value, in one string without pointers, which the garbage
// collector need not scan. Each row consists of the number of its index and the length of its value, as varints, and
// the value.
type packed string

func pack(rows []row) []byte {
	dst := make([]byte, 0, usualRow*len(rows))
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r.index))
		dst = binary.AppendUvarint(dst, uint64(len(r.value)))
		dst = append(dst, r.value...)
	}
	return dst
}

// usualRow is the expected maximum size of a packed row, in bytes.
const usualRow = 32

// first returns the first row and the other rows. The value of the row shares the memory of p. If p is empty, it
// returns a row that is ordered after all others.
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

// all yields the rows in order.
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

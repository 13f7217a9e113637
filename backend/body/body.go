package body

import (
	"encoding/binary"
	"iter"

	"github.com/sluicegw/sluice/backend"
)

// Span is the place of a value. The zero value means that there is none.
type Span struct {
	// begin and end delimit a scalar, a list of scalars or a map in the body; end is
	// negative if the value is not in the API's form. Of an object, begin is the
	// table. Of a list of objects, begin is the table of the first, and end is twice
	// their number, plus one.
	begin, end int32
}

// IsZero reports whether there is no value: the field is absent or null.
func (s Span) IsZero() bool { return s.end == 0 }

// Ready reports whether the bytes of a scalar or a list of scalars can stand in an
// answer as they are stored: no escapes, no white space, nothing to translate.
func (s Span) Ready() bool { return s.end > 0 }

// Table is the place of an object of a body.
type Table int32

// Root is the table of the body itself.
const Root Table = 0

// Body is a stored resource that was read once: its tape has a table for each
// object, with a span for each field of the object's shape. It is never changed.
type Body struct {
	// Stored is the resource whose body it is.
	Stored *backend.Resource
	// Shape of the root.
	Shape *Shape
	// tape has begin and end of each span, in 16 bits each, or in 32 if wide.
	tape []byte
	wide bool
}

// At is the span of a field of the object at a table.
func (b *Body) At(t Table, slot int) Span { return b.span(int(t) + 1 + slot) }

func (b *Body) span(at int) Span {
	if b.wide {
		return Span{
			int32(binary.LittleEndian.Uint32(b.tape[8*at:])), int32(binary.LittleEndian.Uint32(b.tape[8*at+4:])),
		}
	}
	s := binary.LittleEndian.Uint32(b.tape[4*at:])
	return Span{int32(int16(s)), int32(int16(s >> 16))}
}

// Bytes returns a scalar, a list of scalars or a map as it is stored.
// The bytes are shared and must not be changed.
func (b *Body) Bytes(s Span) []byte {
	return b.Stored.Body[1+s.begin : 1+max(s.end, -s.end)] // behind the codec, see [backend.DecodeBody]
}

// Object is the table of an object.
func (b *Body) Object(s Span) Table { return Table(s.begin) }

// Len is the number of objects in a list of them.
func (b *Body) Len(s Span) int { return int(s.end >> 1) }

// Objects are the tables of a list of objects.
func (b *Body) Objects(s Span) iter.Seq2[int, Table] {
	return func(yield func(int, Table) bool) {
		at := Table(s.begin)
		for i := range b.Len(s) {
			if !yield(i, at) {
				return
			}
			at = Table(b.span(int(at)).begin) // the head of a table leads to the next one of its list
		}
	}
}

// Text is a string as the API means it. A span without a value is "".
func (b *Body) Text(s Span) string {
	switch {
	case s.end == 0:
		return ""
	case s.end > 0:
		raw := b.Bytes(s)
		return string(raw[1 : len(raw)-1])
	}
	return string(Unquote(nil, b.Bytes(s)))
}

// Scalars are the elements of a list of scalars, as they are stored.
func (b *Body) Scalars(s Span) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if s.IsZero() {
			return
		}
		r := parser{raw: b.Bytes(s)}
		for i := r.space(1); r.raw[i] != ']'; {
			end := r.scalarEnd(i)
			if !yield(r.raw[i:end]) {
				return
			}
			i = r.space(end)
			if r.raw[i] == ',' {
				i = r.space(i + 1)
			}
		}
	}
}

// Entries are the keys and values of a map, in the order in which they are
// stored. A value of null is the empty string.
func (b *Body) Entries(s Span) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if s.IsZero() {
			return
		}
		r := parser{raw: b.Bytes(s)}
		for i := r.space(1); r.raw[i] != '}'; {
			end := r.scalarEnd(i)
			key := Unquote(nil, r.raw[i:end])
			i = r.space(r.space(end) + 1)
			end = r.scalarEnd(i)
			var value []byte
			if r.raw[i] == '"' {
				value = Unquote(nil, r.raw[i:end])
			}
			if !yield(string(key), string(value)) {
				return
			}
			i = r.space(end)
			if r.raw[i] == ',' {
				i = r.space(i + 1)
			}
		}
	}
}

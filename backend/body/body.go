package body

import (
	"encoding/binary"
	"iter"

	"github.com/sluicegw/sluice/backend"
)

// Span is the position of a value in a body. The zero value means that the value is absent.
type Span struct {
	// begin and end delimit a scalar, a list of scalars or a map. end is negative if the stored bytes differ from the
	// form in an answer, see [Span.Ready]. For an object, begin is the position of its table. For a list of objects,
	// begin is the position of the first object's table, and end is twice the number of objects, plus one.
	begin, end int32
}

// IsZero reports whether there is no value: the field is absent or null.
func (s Span) IsZero() bool { return s.end == 0 }

// Ready reports whether an answer can contain the stored bytes of a scalar or a list of scalars unchanged. It is false
// for enums, times and floats, whose form in an answer may differ, and for values with escapes or white space.
func (s Span) Ready() bool { return s.end > 0 }

// Table is the position of an object's table in the tape of a body.
type Table int32

// Root is the table of the body itself.
const Root Table = 0

// Body is a resource whose stored body was parsed. The result of parsing is its tape, which has a table for each object
// of the body. A table has one span for each field of the object's shape. A Body is never changed.
type Body struct {
	// Stored is the parsed resource.
	Stored *backend.Resource
	// Shape is the shape of the root object. It describes the fields of the whole body.
	Shape *Shape
	// tape has the begin and the end of each span: as integers of 32 bits if wide is set, otherwise of 16 bits.
	tape []byte
	wide bool
}

// At returns the span of a field of the object whose table is t. slot is the index of the field in the object's
// [Shape].
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

// Bytes returns the stored bytes of a scalar, a list of scalars or a map. They are
// shared and must not be changed.
func (b *Body) Bytes(s Span) []byte {
	return b.Stored.Body[1+s.begin : 1+max(s.end, -s.end)] // behind the codec, see [backend.DecodeBody]
}

// Object returns the table of the object at s.
func (b *Body) Object(s Span) Table { return Table(s.begin) }

// Len returns the number of objects in a list.
func (b *Body) Len(s Span) int { return int(s.end >> 1) }

// Objects returns the index and the table of each object in the list at s.
func (b *Body) Objects(s Span) iter.Seq2[int, Table] {
	return func(yield func(int, Table) bool) {
		at := Table(s.begin)
		for i := range b.Len(s) {
			if !yield(i, at) {
				return
			}
			at = Table(b.span(int(at)).begin) // the head of a table has the position of the next table in its list
		}
	}
}

// Text returns the string at s, without quotes and escapes; "" if it is absent.
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

// Scalars returns the stored elements of a list of scalars.
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

// Entries returns the keys and values of a map in stored order. A null value is the
// empty string.
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

package body

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/internal/slab"
)

// maxDepth bounds the nesting of a body.
const maxDepth = 100

// Read parses a stored body. If it is not JSON of the shape, or lacks a required value,
// the error is [backend.ErrUnreadable].
func (s *Shape) Read(stored *backend.Resource) (*Body, error) { return new(Arena).Read(s, stored) }

// Arena is memory shared by the bodies of one answer. The zero value is ready; it is not safe for
// concurrent use.
type Arena struct {
	bodies slab.Slab[Body]
	tapes  slab.Slab[byte]
	// spans is scratch memory for a tape. piece is scratch memory for a kept body.
	spans []Span
	piece []byte
}

const (
	// firstTape is the initial capacity of the scratch tape, in spans.
	firstTape = 128
	// maxTape is the maximum capacity of a scratch tape that is kept, in spans.
	maxTape = 2048
	// tapeChunk is the size of a chunk of tapes, in bytes.
	tapeChunk = 16 << 10
)

// Read is like [Shape.Read], with memory of the arena.
func (a *Arena) Read(s *Shape, stored *backend.Resource) (*Body, error) {
	tape, err := a.scan(s, stored)
	if err != nil {
		return nil, err
	}
	b := a.bodies.One()
	*b = Body{Stored: stored, Shape: s, wide: wide(stored, tape)}
	a.tapes.Chunk = tapeChunk
	b.tape = b.encode(a.tapes.Take(b.encodedLen(tape))[:0], tape)
	return b, nil
}

// scan returns the tape of a body, which is valid until the next call.
func (a *Arena) scan(s *Shape, stored *backend.Resource) (tape []Span, err error) {
	raw, err := backend.DecodeBody(stored.Body)
	if err != nil {
		return nil, err
	}
	if a.spans == nil {
		a.spans = make([]Span, 0, firstTape)
	}
	r := parser{raw: raw, invalid: !utf8.Valid(raw), tape: a.spans[:0]}
	_, end, err := r.object(r.space(0), s)
	end = r.space(end)
	if err == nil && end != len(raw) {
		err = r.bad(end, "the end of the body")
	}
	if err != nil {
		return nil, err
	}
	a.spans = r.tape
	if cap(r.tape) > maxTape {
		a.spans = nil
	}
	return r.tape, nil
}

// parser parses one body. Its methods take the position at which a value begins and return the position after it.
type parser struct {
	raw  []byte
	tape []Span
	// invalid is set if a string is not valid UTF-8.
	invalid bool
	depth   int
}

func (r *parser) bad(at int, want string) error {
	return fmt.Errorf("body at byte %d: %s expected: %w", at, want, backend.ErrUnreadable)
}

func (r *parser) space(i int) int {
	for i < len(r.raw) && (r.raw[i] == ' ' || r.raw[i] == '\n' || r.raw[i] == '\t' || r.raw[i] == '\r') {
		i++
	}
	return i
}

func (r *parser) is(i int, c byte) bool { return i < len(r.raw) && r.raw[i] == c }

func (r *parser) word(i int, w string) bool {
	return i+len(w) <= len(r.raw) && string(r.raw[i:i+len(w)]) == w
}

// object parses an object into a new table.
func (r *parser) object(i int, s *Shape) (t Table, end int, err error) {
	if !r.is(i, '{') {
		return 0, i, r.bad(i, s.Name+", an object,")
	}
	if r.depth++; r.depth > maxDepth {
		return 0, i, r.bad(i, "less nesting")
	}
	t = Table(len(r.tape))
	r.tape = append(r.tape, make([]Span, len(s.Fields)+1)...)
	for i, place := r.space(i+1), 0; ; {
		if r.is(i, '}') {
			end = i + 1
			break
		}
		slot, next, err := r.name(i, s, place)
		if err != nil {
			return 0, i, err
		}
		if slot >= 0 {
			place = s.places[slot] + 1
		}
		var span Span
		switch {
		case slot < 0:
			next, err = r.skip(next)
		case r.word(next, "null") && !s.Fields[slot].object:
			next += len("null")
		default:
			if span, next, err = r.field(next, &s.Fields[slot]); err != nil {
				err = fmt.Errorf("%s.%s: %w", s.Name, s.Fields[slot].Name, err)
			}
		}
		if err != nil {
			return 0, i, err
		}
		if slot >= 0 {
			r.tape[int(t)+1+slot] = span
		}
		if i, err = r.separator(next, '}'); err != nil {
			return 0, i, err
		}
	}
	for _, slot := range s.required {
		if r.tape[int(t)+1+slot].IsZero() {
			return 0, end, fmt.Errorf(
				"%s.%s: required and absent: %w", s.Name, s.Fields[slot].Name, backend.ErrUnreadable,
			)
		}
	}
	r.depth--
	return t, end, nil
}

// name parses a name and the colon after it. It returns the slot of the field, -1 if the shape has no such field. The
// service stores names in a fixed order. place is the index of the next expected name: this one and the names after it
// are compared first.
func (r *parser) name(i int, s *Shape, place int) (slot, next int, err error) {
	rest := r.raw[i:]
	for _, name := range s.stored[place:min(place+maxAbsent, len(s.stored))] {
		if n := len(name.text); n < len(rest) && rest[n-1] == ':' && string(rest[:n]) == name.text {
			return name.slot, r.space(i + n), nil
		}
	}
	end, escaped, err := r.text(i)
	if err != nil {
		return 0, i, err
	}
	name := r.raw[i+1 : end-1]
	if escaped {
		name = Unquote(nil, r.raw[i:end])
	}
	end = r.space(end)
	if !r.is(end, ':') {
		return 0, end, r.bad(end, "a colon")
	}
	next = r.space(end + 1)
	if slot, ok := s.slots[string(name)]; ok {
		return slot, next, nil
	}
	return -1, next, nil
}

// maxAbsent is the number of expected names that are compared before the name is looked up.
const maxAbsent = 8

// separator parses the comma between two elements. After the last element it parses nothing.
func (r *parser) separator(i int, closing byte) (int, error) {
	i = r.space(i)
	if r.is(i, closing) {
		return i, nil
	}
	if !r.is(i, ',') {
		return i, r.bad(i, "a comma")
	}
	i = r.space(i + 1)
	if r.is(i, closing) {
		return i, r.bad(i, "another element")
	}
	return i, nil
}

func (r *parser) field(i int, f *Field) (Span, int, error) {
	switch {
	case f.List && f.Type == descriptor.TypeObject:
		return r.objects(i, f)
	case f.List:
		return r.scalars(i, f)
	case f.Type == descriptor.TypeObject:
		t, end, err := r.object(i, f.Shape)
		return Span{int32(t), 1}, end, err
	case f.Type == descriptor.TypeMap:
		end, err := r.mapping(i)
		return Span{int32(i), int32(end)}, end, err
	}
	end, ready, err := r.scalar(i, f.Type)
	span := Span{int32(i), int32(end)}
	if !ready {
		span.end = -span.end
	}
	return span, end, err
}

// objects parses a list of objects, whose tables are linked.
func (r *parser) objects(i int, f *Field) (Span, int, error) {
	if !r.is(i, '[') {
		return Span{}, i, r.bad(i, "a list")
	}
	var first, last Table
	n := int32(0)
	for i = r.space(i + 1); !r.is(i, ']'); n++ {
		t, end, err := r.object(i, f.Shape)
		if err != nil {
			return Span{}, i, err
		}
		if n == 0 {
			first = t
		} else {
			r.tape[last].begin = int32(t)
		}
		last = t
		if i, err = r.separator(end, ']'); err != nil {
			return Span{}, i, err
		}
	}
	return Span{int32(first), n<<1 | 1}, i + 1, nil // never zero, also for an empty list
}

// scalars parses a list of scalars. A null is an error. Unlike a single time, each time must be a string, because
// [Body.Scalars] finds only the ends of scalars.
func (r *parser) scalars(i int, f *Field) (Span, int, error) {
	if !r.is(i, '[') {
		return Span{}, i, r.bad(i, "a list")
	}
	begin, all := i, true
	i = r.space(i + 1)
	all = all && i == begin+1
	for !r.is(i, ']') {
		if f.Type == descriptor.TypeTime && !r.is(i, '"') {
			return Span{}, i, r.bad(i, "a string")
		}
		end, ready, err := r.scalar(i, f.Type)
		if err != nil {
			return Span{}, i, err
		}
		if i, err = r.separator(end, ']'); err != nil {
			return Span{}, i, err
		}
		compact := i == end || r.raw[end] == ',' && i == end+1
		all = all && ready && compact
	}
	end := i + 1
	span := Span{int32(begin), int32(end)}
	if !all {
		span.end = -span.end
	}
	return span, end, nil
}

// mapping parses a map of strings; a null value means the empty string.
func (r *parser) mapping(i int) (int, error) {
	if !r.is(i, '{') {
		return i, r.bad(i, "a map")
	}
	for i = r.space(i + 1); !r.is(i, '}'); {
		end, _, err := r.text(i)
		if err != nil {
			return i, err
		}
		i = r.space(end)
		if !r.is(i, ':') {
			return i, r.bad(i, "a colon")
		}
		i = r.space(i + 1)
		if r.word(i, "null") {
			end = i + len("null")
		} else if end, _, err = r.text(i); err != nil {
			return i, err
		}
		if i, err = r.separator(end, '}'); err != nil {
			return i, err
		}
	}
	return i + 1, nil
}

// scalar parses a scalar of a type. ready reports whether an answer can contain its bytes
// unchanged.
func (r *parser) scalar(i int, t descriptor.FieldType) (end int, ready bool, err error) {
	switch t {
	case descriptor.TypeString:
		end, escaped, err := r.text(i)
		return end, !escaped, err
	case descriptor.TypeEnum:
		end, _, err = r.text(i)
		return end, false, err
	case descriptor.TypeTime: // a malformed time is accepted here; where it is shown, it is null
		end, err = r.skip(i)
		return end, false, err
	case descriptor.TypeBoolean:
		if r.word(i, "true") {
			return i + len("true"), true, nil
		}
		if r.word(i, "false") {
			return i + len("false"), true, nil
		}
		return i, false, r.bad(i, "true or false")
	case descriptor.TypeFloat:
		if end, err = r.number(i); err == nil {
			_, err = strconv.ParseFloat(string(r.raw[i:end]), 64)
		}
		if err != nil {
			return i, false, r.bad(i, "a number of 64 bits")
		}
		return end, false, nil
	}
	return r.integer(i, t)
}

// integer parses a whole number, written without fraction and exponent.
func (r *parser) integer(i int, t descriptor.FieldType) (end int, ready bool, err error) {
	if end, err = r.number(i); err != nil {
		return i, false, err
	}
	n, err := strconv.ParseInt(string(r.raw[i:end]), 10, 64)
	if err != nil || t == descriptor.TypeInt && (n > math.MaxInt32 || n < math.MinInt32) {
		return i, false, r.bad(i, "a whole number of type "+string(t))
	}
	return end, n != 0 || end == i+1, nil // -0 is 0
}

// number parses a number of JSON (RFC 8259 section 6).
func (r *parser) number(i int) (int, error) {
	digits := func(i int) int {
		for i < len(r.raw) && r.raw[i] >= '0' && r.raw[i] <= '9' {
			i++
		}
		return i
	}
	at := i
	if r.is(i, '-') {
		i++
	}
	end := digits(i)
	if end == i || r.raw[i] == '0' && end > i+1 {
		return at, r.bad(at, "a number")
	}
	i = end
	if r.is(i, '.') {
		end = digits(i + 1)
		if end == i+1 {
			return at, r.bad(at, "a number")
		}
		i = end
	}
	if r.is(i, 'e') || r.is(i, 'E') {
		if i++; r.is(i, '+') || r.is(i, '-') {
			i++
		}
		end = digits(i)
		if end == i {
			return at, r.bad(at, "a number")
		}
		i = end
	}
	return i, nil
}

// skip skips a value of any type. It is called for fields that the shape does not have.
func (r *parser) skip(i int) (end int, err error) {
	if i >= len(r.raw) {
		return i, r.bad(i, "a value")
	}
	switch c := r.raw[i]; c {
	case '"':
		end, _, err = r.text(i)
		return end, err
	case '{', '[':
		if r.depth++; r.depth > maxDepth {
			return i, r.bad(i, "less nesting")
		}
		closing := c + 2 // '}' is '{' + 2, and ']' is '[' + 2
		for i = r.space(i + 1); !r.is(i, closing); {
			if c == '{' {
				if end, _, err = r.text(i); err != nil {
					return i, err
				}
				i = r.space(end)
				if !r.is(i, ':') {
					return i, r.bad(i, "a colon")
				}
				i = r.space(i + 1)
			}
			if end, err = r.skip(i); err != nil {
				return i, err
			}
			if i, err = r.separator(end, closing); err != nil {
				return i, err
			}
		}
		r.depth--
		return i + 1, nil
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if r.word(i, w) {
			return i + len(w), nil
		}
	}
	return r.number(i)
}

// scalarEnd returns the end of a scalar that was parsed before.
func (r *parser) scalarEnd(i int) int {
	if r.raw[i] == '"' {
		end, _, _ := r.text(i)
		return end
	}
	for i < len(r.raw) && r.raw[i] != ',' && r.raw[i] != ']' && r.raw[i] != '}' && r.raw[i] > ' ' {
		i++
	}
	return i
}

package body

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
)

// Keep parses a body that will be kept for long. It is like [Shape.Read], but copies everything that must be kept into
// one piece of memory, which is not shared: the tape, and the body, the name and the uid of the resource. It changes r
// to use the copies, even if the body is unreadable. If the body is readable, Keep also calls more with it, copies the
// result into the piece, and returns it as made. size is the size of the piece in bytes.
func (a *Arena) Keep(
	s *Shape, r *backend.Resource, more func(*Body) []byte,
) (kept Body, made string, size int, err error) {
	tape, err := a.scan(s, r)
	kept = Body{Stored: r, Shape: s, wide: wide(r, tape)}
	a.piece = kept.encode(a.piece[:0], tape)
	name := len(a.piece)
	uid := name + len(r.Name)
	raw := uid + len(r.UID)
	end := raw + len(r.Body)
	kept.tape = a.piece
	a.piece = append(append(append(a.piece, r.Name...), r.UID...), r.Body...)
	if err == nil {
		a.piece = append(a.piece, more(&kept)...)
	}
	piece := bytes.Clone(a.piece)
	kept.tape = piece[:name:name]
	r.Name = text(piece[name:uid])
	r.UID = text(piece[uid:raw])
	r.Body = piece[raw:end:end]
	if err != nil {
		return Body{}, "", cap(piece), err
	}
	return kept, text(piece[end:]), cap(piece), nil
}

// text returns b as a string without copying. The bytes must not be changed afterwards.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// wide reports whether a tape has numbers that need more than 16 bits.
func wide(r *backend.Resource, tape []Span) bool {
	return len(r.Body) > math.MaxInt16 || len(tape) > math.MaxInt16
}

// encodedLen returns the number of bytes that encode appends.
func (b *Body) encodedLen(tape []Span) int {
	if b.wide {
		return 8 * len(tape)
	}
	return 4 * len(tape)
}

// encode appends a tape in the form in which [Body.span] reads it.
func (b *Body) encode(dst []byte, tape []Span) []byte {
	for _, s := range tape {
		if b.wide {
			dst = binary.LittleEndian.AppendUint32(
				binary.LittleEndian.AppendUint32(dst, uint32(s.begin)), uint32(s.end),
			)
		} else {
			dst = binary.LittleEndian.AppendUint16(
				binary.LittleEndian.AppendUint16(dst, uint16(s.begin)), uint16(s.end),
			)
		}
	}
	return dst
}

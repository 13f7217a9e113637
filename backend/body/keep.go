package body

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

const (
	// shortBytes is how long a short span is: two numbers of 16 bits.
	shortBytes = 4
	// maxNear is how long the values are, at most, that lie near the tape of a body
	// which is kept, and how long a body that lies there as it is.
	maxNear = 512
	// maxNearValue is the longest value near the tape of a longer body.
	maxNearValue = 128
)

// Keep reads a body that is kept for long, as [Shape.Read] does, into memory of its own:
// its tape, the resource's name and uid, which become copies, and the body itself lie in
// one piece, since they are read together. A body that is not short lies elsewhere, and
// the piece has copies of its short values, but for those in lists of objects: then what
// is seldom read, as the messages of conditions are, does not keep apart what is read
// often. The resource is kept even if its body is unreadable. Size is how many bytes they
// take. The room of the arena is free for the next body.
func (a *Arena) Keep(s *Shape, r *backend.Resource) (kept Body, size int, err error) {
	raw, tape, err := a.scan(s, r)
	kept = Body{Stored: r, Shape: s}
	tapeBytes := shortBytes * len(tape)
	short := err == nil && len(raw) <= math.MaxInt16 && tapeBytes+len(r.Name)+len(r.UID)+maxNear <= math.MaxInt16
	if !short {
		tapeBytes, kept.tape = 0, slices.Clone(tape)
	}
	piece := append(slices.Grow(a.piece[:0], tapeBytes)[:tapeBytes], r.Name...)
	piece = append(piece, r.UID...)
	texts, apart := len(piece), len(r.Body) > maxNear
	switch {
	case !apart:
		piece = append(piece, r.Body...)
	case short:
		n := nearing{raw: raw, tape: tape, piece: piece, end: texts + maxNear}
		n.object(s, Root)
		piece = n.piece
	}
	for i := range tapeBytes / shortBytes {
		begin, end := uint16(tape[i].begin), uint16(tape[i].end)
		binary.LittleEndian.PutUint32(piece[shortBytes*i:], uint32(begin)|uint32(end)<<16)
	}
	a.piece, piece = piece[:0], bytes.Clone(piece)
	if apart {
		r.Body = slices.Clip(bytes.Clone(r.Body))
		size = len(r.Body)
	} else {
		r.Body = piece[texts:len(piece):len(piece)]
	}
	name := tapeBytes + len(r.Name)
	r.Name, r.UID = text(piece[tapeBytes:name]), text(piece[name:texts])
	size += cap(piece) + len(kept.tape)*int(unsafe.Sizeof(Span{}))
	if err != nil {
		return Body{}, size, err
	}
	if short {
		kept.near = piece
	}
	if kept.raw, err = backend.DecodeBody(r.Body); err != nil {
		return Body{}, size, err
	}
	clear(tape)
	if a.spans = tape[:0]; cap(tape) > maxTape {
		a.spans = nil
	}
	return kept, size, nil
}

// text is what bytes say that nobody changes any more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// nearing copies the short values of a body behind its piece, and makes their spans lead there.
type nearing struct {
	raw   []byte
	tape  []Span
	piece []byte
	// end is how long the piece becomes at most.
	end int
}

func (n *nearing) object(s *Shape, t Table) {
	for slot := range s.Fields {
		f, span := &s.Fields[slot], &n.tape[int(t)+1+slot]
		switch {
		case span.IsZero() || f.List && f.Type == descriptor.TypeObject:
		case f.Type == descriptor.TypeObject:
			n.object(f.Shape, Table(span.begin))
		default:
			value := n.raw[span.begin:abs(span.end)]
			if len(value) > maxNearValue || len(n.piece)+len(value) > n.end {
				continue
			}
			begin := len(n.piece)
			n.piece = append(n.piece, value...)
			end := int32(len(n.piece))
			if !span.Ready() {
				end = -end
			}
			*span = Span{^int32(begin), end}
		}
	}
}

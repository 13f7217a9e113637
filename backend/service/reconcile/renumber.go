package reconcile

import (
	"bytes"
	"strconv"

	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Renumbered is a stored status that begins with the conditions Available and Progressing
// of a generation, as they are written here, with those of another, which say the same.
// With done they are those of [Done]. ok is false for any other status. It spares most
// changes of a spec reading the status.
func Renumbered(status string, was, generation int64, done bool) (string, bool) {
	r := renumbering{rest: []byte(status), out: make([]byte, 0, len(status)+8)}
	for i, a := range Done(was) {
		begin := `{"conditions":[{"lastTransitionTime":`
		if i > 0 {
			begin = `,{"lastTransitionTime":`
		}
		switch {
		case !r.take(begin), !r.text("", false), !r.take(`,"message":`), !r.text(a.Message, done), !r.take(`,"observedGeneration":`):
			return "", false
		case !r.number(was, generation), !r.take(`,"reason":`), !r.text(a.Reason, done), !r.take(`,"status":`), !r.text(a.Status, done):
			return "", false
		case !r.take(`,"type":`), !r.text(a.Type, true), !r.take(`}`):
			return "", false
		}
	}
	if !bytes.HasPrefix(r.rest, []byte("]")) {
		return "", false
	}
	return string(append(r.out, r.rest...)), true
}

// renumbering copies a status piece by piece.
type renumbering struct{ rest, out []byte }

// take copies a piece, if it is next.
func (r *renumbering) take(piece string) bool {
	if len(r.rest) < len(piece) || string(r.rest[:len(piece)]) != piece {
		return false
	}
	r.out, r.rest = append(r.out, piece...), r.rest[len(piece):]
	return true
}

// number copies a number as another, if it is next.
func (r *renumbering) number(was, next int64) bool {
	var room [20]byte
	text := strconv.AppendInt(room[:0], was, 10)
	if !bytes.HasPrefix(r.rest, text) {
		return false
	}
	r.out, r.rest = strconv.AppendInt(r.out, next, 10), r.rest[len(text):]
	return true
}

// text copies a text, if one is next: if need be, just the one that is given.
func (r *renumbering) text(given string, only bool) bool {
	if only {
		at := len(r.out)
		r.out = jsontree.AppendText(r.out, given)
		if !bytes.HasPrefix(r.rest, r.out[at:]) {
			return false
		}
		r.rest = r.rest[len(r.out)-at:]
		return true
	}
	if len(r.rest) == 0 || r.rest[0] != '"' {
		return false
	}
	for i := 1; i < len(r.rest); i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '"':
			r.out, r.rest = append(r.out, r.rest[:i+1]...), r.rest[i+1:]
			return true
		}
	}
	return false
}

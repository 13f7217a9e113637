package dependency

import (
	"bytes"
	"strconv"

	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Renumbered is a stored status that begins with the two conditions of [Done] for a
// generation, as they are written here, with those for another. ok is false for any
// other status. It spares most changes of a spec reading the status.
func Renumbered(status []byte, was, generation int64) (out []byte, ok bool) {
	rest := status
	out = make([]byte, 0, len(status)+8)
	take := func(part []byte) bool {
		if !bytes.HasPrefix(rest, part) {
			return false
		}
		out, rest = append(out, part...), rest[len(part):]
		return true
	}
	var room [256]byte
	for i, a := range Done(was) {
		begin := `{"conditions":[{"lastTransitionTime":"`
		if i > 0 {
			begin = `,{"lastTransitionTime":"`
		}
		if !take([]byte(begin)) {
			return nil, false
		}
		end := bytes.IndexByte(rest, '"')
		if end < 0 || !take(rest[:end]) {
			return nil, false
		}
		text := append(room[:0], `","message":`...)
		text = append(jsontree.AppendText(text, a.Message), `,"observedGeneration":`...)
		if !take(text) {
			return nil, false
		}
		text = strconv.AppendInt(room[:0], was, 10)
		if !bytes.HasPrefix(rest, text) {
			return nil, false
		}
		out, rest = strconv.AppendInt(out, generation, 10), rest[len(text):]
		text = jsontree.AppendText(append(room[:0], `,"reason":`...), a.Reason)
		text = jsontree.AppendText(append(text, `,"status":`...), a.Status)
		text = append(jsontree.AppendText(append(text, `,"type":`...), a.Type), '}')
		if !take(text) {
			return nil, false
		}
	}
	if !bytes.HasPrefix(rest, []byte("]")) {
		return nil, false
	}
	return append(out, rest...), true
}

package kind

import (
	"encoding/json"
	"iter"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
)

// Of returns the index rows of a resource. Null is the same as absent; a text that is longer than
// an index takes has no row. An index with several equal values has a row of each.
func (d *Rows) Of(b *body.Body) []index.Row {
	out := rowList{body: b, all: make([]index.Row, 0, len(d.indexes)+usualLabels), values: make([]byte, 0, usualBytes)}
	if metadata := b.At(body.Root, body.SlotMetadata); !metadata.IsZero() {
		for key, value := range b.Entries(b.At(b.Object(metadata), body.SlotLabels)) {
			out.add(LabelIndex, appendPair(out.values, key, value))
		}
	}
	for i := range d.indexes {
		out.walk(&d.indexes[i], d.shape, body.Root, 0)
	}
	out.addConditions(d)
	out.addReasons(d)
	return out.all
}

// rowList collects index rows.
type rowList struct {
	body *body.Body
	all  []index.Row
	// values has the encoded values, one behind the other.
	values []byte
	text   []byte
}

// The room that a list of rows begins with: for labels and conditions, and for the bytes of all values.
const (
	usualLabels = 8
	usualBytes  = 512
)

// walk adds the values of a field below the object at a table, from a step of its path on,
// and the effective default of a field that is absent from an object that is there.
func (r *rowList) walk(f *indexed, s *body.Shape, at body.Table, step int) {
	slot := f.slots[step]
	span, last := r.body.At(at, slot), step == len(f.slots)-1
	switch of := &s.Fields[slot]; {
	case span.IsZero() && last && f.Field.Default != nil:
		r.addDefault(f, f.Field.Default)
	case span.IsZero():
	case of.Type == descriptor.TypeObject && of.List:
		for _, t := range r.body.Objects(span) {
			r.walk(f, of.Shape, t, step+1)
		}
	case of.Type == descriptor.TypeObject:
		r.walk(f, of.Shape, r.body.Object(span), step+1)
	case of.List:
		for raw := range r.body.Scalars(span) {
			r.addRaw(f, raw)
		}
	default:
		r.addRaw(f, r.body.Bytes(span))
	}
}

// addDefault adds the rows of an effective default, a scalar or a list of them.
func (r *rowList) addDefault(f *indexed, v any) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			r.addDefault(f, e)
		}
		return
	}
	if value, ok := appendValue(r.values, f.Field, v); ok {
		r.add(f.path, value)
	}
}

// addRaw adds the row of a scalar as it is stored, if it has one.
func (r *rowList) addRaw(f *indexed, raw []byte) {
	var v any
	switch raw[0] {
	case 'n':
		return
	case 't', 'f':
		v = raw[0] == 't'
	case '"':
		r.text = body.Unquote(r.text[:0], raw)
		v = string(r.text)
	default:
		v = json.Number(raw)
	}
	if value, ok := appendValue(r.values, f.Field, v); ok {
		r.add(f.path, value)
	}
}

// addConditions adds the rows of the conditions of the status: type and status.
func (r *rowList) addConditions(d *Rows) {
	for typ, value := range d.Conditions(r.body) {
		if len(typ)+len(value) <= maxIndexBytes {
			r.add(ConditionIndex, appendPair(r.values, typ, value))
		}
	}
}

// addReasons adds the rows of the conditions of the status: type and reason.
func (r *rowList) addReasons(d *Rows) {
	if d.reason < 0 {
		return
	}
	for typ, reason := range d.texts(r.body, d.reason) {
		if reason != "" && len(typ)+len(reason) <= maxIndexBytes && utf8.RuneCountInString(reason) <= MaxIndexChars {
			r.add(ReasonIndex, appendPair(r.values, typ, reason))
		}
	}
}

// Conditions returns the types and statuses of the conditions of a resource, in their order.
func (d *Rows) Conditions(b *body.Body) iter.Seq2[string, string] {
	if d.conditions == nil {
		return func(func(string, string) bool) {}
	}
	return d.texts(b, d.conditions[2])
}

// texts returns the types of the conditions of a resource, each with the text at a slot.
func (d *Rows) texts(b *body.Body, slot int) iter.Seq2[string, string] {
	return func(yield func(typ, text string) bool) {
		if d.conditions == nil {
			return
		}
		status := b.At(body.Root, body.SlotStatus)
		if status.IsZero() {
			return
		}
		list := b.At(b.Object(status), d.conditions[0])
		if list.IsZero() {
			return
		}
		for _, t := range b.Objects(list) {
			if !yield(b.Text(b.At(t, d.conditions[1])), b.Text(b.At(t, slot))) {
				return
			}
		}
	}
}

// add adds a row. Its value was appended to r.values.
func (r *rowList) add(name string, appended []byte) {
	value := appended[len(r.values):len(appended):len(appended)]
	if len(name)+len(value) <= index.MaxRowBytes {
		r.values = appended
		r.all = append(r.all, index.Row{Index: name, Value: value})
	}
}

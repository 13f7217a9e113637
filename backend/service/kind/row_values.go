package kind

import (
	"encoding/json"
	"iter"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
)

// Of returns the index rows of a resource. A null and a text that is too long for an index have no row. If values of
// one index repeat, their rows repeat too.
func (d *Rows) Of(b *body.Body) []index.Row {
	out := rowList{all: make([]index.Row, 0, len(d.indexes)+usualLabels), values: make([]byte, 0, usualBytes)}
	if metadata := b.At(body.Root, body.SlotMetadata); !metadata.IsZero() {
		for key, value := range b.Entries(b.At(b.Object(metadata), body.SlotLabels)) {
			out.add(LabelIndex, appendPair(out.values, key, value))
		}
		if at := b.At(b.Object(metadata), body.SlotDeletionRequestedAt); !at.IsZero() {
			if t, err := descriptor.ParseTime(body.Text(b.Bytes(at))); err == nil {
				out.add(DeletionIndex, AppendTime(out.values, t))
			}
		}
	}
	var f *indexed
	add := func(raw []byte) { // one function for all indexes
		if raw == nil {
			out.addDefault(f, f.Field.Default)
		} else {
			out.addRaw(f, raw)
		}
	}
	for i := range d.indexes {
		f = &d.indexes[i]
		f.each(b, add)
	}
	for typ, value := range d.Conditions(b) {
		if len(typ)+len(value) <= maxIndexBytes {
			out.add(ConditionIndex, appendPair(out.values, typ, value))
		}
	}
	for typ, reason := range d.texts(b, d.reason) {
		if reason != "" && len(typ)+len(reason) <= maxIndexBytes && utf8.RuneCountInString(reason) <= MaxIndexChars {
			out.add(ReasonIndex, appendPair(out.values, typ, reason))
		}
	}
	return out.all
}

// rowList collects index rows.
type rowList struct {
	all []index.Row
	// values is the buffer of the rows' values. Each value is a slice of it.
	values []byte
	text   []byte
}

// The initial capacities of a rowList: the rows of labels and conditions, and the bytes of all values.
const (
	usualLabels = 8
	usualBytes  = 512
)

// each calls visit for each stored value of the field in a body. For an object without the field it calls visit(nil),
// which stands for the effective default.
func (f *indexed) each(b *body.Body, visit func(raw []byte)) {
	f.below(b, b.Shape, body.Root, f.slots, visit)
}

// below calls visit for the values within the object at a table. slots are the remaining steps of the field's path.
func (f *indexed) below(b *body.Body, s *body.Shape, at body.Table, slots []int, visit func(raw []byte)) {
	span, last := b.At(at, slots[0]), len(slots) == 1
	switch of := &s.Fields[slots[0]]; {
	case span.IsZero() && last && f.Field.Default != nil:
		visit(nil)
	case span.IsZero():
	case of.Type == descriptor.TypeObject && of.List:
		for _, t := range b.Objects(span) {
			f.below(b, of.Shape, t, slots[1:], visit)
		}
	case of.Type == descriptor.TypeObject:
		f.below(b, of.Shape, b.Object(span), slots[1:], visit)
	case of.List:
		for raw := range b.Scalars(span) {
			visit(raw)
		}
	default:
		visit(b.Bytes(span))
	}
}

// Names calls visit for each name in a reference field.
func (f *indexed) Names(b *body.Body, visit func(name string)) {
	f.each(b, func(raw []byte) {
		name, _ := f.Field.Default.(string)
		if raw != nil {
			name = body.Text(raw)
		}
		if name != "" {
			visit(name)
		}
	})
}

// addDefault adds the rows of an effective default, which may be a list.
func (r *rowList) addDefault(f *indexed, v any) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			r.addDefault(f, e)
		}
		return
	}
	if value, ok := AppendValue(r.values, f.Field, v); ok {
		r.add(f.path, value)
	}
}

// addRaw adds the row of a stored scalar. A null has no row.
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
	if value, ok := AppendValue(r.values, f.Field, v); ok {
		r.add(f.path, value)
	}
}

// Conditions yields the type and the status of each condition of a resource, in order.
func (d *Rows) Conditions(b *body.Body) iter.Seq2[string, string] {
	return d.texts(b, d.status)
}

// texts yields the type of each condition of a resource, and the text in a slot of the condition.
func (d *Rows) texts(b *body.Body, slot int) iter.Seq2[string, string] {
	return func(yield func(typ, text string) bool) {
		if d.conditions == nil || slot < 0 {
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

// add adds a row to an index, unless the row is too large. appended is r.values followed by the value of the row.
func (r *rowList) add(name string, appended []byte) {
	value := appended[len(r.values):len(appended):len(appended)]
	if len(name)+len(value) <= index.MaxRowBytes {
		r.values = appended
		r.all = append(r.all, index.Row{Index: name, Value: value})
	}
}

package kind

import (
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Maxima checks only the maxima of a status. A value above its maximum is accepted if the stored status has a value of
// at least this size in the same field. So a controller can write back a whole status with values that the gateway
// wrote, or that were stored before the maximum existed. A nil shape has no maxima. stored returns the stored status.
// It is called only if a value is too large.
func (v *Violations) Maxima(s *Shape, at *failure.Path, status map[string]any, stored func() map[string]any) {
	if s == nil {
		return
	}
	var largest map[measure]int
	m := meter(func(x excess) bool {
		if largest == nil {
			largest = s.excesses(stored())
		}
		if x.size <= largest[x.measure] {
			return true
		}
		v.Add(x.at, x.rule, x.most, x.message, x.most, x.size)
		return false
	})
	m.object(s, at, status)
}

// excesses returns the size of the largest value for each maximum that the tree exceeds.
func (s *Shape) excesses(tree map[string]any) map[measure]int {
	out := map[measure]int{}
	m := meter(func(x excess) bool {
		out[x.measure] = max(out[x.measure], x.size)
		return true
	})
	m.object(s, nil, tree)
	return out
}

// measure is a maximum of a field. message is the format of a violation. Its arguments are the maximum and the actual
// size.
type measure struct {
	field         *Field
	rule, message string
}

const textMessage = "must have at most %d characters, has %d"

// excess is a value that exceeds its maximum.
type excess struct {
	measure
	at         *failure.Path
	most, size int
}

// meter is called for each value that exceeds its maximum. If it returns true, the parts of the value are measured too.
// Values of a wrong type are not measured.
type meter func(excess) bool

func (m meter) object(s *Shape, at *failure.Path, tree map[string]any) {
	here := at.Below() // reused for each field
	element := here.Below()
	for _, f := range s.bounded {
		value, ok := tree[f.Name]
		if !ok {
			continue
		}
		here.SetField(f.Field)
		if !f.List {
			m.value(f, value, &here)
			continue
		}
		list, _ := value.([]any)
		if most := f.Constraint.MaxItems; most != nil && len(list) > *most &&
			!m(excess{measure{f, "maxItems", "must have at most %d elements, has %d"}, &here, *most, len(list)}) {
			continue
		}
		for i, e := range list {
			element.SetElement(i)
			m.value(f, e, &element)
		}
	}
}

// value measures the value of a field, or an element of its list.
func (m meter) value(f *Field, value any, at *failure.Path) {
	switch value := value.(type) {
	case string:
		if f.Type == descriptor.TypeString {
			m.text(measure{f, "maxLength", textMessage}, f.Constraint.MaxLength, value, at)
		}
	case map[string]any:
		switch {
		case f.Type == descriptor.TypeMap:
			m.mapping(f, value, at)
		case f.shape != nil && len(f.shape.bounded) > 0:
			m.object(f.shape, at, value)
		}
	}
}

// text measures a text in characters. It counts them only if the text has more bytes than characters are allowed.
func (m meter) text(of measure, most *int, text string, at *failure.Path) {
	if most == nil || len(text) <= *most {
		return
	}
	if n := utf8.RuneCountInString(text); n > *most {
		m(excess{of, at, *most, n})
	}
}

// mapping measures a map of strings.
func (m meter) mapping(f *Field, entries map[string]any, at *failure.Path) {
	c := f.Constraint
	if most := c.MaxItems; most != nil && len(entries) > *most &&
		!m(excess{measure{f, "maxProperties", "must have at most %d keys, has %d"}, at, *most, len(entries)}) {
		return
	}
	entry := at.Below()
	for _, key := range jsontree.Keys(entries) {
		entry.SetName(key)
		m.text(measure{f, "keyMaxLength", "the key " + textMessage}, c.KeyMaxLength, key, &entry)
		if text, ok := entries[key].(string); ok {
			m.text(measure{f, "maxLength", textMessage}, c.MaxLength, text, &entry)
		}
	}
}

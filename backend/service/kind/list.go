package kind

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// list validates a list: its length, its elements, and that its elements are distinct if they must be.
func (v *Violations) list(ctx context.Context, f *Field, at *failure.Path, value any, old prior) {
	list, ok := value.([]any)
	if !ok {
		v.Add(at, "type", "list", "must be a list")
		return
	}
	if was := v.unchanged; !was && old.ok && f.same(value, old.value, effective) {
		v.unchanged = true
		defer func() { v.unchanged = was }()
	}
	stored, _ := old.value.([]any)
	if !v.unchanged && (!old.ok || len(stored) != len(list)) && !v.count(f, at, "Items", "elements", len(list)) {
		return
	}
	before, seen := f.elements(stored), map[string]*elements{}
	element := at.Below()
	for i, e := range list {
		element.SetElement(i)
		if e == nil {
			v.Add(&element, "type", string(f.Type), "must not be null")
			continue
		}
		if !f.distinct() {
			v.one(ctx, f, &element, e, prior{})
			continue
		}
		id := f.identity(e)
		var was prior
		if b := before[id]; b != nil && f.ListType != descriptor.ListAtomic {
			was = prior{b.last, true}
		}
		v.one(ctx, f, &element, e, was)
		if v.unchanged {
			continue
		}
		one := seen[id]
		if one == nil {
			seen[id] = &elements{first: i, n: 1}
			continue
		}
		if one.n++; before[id] == nil || one.n > before[id].n {
			v.Add(&element, "unique", nil, "repeats element %d", one.first)
		}
	}
}

// elements describes the elements of a list that have the same identity. first is the index of the first of them, n is
// their number, and last is the value of the last of them.
type elements struct {
	first, n int
	last     any
}

// elements groups the elements of a stored list by identity. It returns nil if elements of the list may repeat.
func (f *Field) elements(stored []any) map[string]*elements {
	if !f.distinct() || len(stored) == 0 {
		return nil
	}
	out := make(map[string]*elements, len(stored))
	for i, e := range stored {
		id := f.identity(e)
		one := out[id]
		if one == nil {
			one = &elements{first: i}
			out[id] = one
		}
		one.n, one.last = one.n+1, e
	}
	return out
}

// distinct reports whether elements of the list must not repeat.
func (f *Field) distinct() bool {
	return f.ListType == descriptor.ListMap || f.ListType == descriptor.ListSet || f.Constraint.Unique
}

// identity returns a text that is equal for elements with the same identity. In a MAP, elements with equal keys have
// the same identity; in other lists, elements with equal values.
func (f *Field) identity(element any) string {
	e, isObject := element.(map[string]any)
	if f.ListType != descriptor.ListMap || !isObject {
		return string(f.appendIdentity(nil, element, stored))
	}
	var id []byte
	for _, name := range f.Keys {
		if k := f.shape.fields[name]; k != nil {
			id = k.appendIdentity(id, e[name], stored)
		}
	}
	return string(id)
}

// appendIdentity appends a text that is equal for values that are equal under a mode. Numbers are compared by value,
// and SETs in any order. Fields that the shape does not know count only if the mode is exact.
func (f *Field) appendIdentity(dst []byte, v any, c comparisonMode) []byte {
	switch v := v.(type) {
	case string:
		dst = append(strconv.AppendInt(append(dst, '"'), int64(len(v)), 10), ':')
		return append(dst, v...)
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return append(strconv.AppendFloat(dst, x+0, 'g', -1, 64), ',')
		}
		return append(append(dst, v...), ',')
	case bool:
		return strconv.AppendBool(dst, v)
	case []any:
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = string(f.appendIdentity(nil, e, c))
		}
		if f.List && f.ListType == descriptor.ListSet {
			slices.Sort(texts)
		}
		dst = append(dst, '[')
		for _, text := range texts {
			dst = append(dst, text...)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		if f.shape == nil {
			for _, key := range jsontree.Keys(v) {
				dst = f.appendIdentity(f.appendIdentity(dst, key, c), v[key], c)
			}
			return append(dst, '}')
		}
		for i, inner := range f.shape.ordered {
			if value, ok := inner.compared(v, c); ok {
				dst = inner.appendIdentity(append(strconv.AppendInt(dst, int64(i), 10), '='), value, c)
			}
		}
		return append(dst, '}')
	}
	return append(dst, '-')
}

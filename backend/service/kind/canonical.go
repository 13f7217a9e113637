package kind

import (
	"encoding/json"
	"strconv"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Canonical writes the times and the whole numbers of a tree as they are stored, so that equal
// values are equal texts: times in UTC, whole numbers without fraction and exponent (3.0 and 3e0
// are 3). Values of other types are left for validation to refuse.
func (s *Shape) Canonical(tree map[string]any) {
	if !s.respelled {
		return
	}
	for name, value := range tree {
		if f := s.fields[name]; f != nil {
			tree[name] = f.canonical(value)
		}
	}
}

// canonical returns a value of the field, or the elements of its list, as they are stored.
func (f *Field) canonical(value any) any {
	switch value := value.(type) {
	case string:
		if f.Type == descriptor.TypeTime {
			if t, err := descriptor.ParseTime(value); err == nil {
				return descriptor.FormatTime(t)
			}
		}
	case json.Number:
		if f.Type == descriptor.TypeInt || f.Type == descriptor.TypeSafeInt {
			return wholeNumber(value)
		}
	case map[string]any:
		if f.shape != nil {
			f.shape.Canonical(value)
		}
	case []any:
		for i, e := range value {
			value[i] = f.canonical(e)
		}
	}
	return value
}

// wholeNumber returns a number without fraction and exponent, if it is a whole one that JSON readers keep exact.
func wholeNumber(n json.Number) json.Number {
	i, ok := jsontree.Integer(n)
	if !ok {
		return n
	}
	return json.Number(strconv.FormatInt(i, 10))
}

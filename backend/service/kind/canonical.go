package kind

import (
	"encoding/json"
	"strconv"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Canonical rewrites the times and integers of a tree to the form in which they are stored, so that equal values have
// equal texts. Times are written in UTC. Integers are written without fraction and exponent: 3.0 and 3e0 become 3.
// Values of a wrong type are not changed; validation refuses them.
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

// canonical rewrites a value of the field, or each element of a list: see [Shape.Canonical].
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

// wholeNumber returns an integer without fraction and exponent. It returns other numbers as they are, and also integers
// that some readers of JSON would round.
func wholeNumber(n json.Number) json.Number {
	i, ok := jsontree.Integer(n)
	if !ok {
		return n
	}
	return json.Number(strconv.FormatInt(i, 10))
}

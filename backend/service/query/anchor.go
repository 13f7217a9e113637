package query

import "slices"

// Anchor is a test that everything a filter keeps passes: it has one of some values of an
// attribute. ok is false if the filter has no such test of an index. Values are in the
// encoding of index rows, each once.
func (f *Filter) Anchor() (attribute string, values []string, ok bool) {
	for _, e := range f.all {
		t, is := e.(test)
		if !is || !slices.Contains([]string{"eq", "in", "hasAny", "hasAll"}, t.op) || len(t.values) == 0 {
			continue
		}
		switch t.attribute {
		case nameAttribute, namespaceAttribute, createdAttribute, updatedAttribute:
			continue // no rows
		}
		for _, v := range t.values {
			values = append(values, string(v))
		}
		slices.Sort(values)
		return t.attribute, slices.Compact(values), true
	}
	return "", nil, false
}

package kind

import (
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// comparisonMode selects which differences between two objects count:
//
//	            order of a SET   fields unknown to the shape   absent field
//	stored      ignored          ignored                       differs from every value
//	effective   ignored          ignored                       equals its effective default
//	identical   counts           count                         differs from every value
//	equivalent  counts           count                         equals its effective default
type comparisonMode int

const (
	// stored compares the stored values of the shape's fields.
	stored comparisonMode = iota
	// effective compares the values of the shape's fields, with defaults for absent ones.
	effective
	// identical compares the stored forms.
	identical
	// equivalent compares the stored forms, with defaults for absent fields.
	equivalent
)

// exact reports whether differences in the order of a SET and in unknown fields count.
func (c comparisonMode) exact() bool { return c == identical || c == equivalent }

// withDefaults reports whether an absent field equals its effective default.
func (c comparisonMode) withDefaults() bool { return c == effective || c == equivalent }

// Identical reports whether two objects have the same stored form. They have the same values under the same names,
// including names that the shape does not know, and lists in the same order. An absent field differs from a field that
// is set to its default.
func (s *Shape) Identical(a, b map[string]any) bool { return s.same(a, b, identical) }

// Equivalent is like Identical, but an absent field equals a field that is set to its default.
func (s *Shape) Equivalent(a, b map[string]any) bool { return s.same(a, b, equivalent) }

// same reports whether two objects are equal under a comparisonMode.
func (s *Shape) same(a, b map[string]any, c comparisonMode) bool {
	if c.exact() && !s.sameUnknown(a, b) {
		return false
	}
	return !slices.ContainsFunc(s.ordered, func(f *Field) bool {
		x, ok1 := f.compared(a, c)
		y, ok2 := f.compared(b, c)
		return ok1 != ok2 || ok1 && !f.same(x, y, c)
	})
}

// sameUnknown reports whether two objects are equal in the fields that the shape does not know.
func (s *Shape) sameUnknown(a, b map[string]any) bool {
	for name, x := range a {
		if y, ok := b[name]; s.fields[name] == nil && !(ok && jsontree.Equal(x, y)) {
			return false
		}
	}
	for name := range b {
		if _, ok := a[name]; s.fields[name] == nil && !ok {
			return false
		}
	}
	return true
}

// compared returns the value of the field that a comparison in the given mode uses. It returns false if the field is
// absent.
func (f *Field) compared(tree map[string]any, c comparisonMode) (any, bool) {
	if c.withDefaults() {
		return f.valueIn(tree)
	}
	value, ok := tree[f.Name]
	return value, ok
}

// same reports whether two values of the field are equal under a comparisonMode.
func (f *Field) same(a, b any, c comparisonMode) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		inOrder := slices.EqualFunc(a, b, func(x, y any) bool { return f.same(x, y, c) })
		return inOrder || !c.exact() && f.List && f.ListType == descriptor.ListSet && f.sameSet(a, b, c)
	case map[string]any:
		if b, ok := b.(map[string]any); ok && f.shape != nil {
			return f.shape.same(a, b, c)
		}
	}
	return jsontree.Equal(a, b)
}

// sameSet reports whether two lists of equal length have the same elements in any order.
func (f *Field) sameSet(a, b []any, c comparisonMode) bool {
	times := make(map[string]int, len(b)) // how often b has them
	for _, v := range b {
		times[string(f.appendIdentity(nil, v, c))]++
	}
	for _, v := range a {
		id := string(f.appendIdentity(nil, v, c))
		if times[id]--; times[id] < 0 {
			return false
		}
	}
	return true
}

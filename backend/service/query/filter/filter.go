// Package filter parses filters, matches resources against them, and bounds the values
// that matches have.
//
// To add an operator:
//   - parse.go: parser.tests accepts it, and parser.labelTest if labels have it.
//   - Test.compare decides whether a value matches, and Test.Match whether the absence of a value does. Test.Range
//     bounds the values that match, so that an index is read by it; without a range all rows are tested. testChoice in
//     query/plan/choice.go chooses the rows that are read.
//   - graph/kinds/api.graphqls and derived.graphqls.tmpl show it to clients, and cmd/sluice/input/field.go is how the
//     command line writes it.
//   - Two tests make random filters and judge the answers independently: query/list_oracle_test.go and
//     e2e/reference_random_test.go.
package filter

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Limits of a filter.
const (
	MaxNodes  = 50
	MaxDepth  = 5
	MaxValues = 100
)

// Filter is a parsed filter: conditions that must all hold. The zero value matches everything.
type Filter struct {
	All
	text string
}

// Empty reports whether the filter has no conditions.
func (f *Filter) Empty() bool { return f.All == nil }

// Text returns the canonical text of the filter: JSON, empty for the zero value.
func (f *Filter) Text() string { return f.text }

// MatchesRows reports whether a resource with these index rows matches.
func (f *Filter) MatchesRows(r *backend.Resource, rows []index.Row) bool {
	return f.Match(&Values{Resource: r, rows: rows})
}

// Anchor returns an indexed attribute and a list of its values, encoded as in index rows and
// without duplicates, such that every match has one of them. ok is false if the filter has
// no such condition.
func (f *Filter) Anchor() (attribute string, values []string, ok bool) {
	for _, e := range f.All {
		t, is := e.(Test)
		if !is || !slices.Contains([]string{"eq", "in", "hasAny", "hasAll"}, t.Op) || len(t.Values) == 0 {
			continue
		}
		switch t.Attribute {
		case Name, Namespace, CreatedAt, UpdatedAt:
			continue // no rows
		}
		for _, v := range t.Values {
			values = append(values, string(v))
		}
		slices.Sort(values)
		return t.Attribute, slices.Compact(values), true
	}
	return "", nil, false
}

// Condition is a predicate on the values of a resource: [All], [Any], [Not] or [Test].
type Condition interface {
	// Match reports whether the condition holds.
	Match(v *Values) bool
}

// The connectives. An empty All holds, an empty Any does not. All is flat: no element of it is an
// All.
type (
	All []Condition
	Any []Condition
	Not struct{ Condition }
)

// Match implements [Condition].
func (e All) Match(v *Values) bool {
	return !slices.ContainsFunc(e, func(x Condition) bool { return !x.Match(v) })
}

// Range intersects the ranges of all tests of an attribute, and returns the number of these tests.
// It is only meaningful if a resource has at most one value of the attribute.
func (e All) Range(attribute string) (r Range, conditions int) {
	for _, x := range e {
		if t, _ := x.(Test); t.Attribute == attribute {
			if one, ok := t.Range(); ok {
				r, conditions = r.And(one), conditions+1
			}
		}
	}
	return r, conditions
}

// Match implements [Condition].
func (e Any) Match(v *Values) bool {
	return slices.ContainsFunc(e, func(x Condition) bool { return x.Match(v) })
}

// Match implements [Condition].
func (e Not) Match(v *Values) bool { return !e.Condition.Match(v) }

// Test compares the values of one attribute. Of all operators, only ne, hasNone and isNull
// match an attribute without a value.
type Test struct {
	Attribute string
	// Op is an operator of the API, or "first", which matches a value that begins with
	// the tuple elements of Values.
	Op string
	// Values are in the encoding of index rows, which keeps their order.
	Values [][]byte
	// Key, if set, is a prefix that restricts the test to values that begin with it, such as
	// pairs with this first element. Values are compared with the rest.
	Key []byte
	// Text is the text that contains searches for.
	Text string
	// Null reports whether isNull asks for absence.
	Null bool
}

// containsCost is the price of a search for a text in a value, in comparisons.
const containsCost = 8

// Match implements [Condition].
func (t Test) Match(v *Values) bool {
	v.Compared += max(len(t.Values), 1)
	switch t.Op {
	case "contains":
		v.Compared += containsCost
	case "isNull":
		return !v.Has(t.Attribute, func([]byte) bool { return true }) == t.Null
	case "ne", "hasNone":
		return !v.Has(t.Attribute, t.equals)
	case "hasAll":
		for _, w := range t.Values {
			if !v.Has(t.Attribute, func(h []byte) bool { return bytes.Equal(h, w) }) {
				return false
			}
		}
		return true
	}
	return v.Has(t.Attribute, t.compare)
}

// equals reports whether a value is one of the test's values.
func (t Test) equals(h []byte) bool {
	for _, w := range t.Values {
		if bytes.Equal(h, w) {
			return true
		}
	}
	return false
}

func (t Test) compare(h []byte) bool {
	h, ok := bytes.CutPrefix(h, t.Key)
	if !ok {
		return false
	}
	switch t.Op {
	case "eq", "in", "hasAny":
		return t.equals(h)
	case "lt":
		return bytes.Compare(h, t.Values[0]) < 0
	case "lte":
		return bytes.Compare(h, t.Values[0]) <= 0
	case "gt":
		return bytes.Compare(h, t.Values[0]) > 0
	case "gte":
		return bytes.Compare(h, t.Values[0]) >= 0
	case "startsWith", "first":
		return bytes.HasPrefix(h, t.Values[0])
	case "contains":
		s, _, err := backend.TakeString(h)
		return err == nil && strings.Contains(s, t.Text)
	}
	return false
}

// Equal returns the value that every match has. ok is false if there is none.
func (t Test) Equal() (value []byte, ok bool) {
	switch t.Op {
	case "eq", "in", "hasAny", "hasAll":
		if len(t.Values) == 1 {
			return t.Values[0], true
		}
	}
	return nil, false
}

// Range returns the range that holds every value that the test matches. ok is false if there is
// none.
func (t Test) Range() (r Range, ok bool) {
	if len(t.Values) == 0 {
		return Range{}, false
	}
	if v, one := t.Equal(); one {
		return Range{v, backend.PrefixEnd(v)}, true
	}
	v := t.Values[0]
	switch t.Op {
	case "hasAll", "first":
		r = Range{v, backend.PrefixEnd(v)}
	case "startsWith":
		r = Range{v, backend.StringPrefixEnd(v)}
	case "lt":
		r = Range{nil, v}
	case "lte":
		r = Range{nil, backend.PrefixEnd(v)}
	case "gt":
		r = Range{backend.PrefixEnd(v), nil}
	case "gte":
		r = Range{v, nil}
	default:
		return Range{}, false
	}
	return r.WithPrefix(t.Key), true
}

// Range is a range of encoded values: Start is inclusive and End exclusive, nil is open.
type Range struct{ Start, End []byte }

// Whole reports whether the range is open on both sides.
func (r Range) Whole() bool { return r.Start == nil && r.End == nil }

// Holds reports whether an encoded value is in the range.
func (r Range) Holds(value string) bool {
	return (r.Start == nil || value >= string(r.Start)) && (r.End == nil || value < string(r.End))
}

// And returns the intersection of two ranges.
func (r Range) And(o Range) Range {
	if string(o.Start) > string(r.Start) {
		r.Start = o.Start
	}
	if r.End == nil || o.End != nil && string(o.End) < string(r.End) {
		r.End = o.End
	}
	return r
}

// WithPrefix returns the range with a prefix before both bounds. An open bound becomes a bound of the
// prefix.
func (r Range) WithPrefix(prefix []byte) Range {
	if len(prefix) == 0 {
		return r
	}
	// Clip makes append copy the prefix.
	out := Range{append(slices.Clip(prefix), r.Start...), nil}
	if r.End != nil {
		out.End = append(slices.Clip(prefix), r.End...)
	} else {
		out.End = backend.PrefixEnd(prefix)
	}
	return out
}

// Of returns a stored resource with its index rows.
func Of(k *kind.Kind, b *body.Body) *Values {
	return &Values{Resource: b.Stored, rows: k.Rows.Of(b)}
}

// Package filter parses filters, matches resources against them, and bounds the values that matching resources can
// have.
//
// To add an operator:
//   - parse.go: parser.tests accepts it, and parser.labelTest if it applies to labels.
//   - Test.compare decides whether a value matches, and Test.Match whether a resource without a value does. Test.Range
//     bounds the values that match, so that an index can be used; without a range all rows are tested. testChoice in
//     query/plan/choice.go chooses the rows that are read.
//   - graph/kinds/api.graphqls and derived.graphqls.tmpl offer it to clients, and cmd/sluice/input/field.go to users
//     of the command line.
//   - Two tests make random filters and check the results independently: query/list_oracle_test.go and
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

// Filter is a parsed filter. It consists of conditions that must all be satisfied. The zero value matches everything.
type Filter struct {
	All
	text string
}

// Empty reports whether the filter has no conditions.
func (f *Filter) Empty() bool { return f.All == nil }

// Text returns the canonical form of the filter as JSON; "" for the zero value.
func (f *Filter) Text() string { return f.text }

// MatchesRows reports whether a resource with the given index rows matches.
func (f *Filter) MatchesRows(r *backend.Resource, rows []index.Row) bool {
	return f.Match(&Values{Resource: r, rows: rows})
}

// Anchor returns an indexed attribute and values such that each matching resource has one of the values. The values are
// encoded as in index rows, without duplicates. ok is false if the filter does not require particular values.
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

// Condition is a predicate on the values of a resource: an [All], [Any], [Not] or [Test].
type Condition interface {
	// Match reports whether the resource satisfies the condition.
	Match(v *Values) bool
}

// The connectives. An empty All matches everything; an empty Any matches nothing. None of the elements of an All is an
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

// Range returns the intersection of the ranges of all tests of an attribute, and the number of these tests. The range
// is useful only if a resource has at most one value of the attribute.
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

// Test tests the values of one attribute. A resource without a value matches only the operators ne, hasNone and isNull.
type Test struct {
	Attribute string
	// Op is an operator of the API, or "first", which matches values that begin with one of Values.
	Op string
	// Values are encoded as in index rows, so they compare as bytes.
	Values [][]byte
	// Key restricts the test to values that begin with it, for example to the pairs of one label. Only the rest of such
	// a value is compared with Values. An empty Key does not restrict the test.
	Key []byte
	// Text is the text for which the operator contains searches.
	Text string
	// Null is the argument of isNull: true matches resources without a value.
	Null bool
}

// containsCost is the cost of searching a value for a text, as a number of comparisons.
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

// equals reports whether h is one of the test's values.
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

// Equal returns the only value that a matching resource can have. ok is false if there is no single such value.
func (t Test) Equal() (value []byte, ok bool) {
	switch t.Op {
	case "eq", "in", "hasAny", "hasAll":
		if len(t.Values) == 1 {
			return t.Values[0], true
		}
	}
	return nil, false
}

// Range returns a range that contains all values that match the test. ok is false if the matching values have no bound.
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

// Range is a range of encoded values. Start is inclusive, End is exclusive, and nil means no bound.
type Range struct{ Start, End []byte }

// Whole reports whether the range has no bounds.
func (r Range) Whole() bool { return r.Start == nil && r.End == nil }

// Contains reports whether the range contains an encoded value.
func (r Range) Contains(value string) bool {
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

// WithPrefix returns the range of the values that consist of prefix and a value in r.
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

// Of returns the values of a stored resource, which it computes from the body.
func Of(k *kind.Kind, b *body.Body) *Values {
	return &Values{Resource: b.Stored, rows: k.Rows.Of(b)}
}

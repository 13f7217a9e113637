package query

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
)

// Limits of a filter.
const (
	MaxFilterNodes  = 50
	MaxFilterDepth  = 5
	MaxFilterValues = 100
)

// expr is a condition on one resource.
type expr interface{ match(v *indexedResource) bool }

// all, some and none are the connectives. An empty all holds, an empty some does not.
type (
	all  []expr
	some []expr
	none struct{ expr }
)

func (e all) match(v *indexedResource) bool {
	return !slices.ContainsFunc(e, func(x expr) bool { return !x.match(v) })
}

func (e some) match(v *indexedResource) bool {
	return slices.ContainsFunc(e, func(x expr) bool { return x.match(v) })
}

func (e none) match(v *indexedResource) bool { return !e.expr.match(v) }

// test compares the values of one attribute. An attribute without a value,
// null, is matched by ne and hasNone alone.
type test struct {
	attribute string
	op        string
	// values are in the encoding of index rows, which keeps their order.
	values [][]byte
	// text is what contains and startsWith look for.
	text string
	// null is whether isNull asks for what is absent.
	null bool
}

func (t test) match(v *indexedResource) bool {
	v.tests += max(len(t.values), 1)
	switch t.op {
	case "isNull":
		return !v.has(t.attribute, func([]byte) bool { return true }) == t.null
	case "eq", "in", "hasAny":
		return v.has(t.attribute, t.names)
	case "ne", "hasNone":
		return !v.has(t.attribute, t.names)
	case "hasAll":
		for _, w := range t.values {
			if !v.has(t.attribute, func(h []byte) bool { return bytes.Equal(h, w) }) {
				return false
			}
		}
		return true
	}
	return v.has(t.attribute, t.compare)
}

// names says whether a value is one of those of the test.
func (t test) names(h []byte) bool {
	for _, w := range t.values {
		if bytes.Equal(h, w) {
			return true
		}
	}
	return false
}

func (t test) compare(h []byte) bool {
	switch t.op {
	case "lt":
		return bytes.Compare(h, t.values[0]) < 0
	case "lte":
		return bytes.Compare(h, t.values[0]) <= 0
	case "gt":
		return bytes.Compare(h, t.values[0]) > 0
	case "gte":
		return bytes.Compare(h, t.values[0]) >= 0
	case "startsWith", "first":
		return bytes.HasPrefix(h, t.values[0])
	case "contains":
		s, _, err := backend.TakeString(h)
		return err == nil && strings.Contains(s, t.text)
	}
	return false
}

// indexedResource is a resource with its index rows, as filters and orders see it:
// made of its body, or those of the index in memory.
type indexedResource struct {
	*backend.Resource
	rows []index.Row
	// kind and entry are those of the index in memory, if the resource is there.
	kind  *index.Kind
	entry *index.Entry
	// attribute was asked for last, and number is that of its index.
	attribute string
	number    int
	// encoded is memory for a value that no row has.
	encoded []byte
	// tests is how many values were tested, by those that they were compared with.
	tests int
}

// indexedOf returns a resource with its index rows.
func indexedOf(k *kind.Kind, b *body.Body) *indexedResource {
	return &indexedResource{Resource: b.Stored, rows: k.Rows.Of(b)}
}

// The attributes that are no index rows.
const (
	nameAttribute      = "name"
	namespaceAttribute = "namespace"
	createdAttribute   = "createdAt"
	updatedAttribute   = "updatedAt"
)

// has says whether the resource has a value of an attribute, encoded, that is accepted.
// The value is not to be kept.
func (v *indexedResource) has(attribute string, accepts func(value []byte) bool) bool {
	to := v.encoded[:0]
	switch attribute {
	case nameAttribute:
		v.encoded = backend.AppendString(to, v.Name)
		return accepts(v.encoded)
	case namespaceAttribute:
		v.encoded = backend.AppendString(to, v.Namespace)
		return v.Namespace != "" && accepts(v.encoded) // not of a GLOBAL kind
	case createdAttribute:
		v.encoded = row.AppendTime(to, v.CreatedAt)
		return accepts(v.encoded)
	case updatedAttribute:
		v.encoded = row.AppendTime(to, v.UpdatedAt)
		return accepts(v.encoded)
	}
	if v.entry != nil {
		if v.attribute != attribute {
			v.attribute, v.number = attribute, v.kind.Number(attribute)
		}
		return v.entry.Any(v.number, accepts)
	}
	for i := range v.rows {
		if v.rows[i].Index == attribute && accepts(v.rows[i].Value) {
			return true
		}
	}
	return false
}

// Empty says whether the filter keeps everything.
func (f *Filter) Empty() bool { return f.all == nil }

// Matches reports whether the filter keeps a stored resource. What cannot be read is an error.
func (f *Filter) Matches(k *kind.Kind, r *backend.Resource) (bool, error) {
	b, err := k.Body.Read(r)
	return err == nil && f.match(indexedOf(k, b)), err
}

// MatchesRows reports whether the filter keeps a resource that has these rows.
func (f *Filter) MatchesRows(r *backend.Resource, rows []index.Row) bool {
	return f.match(&indexedResource{Resource: r, rows: rows})
}

package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
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
}

func (t test) match(v *indexedResource) bool {
	have := v.values(t.attribute)
	is := func(h []byte) bool {
		return slices.ContainsFunc(t.values, func(w []byte) bool { return bytes.Equal(h, w) })
	}
	switch t.op {
	case "eq", "in", "hasAny":
		return slices.ContainsFunc(have, is)
	case "ne", "hasNone":
		return !slices.ContainsFunc(have, is)
	case "hasAll":
		return !slices.ContainsFunc(t.values, func(w []byte) bool {
			return !slices.ContainsFunc(have, func(h []byte) bool { return bytes.Equal(h, w) })
		})
	}
	return slices.ContainsFunc(have, t.compare)
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

// indexedResource is a resource with its index rows, as filters and orders see it.
type indexedResource struct {
	*backend.Resource
	rows []backend.Row
}

// indexedOf takes the stored index rows, or makes them anew if another definition made them.
func indexedOf(k *kind, r *backend.Resource) (*indexedResource, error) {
	if r.Fingerprint == k.rows.fingerprint {
		return &indexedResource{Resource: r, rows: r.Rows}, nil
	}
	st, err := stateOf(r)
	if err != nil {
		return nil, err
	}
	return &indexedResource{Resource: r, rows: k.rows.rows(st.meta.Labels, st.root())}, nil
}

// The attributes that are no index rows.
const (
	nameAttribute      = "name"
	namespaceAttribute = "namespace"
	createdAttribute   = "createdAt"
	updatedAttribute   = "updatedAt"
)

// encodeTime is nanoseconds since 1970. What lies before the first or after the
// last instant that they tell apart, in 1677 and 2262, counts as that. What a
// store stamps lies between them.
func encodeTime(t time.Time) []byte {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return backend.AppendInt(nil, t.UnixNano())
}

// values of an attribute, encoded.
func (v *indexedResource) values(attribute string) (out [][]byte) {
	switch attribute {
	case nameAttribute:
		return [][]byte{backend.AppendString(nil, v.Name)}
	case namespaceAttribute:
		return [][]byte{backend.AppendString(nil, v.Namespace)}
	case createdAttribute:
		return [][]byte{encodeTime(v.CreatedAt)}
	case updatedAttribute:
		return [][]byte{encodeTime(v.UpdatedAt)}
	}
	for _, row := range v.rows {
		if row.Index == attribute {
			out = append(out, row.Value)
		}
	}
	return out
}

// filterParser reads the JSON form of a filter by the kind's descriptor.
type filterParser struct {
	kind  *kind
	nodes int
}

// filterOf reads a filter; nil keeps everything. Its text is the same
// for filters that say the same in the same words, whatever is null.
func filterOf(k *kind, value any) (filter, error) {
	if value == nil {
		return filter{}, nil
	}
	tree, err := readObject(value)
	if err != nil {
		return filter{}, badInput("filter", "filter is not acceptable: %v", err)
	}
	if tree == nil {
		return filter{}, nil
	}
	dropNulls(tree, maxTreeDepth)
	p := filterParser{kind: k}
	e, err := p.object(tree, "filter", 1)
	if err != nil || len(e) == 0 {
		return filter{}, err
	}
	canonical, err := json.Marshal(tree)
	return filter{e, string(canonical)}, err
}

// object reads one filter object: all its members must hold.
func (p *filterParser) object(tree map[string]any, path string, depth int) (all, error) {
	if depth > MaxFilterDepth {
		return nil, limited(path, "and, or and not are nested deeper than %d", MaxFilterDepth)
	}
	var out all
	for _, name := range sortedKeys(tree) {
		at := path + "." + name
		e, err := p.member(name, tree[name], at, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	return out, nil
}

func (p *filterParser) member(name string, value any, at string, depth int) (all, error) {
	switch name {
	case "and", "or":
		list, err := p.objects(value, at, depth)
		if name == "or" && err == nil {
			return all{some(list)}, nil
		}
		return all(list), err
	case "not":
		m, err := asObject(value, at)
		if err != nil {
			return nil, err
		}
		e, err := p.object(m, at, depth+1)
		return all{none{e}}, err
	case "labels", "conditions":
		return p.pairs(name, value, at)
	case nameAttribute, namespaceAttribute:
		return p.tests(name, &descriptor.Field{Type: descriptor.TypeString}, value, at)
	case createdAttribute, updatedAttribute:
		return p.tests(name, nil, value, at)
	case "spec", "status":
		return p.nested(name, value, at)
	}
	return nil, badInput(at, "%s is not an attribute that filters of kind %s know", at, p.kind.Name)
}

func (p *filterParser) objects(value any, at string, depth int) ([]expr, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, badInput(at, "%s must be a list of filters", at)
	}
	var out []expr
	for i, e := range list {
		m, err := asObject(e, at)
		if err != nil {
			return nil, err
		}
		x, err := p.object(m, fmt.Sprintf("%s[%d]", at, i), depth+1)
		if err != nil {
			return nil, err
		}
		if err := p.count(at); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// nested descends to the index at a path.
func (p *filterParser) nested(path string, value any, at string) (all, error) {
	m, err := asObject(value, at)
	if err != nil {
		return nil, err
	}
	if idx := p.kind.rows.index(path); idx != nil {
		return p.tests(path, idx.field, value, at)
	}
	var out all
	for _, name := range sortedKeys(m) {
		e, err := p.nested(path+"."+name, m[name], at+"."+name)
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	if f, _ := p.kind.FieldAt(path); len(m) > 0 && len(out) == 0 && f == nil && path != "spec" && path != "status" {
		return nil, badInput(at, "%s is not an indexed field of kind %s", at, p.kind.Name)
	}
	return out, nil
}

// tests reads the operators of one attribute; a nil field is a time.
func (p *filterParser) tests(attribute string, f *descriptor.Field, value any, at string) (all, error) {
	m, err := asObject(value, at)
	if err != nil {
		return nil, err
	}
	var out all
	for _, op := range sortedKeys(m) {
		if err := p.count(at); err != nil {
			return nil, err
		}
		t := test{attribute: attribute, op: op}
		values := []any{m[op]}
		if list, ok := m[op].([]any); ok {
			values = list
		}
		if len(values) > MaxFilterValues {
			return nil, limited(at+"."+op, "more than %d values", MaxFilterValues)
		}
		for _, v := range values {
			encoded := encodeOperand(f, v)
			if encoded == nil {
				return nil, badInput(at+"."+op, "%s.%s: the value is not one that this attribute can have", at, op)
			}
			t.values = append(t.values, encoded)
		}
		t.text, _ = m[op].(string)
		switch op {
		case "startsWith":
			t.values[0] = backend.AppendStringPrefix(nil, t.text)
		case "eq", "ne", "in", "lt", "lte", "gt", "gte", "contains", "hasAll", "hasAny", "hasNone":
		default:
			return nil, badInput(at+"."+op, "%s is not an operator", op)
		}
		out = append(out, t)
	}
	return out, nil
}

func encodeOperand(f *descriptor.Field, v any) []byte {
	if f != nil {
		return encode(f, v)
	}
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil
	}
	return encodeTime(t)
}

// pairs reads tests of labels, {key, eq | in | exists}, and of conditions, {type, status}.
func (p *filterParser) pairs(name string, value any, at string) (all, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, badInput(at, "%s must be a list", at)
	}
	var out all
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		m, err := asObject(e, at)
		if err != nil {
			return nil, err
		}
		if err := p.count(at); err != nil {
			return nil, err
		}
		x, err := pairTest(name, m, at)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func pairTest(name string, m map[string]any, at string) (expr, error) {
	first, eq, index := "key", "eq", labelIndex
	if name == "conditions" {
		first, eq, index = "type", "status", conditionIndex
	}
	key, _ := m[first].(string)
	exists := test{attribute: index, op: "first", values: [][]byte{backend.AppendString(nil, key)}}
	if s, ok := m[eq].(string); ok && len(m) == 2 {
		return test{attribute: index, op: "eq", values: [][]byte{pair(key, s)}}, nil
	}
	if list, ok := m["in"].([]any); ok && len(m) == 2 && name == "labels" && len(list) <= MaxFilterValues {
		t := test{attribute: index, op: "in"}
		for _, v := range list {
			s, _ := v.(string)
			t.values = append(t.values, pair(key, s))
		}
		return t, nil
	}
	if want, ok := m["exists"].(bool); ok && len(m) == 2 && name == "labels" {
		if !want {
			return none{exists}, nil
		}
		return exists, nil
	}
	if len(m) == 1 {
		return exists, nil
	}
	return nil, badInput(at, "%s: give %s and at most one of eq, in (at most %d values) and exists", at, first, MaxFilterValues)
}

func (p *filterParser) count(at string) error {
	if p.nodes++; p.nodes > MaxFilterNodes {
		return limited(at, "more than %d conditions", MaxFilterNodes)
	}
	return nil
}

func asObject(value any, at string) (map[string]any, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, badInput(at, "%s must be an object", at)
	}
	return m, nil
}

// isTest says whether the condition is one test of one attribute for one value.
func (e all) isTest() bool {
	if len(e) != 1 {
		return false
	}
	if inner, nested := e[0].(all); nested {
		return inner.isTest()
	}
	t, ok := e[0].(test)
	return ok && len(t.values) == 1
}

// candidate is a run of index rows that holds everything that a filter can match.
type candidate struct {
	index      string
	start, end []byte
	// exact: all rows have one value, so that they are in the order of the names.
	exact bool
}

// candidate finds the best run for a filter, if any serves.
func (e all) candidate() (best candidate, ok bool) {
	for _, x := range e {
		t, isTest := x.(test)
		if inner, nested := x.(all); nested {
			if c, found := inner.candidate(); found && (!ok || c.exact && !best.exact) {
				best, ok = c, true
			}
			continue
		}
		if !isTest {
			continue
		}
		if c, found := t.candidate(); found && (!ok || c.exact && !best.exact) {
			best, ok = c, true
		}
	}
	return best, ok
}

func (t test) candidate() (candidate, bool) {
	switch t.attribute {
	case nameAttribute, namespaceAttribute, createdAttribute, updatedAttribute:
		return candidate{}, false
	}
	if len(t.values) == 0 {
		return candidate{}, false
	}
	c, v := candidate{index: t.attribute}, t.values[0]
	switch {
	case t.op == "eq", (t.op == "in" || t.op == "hasAny") && len(t.values) == 1, t.op == "hasAll":
		c.start, c.end, c.exact = v, backend.PrefixEnd(v), true
	case t.op == "startsWith":
		c.start, c.end = v, backend.StringPrefixEnd(v)
	case t.op == "first":
		c.start, c.end = v, backend.PrefixEnd(v)
	case t.op == "lt":
		c.end = v
	case t.op == "lte":
		c.end = backend.PrefixEnd(v)
	case t.op == "gt":
		c.start = backend.PrefixEnd(v)
	case t.op == "gte":
		c.start = v
	default:
		return candidate{}, false
	}
	return c, true
}

// looksAtUpdated says whether the filter has a test of updatedAt.
func (f *filter) looksAtUpdated() bool { return uses(f.all, updatedAttribute) }

// empty says whether the filter keeps everything.
func (f *filter) empty() bool { return f.all == nil }

// matches says whether the filter keeps a resource, by its rows or, if another
// definition made them, by its body: then what cannot be read is an error.
func (f *filter) matches(k *kind, r *backend.Resource) (bool, error) {
	v, err := indexedOf(k, r)
	return err == nil && f.match(v), err
}

// matchesRows says whether the filter keeps a resource that has these rows.
func (f *filter) matchesRows(r *backend.Resource, rows []backend.Row) bool {
	return f.match(&indexedResource{Resource: r, rows: rows})
}

// uses says whether a filter looks at an attribute.
func uses(e expr, attribute string) bool {
	switch e := e.(type) {
	case all:
		return usesAny(e, attribute)
	case some:
		return usesAny(e, attribute)
	case none:
		return uses(e.expr, attribute)
	case test:
		return e.attribute == attribute
	}
	return false
}

func usesAny(list []expr, attribute string) bool {
	for _, e := range list {
		if uses(e, attribute) {
			return true
		}
	}
	return false
}

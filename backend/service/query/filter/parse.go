package filter

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// parser reads the JSON form of a filter by the kind's descriptor.
type parser struct {
	kind  *kind.Kind
	nodes int
}

// Parse reads a filter; nil matches everything. The text of filters that differ only in
// nulls and in the order of fields is the same. A null field counts as left out. A null operator, or an
// object without an operator, is an error: it would match more than a client meant that
// left a variable undefined.
func Parse(k *kind.Kind, value any) (Filter, error) {
	if value == nil {
		return Filter{}, nil
	}
	tree, err := jsontree.Object(value)
	if err != nil {
		return Filter{}, failure.BadInput("filter", "filter is not acceptable: %v", err)
	}
	if tree == nil {
		return Filter{}, nil
	}
	p := parser{kind: k}
	e, err := p.object(tree, "filter", 1)
	if err != nil || len(e) == 0 {
		return Filter{}, err
	}
	jsontree.DropNulls(tree)
	canonical, err := json.Marshal(tree)
	return Filter{e, string(canonical)}, err
}

// object reads a filter object, whose members must all hold.
func (p *parser) object(tree map[string]any, path string, depth int) (All, error) {
	if depth > MaxDepth {
		return nil, failure.Limited(path, "and, or and not are nested deeper than %d", MaxDepth)
	}
	var out All
	for _, name := range jsontree.Keys(tree) {
		if tree[name] == nil {
			continue
		}
		at := path + "." + name
		e, err := p.member(name, tree[name], at, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	return out, nil
}

func (p *parser) member(name string, value any, at string, depth int) (All, error) {
	switch name {
	case "and", "or":
		list, err := p.objects(value, at, depth)
		if name == "and" || err != nil {
			return slices.Concat(list...), err
		}
		var one Any
		for _, e := range list {
			one = append(one, e)
		}
		return All{one}, nil
	case "not":
		m, err := asObject(value, at)
		if err != nil {
			return nil, err
		}
		e, err := p.object(m, at, depth+1)
		return All{Not{e}}, err
	case "labels", "conditions":
		return p.pairs(name, value, at)
	case Name, Namespace:
		return p.tests(name, &descriptor.Field{Type: descriptor.TypeString}, value, at)
	case CreatedAt, UpdatedAt, DeletionRequestedAt:
		return p.tests(name, nil, value, at)
	case "spec", "status":
		return p.nested(name, value, at)
	}
	return nil, failure.BadInput(at, "%s is not an attribute that filters of kind %s know", at, p.kind.Name)
}

func (p *parser) objects(value any, at string, depth int) ([]All, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, failure.BadInput(at, "%s must be a list of filters", at)
	}
	var out []All
	for i, e := range list {
		m, err := asObject(e, at)
		if err != nil {
			return nil, err
		}
		before := p.nodes
		x, err := p.object(m, failure.Element(at, i), depth+1)
		if err != nil {
			return nil, err
		}
		if p.nodes == before { // an empty filter counts as a condition
			if err := p.count(at); err != nil {
				return nil, err
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// nested descends to the index at a path.
func (p *parser) nested(path string, value any, at string) (All, error) {
	m, err := asObject(value, at)
	if err != nil {
		return nil, err
	}
	if idx := p.kind.Rows.Index(path); idx != nil {
		return p.tests(path, idx.Field, value, at)
	}
	var out All
	for _, name := range jsontree.Keys(m) {
		if m[name] == nil {
			continue
		}
		e, err := p.nested(path+"."+name, m[name], at+"."+name)
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	if f, _ := p.kind.FieldAt(path); len(m) > 0 && len(out) == 0 && f == nil && path != "spec" && path != "status" {
		return nil, failure.BadInput(at, "%s is not an indexed field of kind %s", at, p.kind.Name)
	}
	return out, nil
}

// tests reads the operators of one attribute; a nil field is a time.
func (p *parser) tests(attribute string, f *descriptor.Field, value any, at string) (All, error) {
	m, err := asObject(value, at)
	if err != nil {
		return nil, err
	}
	if len(m) == 0 {
		return nil, noOperator(at)
	}
	var out All
	for _, op := range jsontree.Keys(m) {
		if err := p.count(at); err != nil {
			return nil, err
		}
		if m[op] == nil {
			return nil, nullOperator(at, op)
		}
		if op == "isNull" {
			want, ok := m[op].(bool)
			if !ok {
				return nil, failure.BadInput(at+"."+op, "%s.isNull: true or false is accepted", at)
			}
			out = append(out, Test{Attribute: attribute, Op: op, Null: want})
			continue
		}
		t := Test{Attribute: attribute, Op: op}
		values, err := operands(m[op], at+"."+op)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			encoded, ok := encodeOperand(f, v)
			if !ok {
				return nil, noOperand(f, v, at+"."+op)
			}
			t.Values = append(t.Values, encoded)
		}
		t.Text, _ = m[op].(string)
		switch op {
		case "startsWith":
			t.Values[0] = backend.AppendStringPrefix(nil, t.Text)
		case "notIn":
			t.Op = "hasNone"
		case "eq", "ne", "in", "lt", "lte", "gt", "gte", "contains", "hasAll", "hasAny", "hasNone":
		default:
			return nil, failure.BadInput(at+"."+op, "%s is not an operator", op)
		}
		out = append(out, t)
	}
	return out, nil
}

// operands returns the values of an operator: the elements of a list, or the value itself.
func operands(v any, at string) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) > MaxValues {
		return nil, failure.Limited(at, "more than %d values", MaxValues)
	}
	return list, nil
}

// noOperand returns the error for a value that no index row can have.
func noOperand(f *descriptor.Field, v any, at string) error {
	if _, text := v.(string); text && f != nil && f.Type == descriptor.TypeString {
		return failure.BadInput(at, "%s: at most %d characters are accepted; filters find no longer values", at, kind.MaxIndexChars)
	}
	return failure.BadInput(at, "%s: the value is not one that this attribute can have", at)
}

// noOperator returns the error for an object without an operator.
func noOperator(at string) error {
	return failure.BadInput(at, "%s has no operator; give at least one, or leave %s out (a variable that is not defined counts as left out)", at, at)
}

// nullOperator returns the error for an operator that is null.
func nullOperator(at, op string) error {
	return failure.BadInput(at+"."+op, "%s.%s is null; give a value, use isNull to ask for absence, or leave the operator out", at, op)
}

// encodeOperand returns a value as index rows have it; ok is false if none can have it. A nil field is a time.
func encodeOperand(f *descriptor.Field, v any) (encoded []byte, ok bool) {
	if f != nil {
		return kind.AppendValue(nil, f, v)
	}
	s, _ := v.(string)
	t, err := descriptor.ParseTime(s)
	return kind.AppendTime(nil, t), err == nil
}

// pairs reads tests of labels and of conditions.
func (p *parser) pairs(name string, value any, at string) (All, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, failure.BadInput(at, "%s must be a list", at)
	}
	var out All
	for i, e := range list {
		at := failure.Element(at, i)
		m, err := asObject(e, at)
		if err != nil {
			return nil, err
		}
		if err := p.count(at); err != nil {
			return nil, err
		}
		var x All
		if name == "labels" {
			x, err = labelTest(m, at)
		} else {
			x, err = p.conditionTests(m, at)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x...)
	}
	return out, nil
}

// Limits in characters of a label's key, with its prefix, and of a condition's type, as in Kubernetes.
const (
	maxLabelKey      = 317
	MaxConditionType = 316
)

// labelTest reads a test of a label: its key, and one operator.
func labelTest(m map[string]any, at string) (All, error) {
	key, _ := m["key"].(string)
	if n := utf8.RuneCountInString(key); n == 0 || n > maxLabelKey {
		return nil, failure.BadInput(
			failure.Join(at, "key"), "%s.key: 1 to %d characters are accepted", at, maxLabelKey,
		)
	}
	var ops []string
	for _, op := range jsontree.Keys(m) {
		if op == "key" {
			continue
		}
		if m[op] == nil {
			return nil, nullOperator(at, op)
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return nil, noOperator(at)
	}
	if len(ops) > 1 {
		return nil, failure.BadInput(at, "%s: give one operator; %s and %s are here", at, ops[0], ops[1])
	}
	values, err := operands(m[ops[0]], at+"."+ops[0])
	if err != nil {
		return nil, err
	}
	t := Test{Attribute: kind.LabelIndex, Op: ops[0]}
	for _, v := range values {
		s, _ := v.(string)
		t.Values = append(t.Values, kind.Pair(key, s))
	}
	switch ops[0] {
	case "eq", "in", "ne":
		return All{t}, nil
	case "notIn":
		t.Op = "hasNone"
		return All{t}, nil
	case "isNull":
		isNull, _ := m["isNull"].(bool)
		return All{keyExists(kind.LabelIndex, key, !isNull)}, nil
	}
	return nil, failure.BadInput(at+"."+ops[0], "%s is not an operator of a label; eq, ne, in, notIn and isNull are", ops[0])
}

// conditionTests reads the tests of a condition: its type, and optionally its status and reason.
func (p *parser) conditionTests(m map[string]any, at string) (All, error) {
	typ, _ := m["type"].(string)
	if n := utf8.RuneCountInString(typ); n == 0 || n > MaxConditionType {
		return nil, failure.BadInput(
			failure.Join(at, "type"), "%s.type: 1 to %d characters are accepted", at, MaxConditionType,
		)
	}
	var out All
	for _, of := range []struct{ name, index string }{{"status", kind.ConditionIndex}, {"reason", kind.ReasonIndex}} {
		if m[of.name] == nil {
			continue
		}
		tests, err := p.tests(
			of.index, &descriptor.Field{Type: descriptor.TypeString}, m[of.name], failure.Join(at, of.name),
		)
		if err != nil {
			return nil, err
		}
		for _, t := range tests {
			out = append(out, pairTest(t.(Test), typ))
		}
	}
	if len(out) == 0 {
		out = All{keyExists(kind.ConditionIndex, typ, true)}
	}
	return out, nil
}

// pairTest rewrites a string test to match the second element of the pairs whose first is key.
func pairTest(t Test, key string) Condition {
	prefix := backend.AppendString(nil, key)
	switch t.Op {
	case "isNull":
		return keyExists(t.Attribute, key, !t.Null)
	case "eq", "ne", "in", "hasNone":
		for i, v := range t.Values {
			t.Values[i] = append(slices.Clip(prefix), v...)
		}
	default:
		t.Key = prefix
	}
	return t
}

// keyExists returns the test for a label with a key, or a condition of a type, or for there being none.
func keyExists(index, key string, there bool) Condition {
	t := Test{Attribute: index, Op: "first", Values: [][]byte{backend.AppendString(nil, key)}}
	if !there {
		return Not{t}
	}
	return t
}

func (p *parser) count(at string) error {
	if p.nodes++; p.nodes > MaxNodes {
		return failure.Limited(at, "more than %d conditions", MaxNodes)
	}
	return nil
}

func asObject(value any, at string) (map[string]any, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, failure.BadInput(at, "%s must be an object", at)
	}
	return m, nil
}

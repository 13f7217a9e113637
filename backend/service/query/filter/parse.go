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

// parser parses the JSON of a filter for one kind.
type parser struct {
	kind  *kind.Kind
	nodes int
	// names selects the names of fields in errors.
	names failure.FieldNames
}

// Parse parses a filter. nil matches everything. Filters that differ only in nulls and in the order of fields have the
// same canonical text. A null field counts as absent. A null operator, or an object without an operator, is an error.
// Otherwise the filter of a client that leaves a variable undefined would match everything. Errors use the given names
// of fields.
func Parse(k *kind.Kind, value any, names failure.FieldNames) (Filter, error) {
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
	p := parser{kind: k, names: names}
	e, err := p.object(tree, failure.At("filter"), 1)
	if err != nil || len(e) == 0 {
		return Filter{}, err
	}
	jsontree.DropNulls(tree)
	canonical, err := json.Marshal(tree)
	return Filter{e, string(canonical)}, err
}

// object parses an object of a filter. All of its members must match.
func (p *parser) object(tree map[string]any, at *failure.Path, depth int) (All, error) {
	if depth > MaxDepth {
		return nil, p.limited(at, "and, or and not are nested deeper than %d", MaxDepth)
	}
	var out All
	for _, name := range jsontree.Keys(tree) {
		if tree[name] == nil {
			continue
		}
		e, err := p.member(name, tree[name], at.Name(name), depth)
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	return out, nil
}

func (p *parser) member(name string, value any, at *failure.Path, depth int) (All, error) {
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
		m, err := p.asObject(value, at)
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
	case "spec":
		return p.nested(name, value, part{at, p.kind.Kind.Spec})
	case "status":
		return p.nested(name, value, part{at, p.kind.Kind.Status})
	}
	return nil, p.refuse(at, "%s is not an attribute that filters of kind %s know", p.kind.Name)
}

func (p *parser) objects(value any, at *failure.Path, depth int) ([]All, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, p.refuse(at, "%s must be a list of filters")
	}
	var out []All
	for i, e := range list {
		m, err := p.asObject(e, at)
		if err != nil {
			return nil, err
		}
		before := p.nodes
		x, err := p.object(m, at.Element(i), depth+1)
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

// part is a position in a filter, within spec or status.
type part struct {
	at *failure.Path
	// of is the shape of the object at the position; nil if it is not known.
	of *descriptor.Shape
}

// field returns the position of a field of the object.
func (p part) field(name string) part {
	if p.of != nil {
		if f := p.of.Field(name); f != nil {
			return part{p.at.Field(f), f.Shape}
		}
	}
	return part{at: p.at.Name(name)}
}

// nested parses the part of a filter at a stored path, down to the tests of indexed fields.
func (p *parser) nested(path string, value any, within part) (All, error) {
	at := within.at
	m, err := p.asObject(value, at)
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
		e, err := p.nested(path+"."+name, m[name], within.field(name))
		if err != nil {
			return nil, err
		}
		out = append(out, e...)
	}
	if f, _ := p.kind.FieldAt(path); len(m) > 0 && len(out) == 0 && f == nil && path != "spec" && path != "status" {
		return nil, p.refuse(at, "%s is not an indexed field of kind %s", p.kind.Name)
	}
	return out, nil
}

// tests parses the operators for an attribute. f is the field of the attribute; nil for a time in the metadata.
func (p *parser) tests(attribute string, f *descriptor.Field, value any, at *failure.Path) (All, error) {
	m, err := p.asObject(value, at)
	if err != nil {
		return nil, err
	}
	if len(m) == 0 {
		return nil, p.noOperator(at)
	}
	var out All
	for _, op := range jsontree.Keys(m) {
		if err := p.count(at); err != nil {
			return nil, err
		}
		if m[op] == nil {
			return nil, p.nullOperator(at.Name(op))
		}
		if op == "isNull" {
			want, ok := m[op].(bool)
			if !ok {
				return nil, p.refuse(at.Name(op), "%s: true or false is accepted")
			}
			out = append(out, Test{Attribute: attribute, Op: op, Null: want})
			continue
		}
		t := Test{Attribute: attribute, Op: op}
		values, err := p.operands(m[op], at.Name(op))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			encoded, ok := encodeOperand(f, v)
			if !ok {
				return nil, p.noOperand(f, v, at.Name(op))
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
			return nil, failure.BadInput(at.Name(op).Text(p.names), "%s is not an operator", op)
		}
		out = append(out, t)
	}
	return out, nil
}

// operands returns the operands of an operator: the elements of v if it is a list, otherwise v itself.
func (p *parser) operands(v any, at *failure.Path) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) > MaxValues {
		return nil, p.limited(at, "more than %d values", MaxValues)
	}
	return list, nil
}

// noOperand returns the error for an operand that is not a possible value of the attribute.
func (p *parser) noOperand(f *descriptor.Field, v any, at *failure.Path) error {
	if _, text := v.(string); text && f != nil && f.Type == descriptor.TypeString {
		return p.refuse(at, "%s: at most %d characters are accepted; filters find no longer values", kind.MaxIndexChars)
	}
	return p.refuse(at, "%s: the value is not one that this attribute can have")
}

// noOperator returns the error for an object without an operator.
func (p *parser) noOperator(at *failure.Path) error {
	return p.refuse(at, "%[1]s has no operator; give at least one, or leave %[1]s out (a variable that is not defined counts as left out)")
}

// nullOperator returns the error for an operator that is null.
func (p *parser) nullOperator(at *failure.Path) error {
	return p.refuse(at, "%s is null; give a value, use isNull to ask for absence, or leave the operator out")
}

// encodeOperand encodes a value as in index rows. ok is false if it is not a possible value of the field. A nil field
// means a time in the metadata.
func encodeOperand(f *descriptor.Field, v any) (encoded []byte, ok bool) {
	if f != nil {
		return kind.AppendValue(nil, f, v)
	}
	s, _ := v.(string)
	t, err := descriptor.ParseTime(s)
	return kind.AppendTime(nil, t), err == nil
}

// pairs parses the list of the tests of labels or of conditions.
func (p *parser) pairs(name string, value any, at *failure.Path) (All, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, p.refuse(at, "%s must be a list")
	}
	var out All
	for i, e := range list {
		at := at.Element(i)
		m, err := p.asObject(e, at)
		if err != nil {
			return nil, err
		}
		if err := p.count(at); err != nil {
			return nil, err
		}
		var x All
		if name == "labels" {
			x, err = p.labelTest(m, at)
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

// The maximum numbers of characters in the key of a label, including its prefix, and in the type of a condition, as in
// Kubernetes.
const (
	maxLabelKey      = 317
	MaxConditionType = 316
)

// labelTest parses the test of a label: a key and operators.
func (p *parser) labelTest(m map[string]any, at *failure.Path) (All, error) {
	key, _ := m["key"].(string)
	if n := utf8.RuneCountInString(key); n == 0 || n > maxLabelKey {
		return nil, p.refuse(at.Name("key"), "%s: 1 to %d characters are accepted", maxLabelKey)
	}
	var ops []string
	for _, op := range jsontree.Keys(m) {
		if op == "key" {
			continue
		}
		if m[op] == nil {
			return nil, p.nullOperator(at.Name(op))
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return nil, p.noOperator(at)
	}
	if len(ops) > 1 {
		return nil, p.refuse(at, "%s: give one operator; %s and %s are here", ops[0], ops[1])
	}
	values, err := p.operands(m[ops[0]], at.Name(ops[0]))
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
	return nil, failure.BadInput(
		at.Name(ops[0]).Text(p.names), "%s is not an operator of a label; eq, ne, in, notIn and isNull are", ops[0],
	)
}

// conditionTests parses the tests of a condition: its type, and optionally its status and reason.
func (p *parser) conditionTests(m map[string]any, at *failure.Path) (All, error) {
	typ, _ := m["type"].(string)
	if n := utf8.RuneCountInString(typ); n == 0 || n > MaxConditionType {
		return nil, p.refuse(at.Name("type"), "%s: 1 to %d characters are accepted", MaxConditionType)
	}
	var out All
	for _, of := range []struct{ name, index string }{{"status", kind.ConditionIndex}, {"reason", kind.ReasonIndex}} {
		if m[of.name] == nil {
			continue
		}
		tests, err := p.tests(
			of.index, &descriptor.Field{Type: descriptor.TypeString}, m[of.name], at.Name(of.name),
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

// pairTest returns a test of pairs whose first element is key. It applies t to the second element.
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

// keyExists returns the condition that a resource has a label with a key, or a condition with a type. If the argument
// there is false, it returns the opposite condition.
func keyExists(index, key string, there bool) Condition {
	t := Test{Attribute: index, Op: "first", Values: [][]byte{backend.AppendString(nil, key)}}
	if !there {
		return Not{t}
	}
	return t
}

func (p *parser) count(at *failure.Path) error {
	if p.nodes++; p.nodes > MaxNodes {
		return p.limited(at, "more than %d conditions", MaxNodes)
	}
	return nil
}

// refuse returns BAD_USER_INPUT for the value at a path. The path is the first argument of the format.
func (p *parser) refuse(at *failure.Path, format string, args ...any) error {
	path := at.Text(p.names)
	return failure.BadInput(path, format, append([]any{path}, args...)...)
}

// limited returns LIMIT_EXCEEDED for the value at a path.
func (p *parser) limited(at *failure.Path, format string, limit int) error {
	return failure.Limited(at.Text(p.names), format, limit)
}

func (p *parser) asObject(value any, at *failure.Path) (map[string]any, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, p.refuse(at, "%s must be an object")
	}
	return m, nil
}

// Package row derives from a resource what makes it findable: its index rows and its
// references, by the definition of its kind.
package row

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/timestamp"
)

// The indexes that every kind has. Labels hold (key, value), conditions (type, status).
const (
	LabelIndex     = "labels"
	ConditionIndex = "conditions"
)

// MaxIndexChars is the most characters of an indexed string. A longer one, which only a
// status can hold, has no row.
const MaxIndexChars = 256

// maxIndexBytes is the most bytes that such a string, or a type and status of a condition, has.
const maxIndexBytes = 1024

// Definition says which index rows and references the resources of a kind have.
type Definition struct {
	indexes    []index
	references []descriptor.Reference
	// Fingerprint tells definitions apart; resources carry that of the one that made
	// their rows.
	Fingerprint string
}

// index is a field that has index rows: a [descriptor.Index], or a reference,
// which is one too.
type index struct {
	path  string
	steps []string
	Field *descriptor.Field
	// Sortable says that orders may name it.
	Sortable bool
	// Many says that a resource may have several values.
	Many bool
}

// Compile finds the fields that the indexes and references of a kind name.
func Compile(k *descriptor.Kind) (*Definition, error) {
	d := &Definition{references: k.References}
	add := func(path string, sortable bool) error {
		if d.Index(path) != nil {
			return nil
		}
		f, many := k.FieldAt(path)
		if f == nil || f.Type == descriptor.TypeObject || f.Type == descriptor.TypeMap {
			return fmt.Errorf("index %s: no scalar field is there", path)
		}
		d.indexes = append(d.indexes, index{path: path, steps: strings.Split(path, "."), Field: f, Sortable: sortable, Many: many})
		return nil
	}
	for _, i := range k.Indexes {
		if err := add(i.Path, i.Sortable); err != nil {
			return nil, err
		}
	}
	for _, r := range k.References {
		if err := add(r.Path, false); err != nil {
			return nil, err
		}
	}
	d.Fingerprint = fingerprint(d.indexes)
	return d, nil
}

// Indexes are the names of all indexes, with those that every kind has, and of those
// that orders may name.
func (d *Definition) Indexes() (all, sortable []string) {
	all = []string{LabelIndex, ConditionIndex}
	for i := range d.indexes {
		all = append(all, d.indexes[i].path)
		if d.indexes[i].Sortable {
			sortable = append(sortable, d.indexes[i].path)
		}
	}
	return all, sortable
}

// Index finds an index by its path, nil if there is none.
func (d *Definition) Index(path string) *index {
	for i := range d.indexes {
		if d.indexes[i].path == path {
			return &d.indexes[i]
		}
	}
	return nil
}

// fingerprint tells definitions of index rows apart: fields, types, effective
// defaults and the order of enums. It is short, since each resource has it twice.
func fingerprint(indexes []index) string {
	var lines []string
	for _, i := range indexes {
		line := fmt.Sprintln(i.path, i.Field.Type, i.Field.List, i.Field.Default)
		if i.Field.Enum != nil {
			for _, v := range i.Field.Enum.Values {
				line += fmt.Sprintln("-", v.Stored)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	h := sha256.Sum256([]byte("rows 3\n" + strings.Join(lines, "")))
	return base64.RawURLEncoding.EncodeToString(h[:6])
}

// Of returns the index rows of a resource, no two equal, by its labels and its body:
// the object with its spec and status. Null has no row, and neither has a text that
// is longer than an index takes.
func (d *Definition) Of(labels map[string]string, root map[string]any) []backend.Row {
	spec, _ := root["spec"].(map[string]any)
	status, _ := root["status"].(map[string]any)
	out := d.fields(labels, spec, status, nil)
	if conditions, ok := status[ConditionIndex].([]any); ok {
		of := rows{all: out, from: len(out)}
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok {
				typ, _ := m["type"].(string)
				value, _ := m["status"].(string)
				if len(typ)+len(value) <= maxIndexBytes {
					of.add(ConditionIndex, Pair(typ, value))
				}
			}
		}
		of.sort()
		out = of.all
	}
	return out
}

// AfterSpec returns the index rows of a resource whose labels and spec may have
// changed and whose status has not: before are its rows until then, made by this
// definition. Those of the status are among them.
func (d *Definition) AfterSpec(labels map[string]string, spec map[string]any, before []backend.Row) []backend.Row {
	return appendIndex(d.fields(labels, spec, nil, before), before, ConditionIndex)
}

// fields returns the rows of labels and of declared indexes. Those of the status are
// taken from before, if it is given, and of the others those that are as before.
func (d *Definition) fields(labels map[string]string, spec, status map[string]any, before []backend.Row) []backend.Row {
	of := rows{all: make([]backend.Row, 0, max(len(before), len(labels)+len(d.indexes))), before: before}
	var space [16]string
	keys := space[:0]
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		of.add(LabelIndex, appendPair(of.scratch[:0], key, labels[key]))
	}
	for i := range d.indexes {
		idx := &d.indexes[i]
		of.from, of.seen = len(of.all), nil
		switch ofStatus := idx.steps[0] == "status"; {
		case ofStatus && before != nil:
			of.all = appendIndex(of.all, before, idx.path)
		case ofStatus:
			of.walk(idx, status)
			of.sort()
		default:
			of.walk(idx, spec)
		}
	}
	return of.all
}

// Check refuses a state with more index rows than a resource may have, and
// names the index that has most of them.
func Check(key backend.Key, rows []backend.Row) error {
	if len(rows) <= backend.MaxRows {
		return nil
	}
	count := map[string]int{}
	most := rows[0].Index
	for _, r := range rows {
		if count[r.Index]++; count[r.Index] > count[most] {
			most = r.Index
		}
	}
	path := most
	switch most {
	case LabelIndex:
		path = "metadata.labels"
	case ConditionIndex:
		path = "status.conditions"
	}
	e := &failure.Error{
		Code: failure.CodeLimitExceeded, Path: path, Limit: backend.MaxRows,
		Message: fmt.Sprintf("%s: the resource has %d different values in indexed fields, %d of them here; at most %d are accepted", path, len(rows), count[most], backend.MaxRows),
	}
	return e.At(key)
}

// Pair is the value of a label or of a condition: its key or type, then its value
// or status.
func Pair(a, b string) []byte { return appendPair(nil, a, b) }

func appendPair(dst []byte, a, b string) []byte {
	return backend.AppendString(backend.AppendString(dst, a), b)
}

// walk visits every value of the index in a tree, from a step of its path on, and the
// effective default of a field that is absent from an object that is there.
func (i *index) walk(v any, step int, visit func(any)) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			i.walk(e, step, visit)
		}
		return
	}
	if step == len(i.steps) {
		visit(v)
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	next, ok := m[i.steps[step]]
	switch {
	case ok:
		i.walk(next, step+1, visit)
	case step == len(i.steps)-1 && i.Field.Default != nil:
		i.walk(i.Field.Default, step+1, visit)
	}
}

// Encode is the place of a value in an index: strings by bytes, enums by
// declaration. Nil means that the value has none.
func Encode(f *descriptor.Field, v any) []byte {
	out, ok := appendValue(nil, f, v)
	if !ok {
		return nil
	}
	return out
}

// appendValue appends what [Encode] returns; false says that the value has no place.
func appendValue(dst []byte, f *descriptor.Field, v any) ([]byte, bool) {
	switch v := v.(type) {
	case bool:
		return backend.AppendBool(dst, v), true
	case json.Number:
		return appendNumber(dst, f, v)
	case string:
		if f.Enum != nil {
			i := slices.IndexFunc(f.Enum.Values, func(e descriptor.EnumValue) bool { return e.Stored == v })
			return backend.AppendInt(dst, int64(i)), i >= 0
		}
		if f.Type == descriptor.TypeTime {
			t, err := timestamp.Parse(v)
			return AppendTime(dst, t), err == nil
		}
		if len(v) > maxIndexBytes || utf8.RuneCountInString(v) > MaxIndexChars {
			return dst, false
		}
		return backend.AppendString(dst, v), true
	}
	return dst, false
}

// EncodeTime is nanoseconds since 1970. What lies before the first or after the
// last instant that they tell apart, in 1677 and 2262, counts as that. What a
// store stamps lies between them.
func EncodeTime(t time.Time) []byte { return AppendTime(nil, t) }

// AppendTime appends what [EncodeTime] returns.
func AppendTime(dst []byte, t time.Time) []byte {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return backend.AppendInt(dst, t.UnixNano())
}

func appendNumber(dst []byte, f *descriptor.Field, n json.Number) ([]byte, bool) {
	x, err := n.Float64()
	if err != nil || math.IsNaN(x) {
		return dst, false
	}
	if f.Type != descriptor.TypeFloat {
		return backend.AppendInt(dst, int64(x)), true
	}
	// The bits of a float order as a signed integer does, once those of the negative ones are flipped.
	bits := int64(math.Float64bits(x + 0))
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return backend.AppendInt(dst, bits), true
}

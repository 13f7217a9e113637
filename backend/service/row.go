package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// The indexes that every kind has. Labels hold (key, value), conditions (type, status).
const (
	labelIndex     = "labels"
	conditionIndex = "conditions"
)

// Limits of an indexed string. A longer one, which only a status can hold, has no row.
const (
	maxIndexChars = 256
	maxIndexBytes = 1024
)

// definitionOfRows says which index rows and references the resources of a kind have.
type definitionOfRows struct {
	// kind is its name.
	kind       string
	indexes    []index
	references []descriptor.Reference
	// fingerprint tells definitions apart; resources carry that of the one that made
	// their rows.
	fingerprint string
	// stale is a hint: the kind has resources whose rows another definition made, see
	// [guards].
	stale atomic.Bool
}

// index is a field that has index rows: a [descriptor.Index], or a reference,
// which is one too.
type index struct {
	path  string
	steps []string
	field *descriptor.Field
	// sortable says that orders may name it.
	sortable bool
	// many says that a resource may have several values.
	many bool
}

// compileRows finds the fields that the indexes and references of a kind name.
func compileRows(k *descriptor.Kind) (*definitionOfRows, error) {
	d := &definitionOfRows{kind: k.Name, references: k.References}
	add := func(path string, sortable bool) error {
		if d.index(path) != nil {
			return nil
		}
		f, many := k.FieldAt(path)
		if f == nil || f.Type == descriptor.TypeObject || f.Type == descriptor.TypeMap {
			return fmt.Errorf("index %s: no scalar field is there", path)
		}
		d.indexes = append(d.indexes, index{path: path, steps: strings.Split(path, "."), field: f, sortable: sortable, many: many})
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
	d.fingerprint = fingerprint(d.indexes, k.References)
	return d, nil
}

// index finds an index by its path, nil if there is none.
func (d *definitionOfRows) index(path string) *index {
	for i := range d.indexes {
		if d.indexes[i].path == path {
			return &d.indexes[i]
		}
	}
	return nil
}

// fingerprint tells definitions of index rows apart: fields, types, effective
// defaults, the order of enums and what references refer to.
func fingerprint(indexes []index, references []descriptor.Reference) string {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, "rows 1")
	for _, i := range indexes {
		_, _ = fmt.Fprintln(h, i.path, i.field.Type, i.field.List, i.field.Default)
		if i.field.Enum != nil {
			for _, v := range i.field.Enum.Values {
				_, _ = fmt.Fprintln(h, "-", v.Stored)
			}
		}
	}
	for _, r := range references {
		_, _ = fmt.Fprintln(h, "ref", r.Path, r.Kind)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// rows are the index rows of a resource, no two equal, by its labels and its body:
// the object with its spec and status. Null has no row, and neither has a text that
// is longer than an index takes.
func (d *definitionOfRows) rows(labels map[string]string, root map[string]any) []backend.Row {
	var out []backend.Row
	seen := map[string]bool{}
	add := func(name string, value []byte) {
		if value == nil || len(name)+len(value) > backend.MaxRowBytes {
			return
		}
		if id := name + "\x00" + string(value); !seen[id] {
			seen[id] = true
			out = append(out, backend.Row{Index: name, Value: value})
		}
	}
	for _, key := range sortedKeys(labels) {
		add(labelIndex, pair(key, labels[key]))
	}
	for i := range d.indexes {
		idx := &d.indexes[i]
		idx.walk(root, 0, func(v any) { add(idx.path, encode(idx.field, v)) })
	}
	status, _ := root["status"].(map[string]any)
	if conditions, ok := status[conditionIndex].([]any); ok {
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok {
				typ, _ := m["type"].(string)
				value, _ := m["status"].(string)
				if len(typ)+len(value) <= maxIndexBytes {
					add(conditionIndex, pair(typ, value))
				}
			}
		}
	}
	return out
}

// checkRows refuses a state with more index rows than a resource may have, and
// names the index that has most of them.
func checkRows(key backend.Key, rows []backend.Row) error {
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
	case labelIndex:
		path = "metadata.labels"
	case conditionIndex:
		path = "status.conditions"
	}
	e := &Error{
		Code: CodeLimitExceeded, Path: path, Limit: strconv.Itoa(backend.MaxRows),
		Message: fmt.Sprintf("%s: the resource has %d different values in indexed fields, %d of them here; at most %d are accepted", path, len(rows), count[most], backend.MaxRows),
	}
	return e.of(key)
}

func pair(a, b string) []byte { return backend.AppendString(backend.AppendString(nil, a), b) }

// walk visits every value of the index in a tree, and the effective default of
// a field that is absent from an object that is there.
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
	case step == len(i.steps)-1 && i.field.Default != nil:
		i.walk(i.field.Default, step+1, visit)
	}
}

// encode is the place of a value in an index: strings by bytes, enums by
// declaration. Nil means that the value has none.
func encode(f *descriptor.Field, v any) []byte {
	switch v := v.(type) {
	case bool:
		return backend.AppendBool(nil, v)
	case json.Number:
		return encodeNumber(f, v)
	case string:
		if f.Enum != nil {
			i := slices.IndexFunc(f.Enum.Values, func(e descriptor.EnumValue) bool { return e.Stored == v })
			if i < 0 {
				return nil
			}
			return backend.AppendInt(nil, int64(i))
		}
		if len(v) > maxIndexBytes || utf8.RuneCountInString(v) > maxIndexChars {
			return nil
		}
		return backend.AppendString(nil, v)
	}
	return nil
}

func encodeNumber(f *descriptor.Field, n json.Number) []byte {
	x, err := n.Float64()
	if err != nil || math.IsNaN(x) {
		return nil
	}
	if f.Type != descriptor.TypeFloat {
		return backend.AppendInt(nil, int64(x))
	}
	// The bits of a float order as a signed integer does, once those of the negative ones are flipped.
	bits := int64(math.Float64bits(x + 0))
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return backend.AppendInt(nil, bits)
}

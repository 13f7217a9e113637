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

// index is a compiled [descriptor.Index], or a reference, which is one too.
type index struct {
	path  string
	steps []string
	field *field
	// sortable says that orders may name it.
	sortable bool
	// many says that a resource may have several values.
	many bool
}

// compileIndexes finds the fields that indexes and references name.
func (k *kind) compileIndexes() ([]index, error) {
	var out []index
	add := func(path string, sortable bool) error {
		if slices.ContainsFunc(out, func(i index) bool { return i.path == path }) {
			return nil
		}
		f := k.fieldAt(path)
		if f == nil || f.Type == descriptor.TypeObject || f.Type == descriptor.TypeMap {
			return fmt.Errorf("index %s: no scalar field is there", path)
		}
		out = append(out, index{path: path, steps: strings.Split(path, "."), field: f, sortable: sortable, many: k.listAt(path)})
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
	return out, nil
}

// fieldAt finds the field at a path from the body's root.
func (k *kind) fieldAt(path string) *field {
	steps := strings.Split(path, ".")
	s := map[string]*shape{"spec": k.spec, "status": k.status}[steps[0]]
	var f *field
	for _, step := range steps[1:] {
		if s == nil {
			return nil
		}
		if f = s.fields[step]; f == nil {
			return nil
		}
		s = f.shape
	}
	return f
}

// listAt says whether a path leads through a list.
func (k *kind) listAt(path string) bool {
	for i := range path {
		if path[i] == '.' {
			if f := k.fieldAt(path[:i]); f != nil && f.List {
				return true
			}
		}
	}
	f := k.fieldAt(path)
	return f != nil && f.List
}

// index finds an index by its path.
func (k *kind) index(path string) *index {
	for i := range k.indexes {
		if k.indexes[i].path == path {
			return &k.indexes[i]
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

// rows are the index rows of a state, no two equal. Null has no row, and neither
// has a text that is longer than an index takes.
func (k *kind) rows(st *state) []backend.Row {
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
	for _, key := range sortedKeys(st.meta.Labels) {
		add(labelIndex, pair(key, st.meta.Labels[key]))
	}
	root := st.root()
	for i := range k.indexes {
		idx := &k.indexes[i]
		idx.walk(root, 0, func(v any) { add(idx.path, idx.field.encode(v)) })
	}
	if conditions, ok := st.status[conditionIndex].([]any); ok {
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok {
				kind, _ := m["type"].(string)
				status, _ := m["status"].(string)
				if len(kind)+len(status) <= maxIndexBytes {
					add(conditionIndex, pair(kind, status))
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
func (f *field) encode(v any) []byte {
	switch v := v.(type) {
	case bool:
		return backend.AppendBool(nil, v)
	case json.Number:
		return f.encodeNumber(v)
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

func (f *field) encodeNumber(n json.Number) []byte {
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

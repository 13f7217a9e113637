package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// maxTreeDepth bounds the nesting of a spec.
const maxTreeDepth = 64

// parseTree reads one JSON object, numbers as written, without null members:
// null is the same as absent.
func parseTree(raw []byte) (map[string]any, error) {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("json: an object wanted")
	}
	if !dropNulls(m, maxTreeDepth) {
		return nil, fmt.Errorf("json: nested deeper than %d", maxTreeDepth)
	}
	return m, nil
}

// readObject is the object that a caller gave: a tree of JSON, which is copied,
// or any value whose JSON is one. nil is none.
func readObject(value any) (map[string]any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		out, err := copyTree(v, maxTreeDepth)
		if err != nil {
			return nil, err
		}
		return out.(map[string]any), nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	decoded, err := decodeJSON(raw)
	if err != nil || decoded == nil {
		return nil, err
	}
	m, ok := decoded.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("json: an object wanted")
	}
	if !within(m, maxTreeDepth) {
		return nil, errTooDeep
	}
	return m, nil
}

// errTooDeep is the error of a tree that is nested deeper than maxTreeDepth.
var errTooDeep = fmt.Errorf("json: nested deeper than %d", maxTreeDepth)

// copyTree copies a tree of JSON that is nested no deeper than depth. What is no
// JSON yet becomes it: numbers are [json.Number].
func copyTree(v any, depth int) (any, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	var err error
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], err = copyTree(e, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = copyTree(e, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string, bool, json.Number, nil:
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	out, err := decodeJSON(raw)
	if err == nil && !within(out, depth) {
		err = errTooDeep
	}
	return out, err
}

// within says whether a tree is nested no deeper than depth.
func within(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !within(e, depth-1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !within(e, depth-1) {
				return false
			}
		}
	}
	return true
}

// decodeJSON reads one value, numbers as written.
func decodeJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("json: more than one value")
	}
	return v, nil
}

func dropNulls(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else if !dropNulls(e, depth-1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !dropNulls(e, depth-1) {
				return false
			}
		}
	}
	return true
}

func cloneTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneTree(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneTree(e)
		}
		return out
	}
	return v
}

// equal compares JSON values; numbers by their value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, ok1 := new(big.Rat).SetString(shortNumber(a))
		y, ok2 := new(big.Rat).SetString(shortNumber(b))
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a == b
}

// shortNumber keeps a hostile exponent from becoming a huge rational.
func shortNumber(n json.Number) string {
	if f, err := n.Float64(); err != nil || f > 1e30 || f < -1e30 || len(n) > 64 || f != 0 && f < 1e-30 && f > -1e-30 {
		return "x"
	}
	return n.String()
}

// effective returns a copy of the object with the effective defaults of what
// is absent, for rules: numbers as the field's type says, int64 or float64, and
// names that CEL reserves escaped.
func (s *shape) effective(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for name, v := range tree {
		if f := s.fields[name]; f != nil {
			out[escapeCEL(name)] = f.effective(v)
		}
	}
	for i := range s.Fields {
		f := s.fields[s.Fields[i].Name]
		if _, ok := tree[f.Name]; !ok && f.Default != nil {
			out[escapeCEL(f.Name)] = f.effective(f.Default)
		}
	}
	return out
}

func (f *field) effective(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = f.effective(e)
		}
		return out
	case map[string]any:
		if f.shape != nil {
			return f.shape.effective(v)
		}
	case json.Number:
		x, err := v.Float64()
		if err != nil {
			return v
		}
		if f.Type != descriptor.TypeFloat {
			return int64(x) // whole and exact: validation comes first
		}
		return x
	}
	return v
}

// celReserved are the words that CEL does not accept as a field name, from its
// language definition. A rule writes them as __word__, as in Kubernetes.
const celReserved = " true false null in as break const continue else for function if import let loop package namespace return var void while "

func escapeCEL(name string) string {
	if bytes.Contains([]byte(celReserved), []byte(" "+name+" ")) {
		return "__" + name + "__"
	}
	return name
}

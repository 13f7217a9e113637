// Package jsontree works on trees of decoded JSON. A tree consists of maps, lists, strings, Booleans and numbers.
// Numbers are kept as they were written. Null means absent.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// MaxDepth is the maximum nesting of a spec.
const MaxDepth = 64

// Given is a tree of JSON that its creator no longer uses. The receiver may modify it. It consists of maps and lists of
// any, strings, Booleans and [json.Number].
type Given map[string]any

// Object returns the JSON object that a caller passed as a Go value. It returns a [Given] as it is, copies other trees
// of JSON, and marshals other values. For nil it returns nil.
func Object(value any) (map[string]any, error) {
	var tree any
	var err error
	switch v := value.(type) {
	case nil:
		return nil, nil
	case Given:
		tree = map[string]any(v)
	default:
		tree, err = copyOf(v, MaxDepth)
	}
	switch {
	case err != nil:
		return nil, err
	case tree == nil:
		return nil, nil
	case !within(tree, MaxDepth):
		return nil, errTooDeep
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("json: an object wanted")
	}
	return object, nil
}

// errTooDeep is the error of a tree that is nested deeper than MaxDepth.
var errTooDeep = fmt.Errorf("json: nested deeper than %d", MaxDepth)

// copyOf copies a tree of JSON. It returns an error if the tree is nested more than depth levels deep. It replaces a
// value of another type by the tree of the value's JSON, with numbers as [json.Number].
func copyOf(v any, depth int) (any, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	var err error
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], err = copyOf(e, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = copyOf(e, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string, bool, json.Number, nil:
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var tree any
		if err = dec.Decode(&tree); err == nil {
			return tree, nil
		}
	}
	return nil, fmt.Errorf("json: %w", err)
}

// within reports whether a tree is nested at most depth levels deep.
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

// DropNulls removes the null members of all objects in a tree.
func DropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				DropNulls(e)
			}
		}
	case []any:
		for _, e := range v {
			DropNulls(e)
		}
	}
}

// Clone returns a deep copy of a tree.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = Clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Clone(e)
		}
		return out
	}
	return v
}

// Equal reports whether two JSON values are equal. Numbers are compared by value.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		if isInteger(a) && isInteger(b) {
			return false
		}
		x, ok1 := new(big.Rat).SetString(shortNumber(a))
		y, ok2 := new(big.Rat).SetString(shortNumber(b))
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a == b
}

// isInteger reports whether a number is written as an integer without leading zeros.
func isInteger(n json.Number) bool {
	digits := strings.TrimPrefix(string(n), "-")
	return digits != "" && (digits[0] != '0' || n == "0") && strings.Trim(digits, "0123456789") == ""
}

// shortNumber returns the text of a number for exact comparison as a rational. It returns "x" for a number that is too
// expensive to compare, because the text is very long or the number is very large or very close to 0.
func shortNumber(n json.Number) string {
	if f, err := n.Float64(); err != nil || f > 1e30 || f < -1e30 || len(n) > 64 || f != 0 && f < 1e-30 && f > -1e-30 {
		return "x"
	}
	return n.String()
}

// Keys returns the sorted keys of a map; nil if it is empty.
func Keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// DropListNulls removes the null members of all objects in lists. A merge patch replaces a list as a whole, so a null
// in a list cannot remove a stored member.
func DropListNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			DropListNulls(e)
		}
	case []any:
		DropNulls(v)
	}
}

// Merged returns target changed by a merge patch (RFC 7386): objects are merged, null removes a member, and every other
// value replaces the member. target is not modified. The result shares the parts that the patch does not name with
// target.
func Merged(target, patch map[string]any) map[string]any {
	out := make(map[string]any, len(target)+len(patch))
	maps.Copy(out, target)
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, name)
		case map[string]any:
			inner, _ := out[name].(map[string]any)
			out[name] = Merged(inner, value)
		default:
			out[name] = Clone(value)
		}
	}
	return out
}

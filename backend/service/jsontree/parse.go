package jsontree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Parse parses a JSON object. It keeps numbers as they are written. It drops null members, because null means absent.
// Strings share the memory of raw.
func Parse(raw string) (map[string]any, error) {
	v, err := Valid(raw)
	if err != nil {
		return nil, err
	}
	return Members(v)
}

// Valid checks that a text is one JSON object. The result can be passed to [Members].
func Valid(raw string) (gjson.Result, error) {
	if !gjson.Valid(raw) {
		return gjson.Result{}, errors.New("json: not valid")
	}
	v := gjson.Parse(raw)
	if !v.IsObject() {
		return v, errors.New("json: an object wanted")
	}
	return v, nil
}

// Members returns the members of a valid object as a tree, without nulls.
func Members(object gjson.Result) (map[string]any, error) {
	out, err := valueOf(object, MaxDepth)
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

// valueOf returns the tree of a valid value. It returns an error if the value is nested more than depth levels deep.
func valueOf(v gjson.Result, depth int) (value any, err error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	switch {
	case v.IsObject():
		out := map[string]any{}
		v.ForEach(func(name, member gjson.Result) bool {
			var key string
			if key, err = textOf(name); err != nil {
				return false
			}
			if member.Type == gjson.Null {
				delete(out, key) // the last of two members with one name counts
				return true
			}
			out[key], err = valueOf(member, depth-1)
			return err == nil
		})
		return out, err
	case v.IsArray():
		out := make([]any, 0, 4)
		v.ForEach(func(_, element gjson.Result) bool {
			var one any
			one, err = valueOf(element, depth-1)
			out = append(out, one)
			return err == nil
		})
		return out, err
	}
	switch v.Type {
	case gjson.String:
		return textOf(v)
	case gjson.Number:
		return json.Number(v.Raw), nil
	case gjson.True:
		return true, nil
	case gjson.False:
		return false, nil
	}
	return nil, nil
}

// textOf returns the text of a JSON string. It calls [encoding/json] only for a string with escapes or invalid UTF-8.
func textOf(v gjson.Result) (out string, err error) {
	if strings.IndexByte(v.Raw, '\\') < 0 && utf8.ValidString(v.Raw) {
		return v.Str, nil
	}
	if err := json.Unmarshal([]byte(v.Raw), &out); err != nil {
		return "", fmt.Errorf("json: %w", err)
	}
	return out, nil
}

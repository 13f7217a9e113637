package jsontree

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Append appends the JSON of a tree. It appends the same bytes as [json.Marshal], in a third of the time
// (BenchmarkPatch of backend/service).
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case map[string]any:
		if v != nil {
			return appendObject(dst, v)
		}
	case []any:
		if v != nil {
			return appendList(dst, v)
		}
	case string:
		return AppendText(dst, v), nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return append(dst, raw...), nil
}

func appendObject(dst []byte, tree map[string]any) (_ []byte, err error) {
	var space [16]string
	names := space[:0]
	for name := range tree {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = Append(append(AppendText(dst, name), ':'), tree[name]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendList(dst []byte, list []any) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = Append(dst, e); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// AppendText appends s as a JSON string.
func AppendText(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			raw, _ := json.Marshal(s) // a string always marshals
			return append(dst, raw...)
		}
	}
	return append(append(append(slices.Grow(dst, len(s)+2), '"'), s...), '"')
}

package jsontree

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Append appends the JSON of a tree: the bytes that [json.Marshal] makes of it.
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case map[string]any:
		return appendObject(dst, v)
	case []any:
		if v == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = Append(dst, e); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case string:
		return AppendText(dst, v), nil
	case bool:
		if v {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case nil:
		return append(dst, "null"...), nil
	case json.Number:
		if p := (parser{text: string(v)}); isNumber(&p) {
			return append(dst, v...), nil
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return append(dst, raw...), nil
}

// isNumber says whether the whole text is one number.
func isNumber(p *parser) bool {
	_, err := p.number()
	return err == nil && p.at == len(p.text)
}

func appendObject(dst []byte, tree map[string]any) ([]byte, error) {
	if tree == nil {
		return append(dst, "null"...), nil
	}
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
		var err error
		if dst, err = Append(append(AppendText(dst, name), ':'), tree[name]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// AppendTexts appends the JSON of a map of texts, its keys in their order.
func AppendTexts(dst []byte, texts map[string]string) []byte {
	var space [16]string
	keys := space[:0]
	for key := range texts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(append(AppendText(dst, key), ':'), texts[key])
	}
	return append(dst, '}')
}

// AppendText appends a JSON string.
func AppendText(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			raw, _ := json.Marshal(s) // a string always marshals
			return append(dst, raw...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

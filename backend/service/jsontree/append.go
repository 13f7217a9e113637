package jsontree

import (
	"encoding/json"
	"fmt"
)

// Append appends the JSON of a tree.
func Append(dst []byte, tree map[string]any) ([]byte, error) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return append(dst, raw...), nil
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

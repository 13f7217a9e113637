package kind

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Value is one write-only value of a resource.
type Value struct {
	// Path is the path of the value. For an entry of a map it is the path of the map.
	Path *failure.Path
	// Key is the key of an entry of a map; nil for other values.
	Key *string
	// Value is the stored string. A number or Boolean is shown as its JSON.
	Value string
	// Base64 reports whether Value is encoded in base64.
	Base64 bool
}

// Text returns the decoded value. It returns false if the decoded value is not valid UTF-8.
func (v Value) Text() (string, bool) {
	if !v.Base64 {
		return v.Value, true
	}
	raw, err := base64.StdEncoding.DecodeString(v.Value)
	return string(raw), err == nil && utf8.Valid(raw)
}

// Revealed returns the write-only values of a spec, in the order of the fields. The entries of a
// map are sorted by key.
func (s *Shape) Revealed(at *failure.Path, spec map[string]any) []Value {
	return s.revealed(nil, at, spec, false)
}

func (s *Shape) revealed(out []Value, at *failure.Path, tree map[string]any, hidden bool) []Value {
	if !hidden && !s.Hides {
		return out
	}
	for _, f := range s.ordered {
		if value, ok := tree[f.Name]; ok && value != nil {
			out = f.revealed(out, at.Field(f.Field), value, hidden || f.WriteOnly)
		}
	}
	return out
}

func (f *Field) revealed(out []Value, at *failure.Path, value any, hidden bool) []Value {
	if list, ok := value.([]any); ok {
		for i, e := range list {
			out = f.revealed(out, at.Element(i), e, hidden)
		}
		return out
	}
	if tree, ok := value.(map[string]any); ok && f.shape != nil {
		return f.shape.revealed(out, at, tree, hidden)
	}
	if !hidden {
		return out
	}
	as := func(key *string, value any) Value {
		text, isText := value.(string)
		if !isText {
			text = fmt.Sprint(value)
		}
		return Value{
			Path:   at,
			Key:    key,
			Value:  text,
			Base64: isText && f.Constraint.Format == descriptor.FormatBase64,
		}
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return append(out, as(nil, value))
	}
	for _, key := range jsontree.Keys(entries) {
		out = append(out, as(&key, entries[key]))
	}
	return out
}

package kind

import (
	"encoding/json"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// effective returns a copy of the object as rules see it. Absent fields have their effective defaults. Numbers are
// int64 or float64, depending on their field. Times are instants. Names that CEL reserves are escaped.
func (s *Shape) effective(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for name, v := range tree {
		if f := s.fields[name]; f != nil {
			out[f.escaped] = f.effective(v)
		}
	}
	for _, f := range s.ordered {
		if _, ok := tree[f.Name]; !ok && f.Default != nil {
			out[f.escaped] = f.effective(f.Default)
		}
	}
	return out
}

func (f *Field) effective(v any) any {
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
	case string:
		if f.Type == descriptor.TypeTime {
			if t, err := descriptor.ParseTime(v); err == nil {
				return t
			}
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

// celReserved are the words that CEL's language definition does not allow as field names. In a rule a field with such a
// name is written as __name__, as in Kubernetes.
const celReserved = " true false null in as break const continue else for function if import let loop package namespace return var void while "

func escapeCEL(name string) string {
	if strings.Contains(celReserved, " "+name+" ") {
		return "__" + name + "__"
	}
	return name
}

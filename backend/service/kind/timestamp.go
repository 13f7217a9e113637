package kind

import (
	"github.com/sluicegw/sluice/backend/descriptor"
)

// CanonicalTimes writes the times of a tree as they are stored, in UTC, so that equal
// instants are equal texts. What is no time is left for validation to refuse.
func (s *Shape) CanonicalTimes(tree map[string]any) {
	if !s.timed {
		return
	}
	for name, value := range tree {
		f := s.fields[name]
		if f == nil {
			continue
		}
		switch value := value.(type) {
		case string:
			if f.Type != descriptor.TypeTime {
				continue
			}
			if t, err := descriptor.ParseTime(value); err == nil {
				tree[name] = descriptor.FormatTime(t)
			}
		case map[string]any:
			if f.shape != nil {
				f.shape.CanonicalTimes(value)
			}
		case []any:
			for _, e := range value {
				if m, ok := e.(map[string]any); ok && f.shape != nil {
					f.shape.CanonicalTimes(m)
				}
			}
		}
	}
}

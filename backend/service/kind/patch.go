package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// DropUnknown notes every name of a patch that the shape does not have, null or
// not, and removes it. What lies in lists is found when the result is validated.
func (v *Violations) DropUnknown(s *Shape, path string, patch map[string]any) {
	for _, name := range jsontree.Keys(patch) {
		f := s.fields[name]
		if f == nil {
			v.Add(failure.Join(path, name), "unknown", nil, "is not a field of %s%s", s.Name, s.suggest(name))
			delete(patch, name)
		} else if m, ok := patch[name].(map[string]any); ok && f.shape != nil {
			v.DropUnknown(f.shape, failure.Join(path, name), m)
		}
	}
}

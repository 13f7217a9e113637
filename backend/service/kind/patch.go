package kind

import "github.com/sluicegw/sluice/backend/service/jsontree"

// DropUnknown notes every name of the patch at a path that the shape does not have, null
// or not, and removes it. What lies in lists is found when the result is validated.
func (v *Violations) DropUnknown(s *Shape, path string, patch map[string]any) {
	if !s.hasNamesOf(patch) {
		v.dropUnknown(s, &location{name: path}, patch)
	}
}

// hasNamesOf says whether the shape has every name of a patch.
func (s *Shape) hasNamesOf(patch map[string]any) bool {
	for name, value := range patch {
		f := s.fields[name]
		if f == nil {
			return false
		}
		if m, ok := value.(map[string]any); ok && f.shape != nil && !f.shape.hasNamesOf(m) {
			return false
		}
	}
	return true
}

func (v *Violations) dropUnknown(s *Shape, at *location, patch map[string]any) {
	for _, name := range jsontree.Keys(patch) {
		f := s.fields[name]
		if f == nil {
			if delete(patch, name); v.full() {
				v.dropped++
				continue
			}
			v.Add(at.with(name).String(), "unknown", nil, "is not a field of %s%s", s.Name, s.suggest(name))
		} else if m, ok := patch[name].(map[string]any); ok && f.shape != nil {
			v.dropUnknown(f.shape, at.with(name), m)
		}
	}
}

package kind

import "github.com/sluicegw/sluice/backend/service/jsontree"

// DropUnknown notes every name of the patch at a path that the shape does not have, null
// or not, and removes it. What lies in lists is found when the result is validated.
func (v *Violations) DropUnknown(s *Shape, path string, patch map[string]any) {
	v.dropUnknown(s, &location{name: path}, patch)
}

func (v *Violations) dropUnknown(s *Shape, at *location, patch map[string]any) {
	for _, name := range jsontree.Keys(patch) {
		f := s.fields[name]
		if f == nil {
			delete(patch, name)
			v.addUnknown(s, at, name)
		} else if m, ok := patch[name].(map[string]any); ok && f.shape != nil {
			v.dropUnknown(f.shape, at.with(name), m)
		}
	}
}

// addUnknown adds that the shape has no field of a name.
func (v *Violations) addUnknown(s *Shape, at *location, name string) {
	if v.full() {
		v.dropped++ // without looking for what it may mean
		return
	}
	v.Add(at.with(name).String(), "unknown", nil, "is not a field of %s%s", s.Name, s.suggest(name))
}

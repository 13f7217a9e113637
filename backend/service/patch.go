package service

// dropUnknown notes every name of a patch that the shape does not have, null or
// not, and removes it. What lies in lists is found when the result is validated.
func (v *violations) dropUnknown(s *shape, path string, patch map[string]any) {
	for _, name := range sortedKeys(patch) {
		f := s.fields[name]
		if f == nil {
			v.add(join(path, name), "unknown", "", "is not a field of %s%s", s.Name, s.suggest(name))
			delete(patch, name)
		} else if m, ok := patch[name].(map[string]any); ok && f.shape != nil {
			v.dropUnknown(f.shape, join(path, name), m)
		}
	}
}

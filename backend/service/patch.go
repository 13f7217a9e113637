package service

// dropListNulls drops the nulls inside lists: lists are values and are replaced
// whole, so null in them is the same as absent.
func dropListNulls(v any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if !dropListNulls(e, depth-1) {
				return false
			}
		}
	case []any:
		return dropNulls(v, depth)
	}
	return true
}

// mergePatch changes target as RFC 7386 says: objects merge, null removes, all
// else replaces.
func mergePatch(target, patch map[string]any) {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, ok := target[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				target[name] = inner
			}
			mergePatch(inner, value)
		default:
			target[name] = cloneTree(value)
		}
	}
}

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

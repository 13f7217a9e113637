package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// maxCleared is the most warnings about values that one patch clears.
const maxCleared = 10

// Cleared returns a warning for each value of an object at a path that a merge patch clears by null, at most
// maxCleared. Some clients send null for all that is not set, and so clear values that they do not know. Write-only
// values are left out: whether there is one is not shown.
func (s *Shape) Cleared(path string, object, patch map[string]any) []failure.Warning {
	return s.cleared(nil, path, object, patch)
}

func (s *Shape) cleared(out []failure.Warning, path string, object, patch map[string]any) []failure.Warning {
	for _, name := range jsontree.Keys(patch) {
		f, was := s.fields[name], object[name]
		if f == nil || f.WriteOnly || was == nil || len(out) == maxCleared {
			continue
		}
		at := failure.Join(path, name)
		switch change := patch[name].(type) {
		case nil:
			out = append(out, clearedAt(at))
		case map[string]any:
			inner, _ := was.(map[string]any)
			if f.shape != nil {
				out = f.shape.cleared(out, at, inner, change)
				continue
			}
			for _, key := range jsontree.Keys(change) { // of a map
				if change[key] == nil && inner[key] != nil && len(out) < maxCleared {
					out = append(out, clearedAt(failure.Join(at, key)))
				}
			}
		}
	}
	return out
}

func clearedAt(path string) failure.Warning {
	return failure.Warning{
		Code:    failure.WarningCleared,
		Message: path + " was cleared: the patch has null for it",
		Path:    path,
	}
}

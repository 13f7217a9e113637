package kind

import (
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// maxCleared is the maximum number of CLEARED warnings about one patch.
const maxCleared = 10

// Cleared returns a warning for each value that a merge patch clears by null, at most maxCleared. Some clients send
// null for every field that they do not set. Without warnings they would not notice that they clear values. Cleared
// returns no warnings about write-only values, because a warning would reveal that a value was stored.
func (s *Shape) Cleared(at *failure.Path, names failure.FieldNames, object, patch map[string]any) []failure.Warning {
	c := cleared{names: names}
	c.object(s, at, object, patch)
	return c.warnings
}

// cleared collects the warnings of [Shape.Cleared].
type cleared struct {
	names    failure.FieldNames
	warnings []failure.Warning
}

func (c *cleared) object(s *Shape, at *failure.Path, object, patch map[string]any) {
	for _, name := range jsontree.Keys(patch) {
		f, was := s.fields[name], object[name]
		if f == nil || f.WriteOnly || was == nil || len(c.warnings) == maxCleared {
			continue
		}
		inner := at.Field(f.Field)
		switch change := patch[name].(type) {
		case nil:
			c.add(inner)
		case map[string]any:
			before, _ := was.(map[string]any)
			if f.shape != nil {
				c.object(f.shape, inner, before, change)
				continue
			}
			for _, key := range jsontree.Keys(change) { // of a map
				if change[key] == nil && before[key] != nil && len(c.warnings) < maxCleared {
					c.add(inner.Name(key))
				}
			}
		}
	}
}

func (c *cleared) add(at *failure.Path) {
	path := at.Text(c.names)
	c.warnings = append(c.warnings, failure.Warning{
		Code:    failure.WarningCleared,
		Message: path + " was cleared: the patch has null for it",
		Path:    path,
	})
}

package output

import (
	"slices"

	"github.com/sluicegw/sluice/graph/client"
)

// Sort sorts resources of a kind by the values at a path. Resources without a value come first. It reports whether any
// resource has a value.
func Sort(k client.Kind, all []*client.Resource, by Path) (found bool, err error) {
	type entry struct {
		resource *client.Resource
		key      []any
	}
	entries := make([]entry, len(all))
	for i, r := range all {
		tree, err := Tree(k, r)
		if err != nil {
			return false, err
		}
		key, err := by.Values(tree)
		if err != nil {
			return false, err
		}
		found = found || len(key) > 0
		entries[i] = entry{r, key}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return Compare(a.key, b.key) })
	for i, e := range entries {
		all[i] = e.resource
	}
	return found, nil
}

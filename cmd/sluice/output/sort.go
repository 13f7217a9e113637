package output

import (
	"fmt"
	"iter"
	"slices"

	"github.com/sluicegw/sluice/graph/client"
)

// Sort yields resources of a kind in the order of what a path finds in each; those
// that have it last come last. They are all held in memory.
func Sort(k client.Kind, all iter.Seq2[*client.Resource, error], by Path) iter.Seq2[*client.Resource, error] {
	return func(yield func(*client.Resource, error) bool) {
		type entry struct {
			resource *client.Resource
			key      []any
		}
		var entries []entry
		found := false
		for r, err := range all {
			if err == nil && len(entries) == maxItems {
				yield(nil, fmt.Errorf("sort-by: more than %d resources; narrow the list", maxItems))
				return
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			tree, err := Tree(k, r)
			var key []any
			if err == nil {
				key, err = by.Values(tree)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			found = found || len(key) > 0
			entries = append(entries, entry{r, key})
		}
		if !found && len(entries) > 0 {
			yield(nil, fmt.Errorf("sort-by: no resource has a value at %q", by.text))
			return
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return Compare(a.key, b.key) })
		for _, e := range entries {
			if !yield(e.resource, nil) {
				return
			}
		}
	}
}

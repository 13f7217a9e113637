package resolvers

import (
	"maps"
	"slices"

	"github.com/sluicegw/sluice/graph/scalar"
	"github.com/sluicegw/sluice/graph/v1/model"
)

// entries are the entries of a map in the order of their keys; nil if there is no map.
func entries(m scalar.StringMap) []*model.MapEntry {
	if m == nil {
		return nil
	}
	out := make([]*model.MapEntry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, &model.MapEntry{Key: key, Value: m[key]})
	}
	return out
}

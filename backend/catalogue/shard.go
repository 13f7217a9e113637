package catalogue

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// guardedApart returns reasons to refuse guarded references from NAMESPACED kinds to GLOBAL ones, if the store has
// several shards; shards is their number. The shard of a GLOBAL resource decides whether the resource is in use, but
// does not know references from other shards.
func (g Gate) guardedApart(ctx context.Context, c Candidate) (reasons []string, shards int, err error) {
	for i := range c.Kinds {
		k := &c.Kinds[i]
		for _, ref := range k.References {
			if !ref.Guarded || k.Scope == descriptor.Global ||
				!slices.ContainsFunc(c.Kinds, func(to descriptor.Kind) bool {
					return to.Name == ref.Kind && to.Scope == descriptor.Global
				}) {
				continue
			}
			if shards == 0 {
				at, err := g.Store.Position(ctx)
				if err != nil {
					return nil, 0, err
				}
				shards = at.Shards()
				if shards <= 1 {
					return nil, 0, nil
				}
			}
			at := prefix(c.Places.of(Difference{Kind: k.Name, Path: ref.Path}))
			reasons = append(reasons, fmt.Sprintf("%s%s.%s: the guarded reference leads to kind %s, which is GLOBAL", at, k.Name, k.APIPath(ref.Path), ref.Kind))
		}
	}
	return reasons, shards, nil
}

package service

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// unreadableMark follows the fingerprint of a resource whose body could not be
// read when it was to be reindexed: it has no rows and matches nothing, as in a
// scan, and does not keep all others from being found by theirs.
const unreadableMark = "!"

// indexed says whether to try the index rows of a kind. Whether they are all of
// this gateway's definition is asked with every step that reads them, from the
// same state of the store (see [guards]), so what another gateway writes
// meanwhile never misleads. This is but a hint, from the last such answer.
func (s *Service) indexed(_ context.Context, k *kind) bool {
	_, oneState := s.cfg.Store.(backend.Ranger)
	return oneState && !k.stale.Load()
}

// guards asks, beside the steps of scans, for resources whose rows another
// definition made.
type guards struct{ kinds []*kind }

// add makes sure that the scan's kind is asked for, if the scan relies on index
// rows, or if the hint says not to: so the hint is taken back.
func (g *guards) add(sc *scan) {
	k := sc.query.kind
	if (sc.query.run != nil || k.stale.Load()) && !slices.Contains(g.kinds, k) {
		g.kinds = append(g.kinds, k)
	}
}

// ranges are empty where all rows are of this gateway's definition.
func (g *guards) ranges() (out []backend.Range) {
	for _, k := range g.kinds {
		for _, r := range k.others() {
			r.Limit = 1
			out = append(out, r)
		}
	}
	return out
}

// note takes the answers and returns the kinds that have rows of another definition.
func (g *guards) note(pages []backend.Page) (stale []*kind) {
	for i, k := range g.kinds {
		found := len(pages[2*i].Resources)+len(pages[2*i+1].Resources) > 0
		if found {
			stale = append(stale, k)
		}
		k.stale.Store(found)
	}
	return stale
}

// others are the two ranges of the resources with another fingerprint.
func (k *kind) others() [2]backend.Range {
	own := backend.AppendStringPrefix(nil, k.fingerprint)
	r := backend.Range{Kind: k.Name, Index: backend.DefinitionIndex}
	below, above := r, r
	below.End, above.Start = own, backend.StringPrefixEnd(own)
	return [2]backend.Range{below, above}
}

// refs are the references of a state, each once.
func (k *kind) refs(namespace string, st *state) []backend.Ref {
	var out []backend.Ref
	seen := map[backend.Key]bool{}
	root := st.root()
	for _, r := range k.References {
		idx := k.index(r.Path)
		idx.walk(root, 0, func(v any) {
			name, _ := v.(string)
			key := backend.Key{Kind: r.Kind, Namespace: namespace, Name: name}
			if name == "" || len(name) > maxIndexBytes/2 || seen[key] || len(out) == backend.MaxRefs {
				return
			}
			seen[key] = true
			out = append(out, backend.Ref{Key: key})
		})
	}
	return out
}
